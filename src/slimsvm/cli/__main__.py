"""``python -m slimsvm.cli``: the command line without its script."""

import sys

from slimsvm.cli import main

sys.exit(main())
