"""Cross-training: the same as `slimsvm bench cross-training`."""

import sys

from slimsvm.cli import main

sys.exit(main(["bench", "cross-training", *sys.argv[1:]]))
