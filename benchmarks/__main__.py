"""``python -m benchmarks`` is the command line of the benchmarks."""

import sys

from benchmarks.command_line import main

if __name__ == "__main__":
    sys.exit(main())
