"""The experiments of the subspace-pursuit paper: the same as `slimsvm bench subspace`."""

import sys

from slimsvm.cli import main

sys.exit(main(["bench", "subspace", *sys.argv[1:]]))
