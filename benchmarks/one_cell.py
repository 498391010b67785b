"""One benchmark in a process group of its own, which ends when the process that began it is gone, however that ended.

A cell that outlived a killed run would write beside the next one, and take its time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from benchmarks.command_line import main


def end_with_parent() -> None:
    """Wait for the end of standard input, a pipe whose other end the parent holds, and end the group."""
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.exit(main())
