"""The experiments of the sampled-cuts paper: the same as `slimsvm bench sampled-cuts`."""

import sys

from slimsvm.cli import main

sys.exit(main(["bench", "sampled-cuts", *sys.argv[1:]]))
