"""Tasks for a Dask cluster, their results, and clear errors where workers or the scheduler are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any
from uuid import uuid4


def client_of(given: Any) -> Any:
    """The given client, or the connected one.

    Raises
    ------
    ImportError
        There is no dask.distributed.
    ValueError
        None was given, and none is connected.
    """
    try:
        from distributed import get_client
    except ImportError as error:
        raise ImportError("slimsvm.dask needs Dask: pip install 'slimsvm[dask]'") from error
    if given is not None:
        return given
    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "no Dask client is connected: make one, distributed.Client(address), or distributed.Client() for a cluster "
            "on this machine, or give client="
        ) from None


@contextmanager
def large_graphs() -> Iterator[None]:
    """Silence the warning of large graphs: labels and bases travel with tasks, so that any worker can run them."""
    from dask import config

    with config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        yield


class Cluster:
    """Tasks by one client. They are pure: a task that is lost with its worker runs again on another one."""

    def __init__(self, client: Any):
        self.client = client

    def n_threads(self) -> int:
        """Number of threads of all present workers, at least 1."""
        with self.heard():
            return max(1, sum(self.client.nthreads().values()))

    def submit(self, function: Callable[..., Any], *own: Any) -> Any:
        """A future of function(*own), where own may be futures."""
        return self.submit_all(function, *([item] for item in own))[0]

    def submit_all(self, function: Callable[..., Any], *columns: list[Any]) -> list[Any]:
        """A future of function(*own) for each line of the columns, in one message."""
        name, run = function.__name__.strip("_"), uuid4().hex
        keys = [f"slimsvm-{name}-{run}-{i}" for i in range(len(columns[0]))]
        with self.heard(), large_graphs():
            return self.client.map(function, *columns, key=keys, pure=False)

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Futures of delayed values."""
        with self.heard(), large_graphs():
            return self.client.compute(delayed)

    def gather(self, futures: list[Any]) -> list[Any]:
        """The values of futures, in order."""
        with self.heard():
            return self.client.gather(futures)

    def gather_partitions(self, name: str, futures: list[Any], partitions: list[Any]) -> list[Any]:
        """Values of futures that depend on one partition each; an error names the partition that could not be made."""
        try:
            return self.gather(futures)
        except ConnectionError:
            raise
        except Exception as error:
            failed = [i for i, partition in enumerate(partitions) if partition.status == "error"]
            if not failed:
                raise
            kind = ValueError if isinstance(error, ValueError) else RuntimeError
            raise kind(f"partition {failed[0]} of {name} could not be made: {error}") from error

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Raise one clear error where the scheduler is gone, or a task kills its workers again and again."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        gone = CommClosedError, CancelledError, asyncio.CancelledError, TimeoutError
        try:
            yield
        except KilledWorker as error:
            raise RuntimeError(
                f"workers of the Dask cluster died again and again at the same task ({error}): if they ran out of "
                "memory, give them more, or start more of them"
            ) from error
        except gone as error:
            raise ConnectionError(self._lost()) from error
        except (RuntimeError, OSError) as error:
            if self.client.status in ("running", "connecting"):
                raise
            raise ConnectionError(self._lost()) from error

    def _lost(self) -> str:
        address = getattr(getattr(self.client, "scheduler", None), "address", "")
        return (
            f"the Dask scheduler {address} is gone, or has forgotten this fit: nothing was changed; connect to a "
            "scheduler, and fit again"
        )
