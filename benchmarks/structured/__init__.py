"""Structured outputs: handwritten words, chunks of text, measures over all rows."""
