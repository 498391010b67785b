"""Prediction of many rows and of one: the same as `slimsvm bench prediction`."""

import sys

from slimsvm.cli import main

sys.exit(main(["bench", "prediction", *sys.argv[1:]]))
