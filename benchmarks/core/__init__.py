"""Two versions of the library side by side: the same work in turns, and what became of it."""
