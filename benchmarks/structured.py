"""Structured outputs: the same as `slimsvm bench structured`."""

import sys

from slimsvm.cli import main

sys.exit(main(["bench", "structured", *sys.argv[1:]]))
