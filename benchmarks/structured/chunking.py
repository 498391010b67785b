"""Chunking of text (CoNLL-2000): features of words and parts of speech, and chunk F1 as conlleval counts it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
Chunk = tuple[int, int, str]

OUTSIDE = "O"
AFFIXES = (1, 2, 3, 4)


def word_shape(word: str) -> str:
    """Runs of capitals, small letters and digits as X, x and d: ``"McDonald-90"`` is ``"XxXx-d"``."""
    kinds = ["X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word]
    return "".join(kind for kind, before in zip(kinds, ["", *kinds]) if kind != before)


def token_features(words: Sequence[str], tags: Sequence[str]) -> Iterator[list[str]]:
    """Names of the features of every token of a sentence.

    Words and parts of speech within two tokens; pairs of neighbouring words with this one, pairs and triples of parts
    of speech within two tokens; the word with the parts of speech around it; its prefixes, suffixes and shape.
    """
    w = ["<2", "<1", *(word.lower() for word in words), ">1", ">2"]
    p = ["<2", "<1", *tags, ">1", ">2"]
    for i, word in enumerate(words, 2):
        found = ["bias", f"s={word_shape(word)}"]
        for k in range(-2, 3):
            found += [f"w{k}={w[i + k]}", f"p{k}={p[i + k]}"]
        found += [f"ww{k}={w[i + k]}|{w[i + k + 1]}" for k in (-1, 0)]
        found += [f"pp{k}={p[i + k]}|{p[i + k + 1]}" for k in range(-2, 2)]
        found += [f"ppp{k}={p[i + k]}|{p[i + k + 1]}|{p[i + k + 2]}" for k in range(-2, 1)]
        found += [f"wp{k}={w[i]}|{p[i + k]}" for k in (-1, 0, 1)] + [f"pw{k}={p[i]}|{w[i + k]}" for k in (-1, 1)]
        for k in AFFIXES:
            if len(word) > k:
                found += [f"pre={w[i][:k]}", f"suf={w[i][-k:]}"]
        yield found


class FeatureTable:
    """Binary features by name: rows of a sparse matrix. Names that were not in the first text are left out later."""

    def __init__(self) -> None:
        self.column: dict[str, int] = {}

    def rows(self, tokens: Array, offsets: Array, learn: bool) -> sp.csr_array:
        """One row for each token (word, part of speech) of the sentences."""
        indices: list[int] = []
        ends = [0]
        for lo, hi in pairwise(offsets):
            for names in token_features(tokens[lo:hi, 0].tolist(), tokens[lo:hi, 1].tolist()):
                if learn:
                    for name in names:
                        self.column.setdefault(name, len(self.column))
                indices += sorted({self.column[name] for name in names if name in self.column})
                ends.append(len(indices))
        parts = np.ones(len(indices), np.float32), np.array(indices, np.int32), np.array(ends, np.int64)
        return sp.csr_array(parts, shape=(len(ends) - 1, len(self.column)))


def chunks(tags: Iterable[str]) -> set[Chunk]:
    """Chunks (first token, token after the last, kind) of one sentence of IOB tags, as conlleval delimits them.

    A chunk ends where the tag is O or begins with B, or where its kind changes; an I after O or after another kind
    begins one.
    """
    found, start, kind = set(), 0, ""
    for t, tag in enumerate([*tags, OUTSIDE]):
        mark, _, now = tag.partition("-")
        if kind and (mark in ("O", "B") or now != kind):
            found.add((start, t, kind))
            kind = ""
        if mark != OUTSIDE and not kind:
            start, kind = t, now
    return found


def with_ends(tags: Array, offsets: Array) -> Array:
    """IOB tags of sentences as IOBES tags: the last token of a chunk has E, the only one S.

    A chain then has transitions of its own for the ends of chunks.
    """
    after = np.append(tags[1:], OUTSIDE)
    after[offsets[1:] - 1] = OUTSIDE
    return np.array([tag if tag == OUTSIDE or then == f"I{tag[1:]}" else {"B": "S", "I": "E"}[tag[0]] + tag[1:]
                     for tag, then in zip(tags.tolist(), after.tolist())])  # fmt: skip


def without_ends(tags: Array) -> Array:
    """IOBES tags as IOB tags."""
    return np.array([{"S": "B", "E": "I"}.get(tag[0], tag[0]) + tag[1:] for tag in tags.tolist()])


def chunk_f1(predicted: Array, truth: Array, offsets: Array) -> float:
    """F1 of the chunks that are right in place and kind; 0 where there are none in either."""
    right, n_predicted, n_true = 0, 0, 0
    for lo, hi in pairwise(offsets):
        guess, gold = chunks(predicted[lo:hi]), chunks(truth[lo:hi])
        right, n_predicted, n_true = right + len(guess & gold), n_predicted + len(guess), n_true + len(gold)
    return 2 * right / (n_predicted + n_true) if n_predicted + n_true else 0.0
