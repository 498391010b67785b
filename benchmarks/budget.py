"""Training on a budget: the same as `slimsvm bench budget`."""

import sys

from slimsvm.cli import main

sys.exit(main(["bench", "budget", *sys.argv[1:]]))
