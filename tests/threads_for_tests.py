"""Work in several Python threads at once."""

import threading


def in_threads(work, values):
    """Call ``work`` with each of the values, all at once, and wait for the ends."""
    threads = [threading.Thread(target=work, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
