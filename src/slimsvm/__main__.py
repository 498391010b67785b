"""``python -m slimsvm`` is the command line."""

import sys

from slimsvm.cli import main

if __name__ == "__main__":
    sys.exit(main())
