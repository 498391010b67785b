"""The exact solver beside other packages: the same as `slimsvm bench exact`."""

import sys

from slimsvm.cli import main

sys.exit(main(["bench", "exact", *sys.argv[1:]]))
