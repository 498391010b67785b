"""Kernel evaluations per second: the same as `slimsvm bench kernels`."""

import sys

from slimsvm.cli import main

sys.exit(main(["bench", "kernels", *sys.argv[1:]]))
