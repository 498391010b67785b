"""Data: readers of files, loaders of benchmark sets, generators.

`read_data` reads LIBSVM text, CSV and `.npz`, `read_libsvm_blocks` LIBSVM text of any size, `read_columns` sequences of
words in columns. `load` gives a benchmark set with its documented split and scaling, `find` and `available` say which
are on this machine and where. `checkerboard`, `waveform` and `two_gaussians` make data of any size.
"""

from slimsvm.datasets.files import DataError, DataWarning
from slimsvm.datasets.generators import checkerboard, two_gaussians, waveform
from slimsvm.datasets.libsvm_text import read_libsvm_blocks
from slimsvm.datasets.loading import Dataset, DatasetInfo, Scaling, available, find, fit_scaling, load
from slimsvm.datasets.readers import has_queries, hash_columns, read_columns, read_data

__all__ = [
    "DataError",
    "DataWarning",
    "Dataset",
    "DatasetInfo",
    "Scaling",
    "available",
    "checkerboard",
    "find",
    "fit_scaling",
    "has_queries",
    "hash_columns",
    "load",
    "read_columns",
    "read_data",
    "read_libsvm_blocks",
    "two_gaussians",
    "waveform",
]
