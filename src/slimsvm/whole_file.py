"""Files that are written whole or not at all: models, checkpoints, exports, pages, reports."""

import errno
import os
import secrets
import stat
from collections.abc import Iterable

# A name of at most this many characters leaves room for what a partial file's name adds to it.
_NAME_LENGTH = 40


def write_whole(path: str | os.PathLike, parts: Iterable[str | bytes | memoryview]) -> None:
    """Write a file: whole, or not at all.

    What is written has the name ``.NAME.….partial`` in the same folder until all of it is on the disk, and then takes
    the file's name. On any failure the earlier file is as it was, and nothing else is left; a process that was killed
    leaves the partial file. The new file has the mode of the earlier one, and a symbolic link still leads to it. What
    is not a regular file, such as a pipe, and what is open already, as ``/dev/stdout`` is, is written to directly.

    Text becomes UTF-8. An OSError (`FileNotFoundError`, `PermissionError`, disk full, ...) names the path.
    """
    path_of_file = os.fsdecode(path)
    encoded = (part.encode() if isinstance(part, str) else part for part in parts)
    try:
        if not os.path.basename(path_of_file):  # "folder/" is no name of a file, whether there is such a folder or not
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        earlier = _mode(path)
        is_open = None if earlier is None else _descriptor(path_of_file)
        if earlier is None or (stat.S_ISREG(earlier) and is_open is None):
            _replace(os.path.realpath(path_of_file), encoded, earlier)
        else:
            with open(path if is_open is None else os.dup(is_open), "wb") as file:
                for part in encoded:
                    file.write(part)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _mode(path: str | os.PathLike) -> int | None:
    """Return type and permissions of the file of this name; None if there is none."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return mode


def _descriptor(path: str) -> int | None:
    """Return the number of the open file that a link such as /dev/stdout leads to; None of other paths."""
    while os.path.islink(path):
        folder, name = os.path.split(path)
        if os.path.realpath(folder) == f"/proc/{os.getpid()}/fd":
            return int(name)
        path = os.path.join(folder, os.readlink(path))
    return None


def _replace(target: str, parts: Iterable[bytes | memoryview], earlier: int | None) -> None:
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:_NAME_LENGTH]}.{secrets.token_hex(8)}.partial")
    try:
        with open(temporary, "xb") as file:
            if earlier is not None and os.stat(temporary).st_mode != earlier:
                os.chmod(temporary, stat.S_IMODE(earlier))
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
