"""Where dumps are read: in processes on this machine, or on those of a Dask scheduler.

All of them are a `concurrent.futures.Executor`, and callers need to know no more. Dask is loaded
only if it is requested.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager

from analyzer.errors import InputError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

PROCESSES: Final = "processes"
SERIAL: Final = "serial"
_SCHEDULERS: Final = ("tcp://", "tls://", "ucx://")
#: Seconds to wait for a scheduler.
_PATIENCE: Final = 10


def check_engine(text: str) -> str:
    """Return the engine that ``--engine`` names.

    Raises:
        UsageError: it is no engine.
    """
    if text in {PROCESSES, SERIAL} or text.startswith(_SCHEDULERS):
        return text
    raise UsageError(
        f"--engine {text}: expected processes, serial, or the address of a Dask scheduler, for "
        "example tcp://10.0.0.5:8786"
    )


def workers_here() -> int:
    """Return how many processes this machine can run at once."""
    return len(os.sched_getaffinity(0))


class Engine:
    """Makes executors, and a new one if the last has broken.

    Attributes:
        workers: how many tasks it works on at once.
    """

    def __init__(self, name: str, workers: int, begin: Callable[..., None], memory: int) -> None:
        self.name = name
        self.workers = workers
        self._begin = begin
        self._memory = memory
        self._client: Any = None

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        """Yield an executor; its workers are gone afterwards, whatever they were doing."""
        if self.name == SERIAL:
            yield Serial()
            return
        if self.name != PROCESSES:
            yield self._dask()
            return
        pool = ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("forkserver"),
            initializer=self._begin,
            initargs=(self._memory,),
        )
        try:
            yield pool
        finally:
            own = [*(getattr(pool, "_processes", None) or {}).values()]
            pool.shutdown(wait=False, cancel_futures=True)
            for each in own:
                each.terminate()
            for each in own:
                each.join()

    def close(self) -> None:
        """Disconnect from a scheduler, if one was used."""
        if self._client is not None:
            self._client.close()

    def _dask(self) -> Executor:
        if self._client is None:
            self._client = _client(self.name)
            self.workers = max(1, sum(self._client.nthreads().values()))
        made: Executor = self._client.get_executor(pure=False)
        return made


def _client(address: str) -> Any:
    """Return a client of a scheduler.

    Raises:
        InputError: Dask is not installed, or the scheduler does not answer.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise InputError(
            f"--engine {address}: Dask distributed is not installed; "
            "pip install '.[cluster]' in a clone of kubeodds"
        ) from None
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(f"--engine {address}: {error}") from None
    if not client.nthreads():
        client.close()
        raise InputError(f"--engine {address}: the scheduler has no workers; start some first")
    return client


class Serial(Executor):
    """Runs each task when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a task and return its finished future."""
        found: Future[Any] = Future()
        try:
            found.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  # raised again where the result is used
            found.set_exception(error)
        return found
