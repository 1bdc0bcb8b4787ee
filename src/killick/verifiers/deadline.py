"""A time limit for pure-Python work that also holds off the main thread, where signals cannot be used.

A watching thread raises an exception inside the working one (CPython's `PyThreadState_SetAsyncExc`). As with a signal,
one uninterruptible call into C is not cut short, so callers refuse inputs that lead to huge integers beforehand.
"""

import ctypes
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")
_REPEAT_S = 1.0  # the exception is raised again this often, should some bare `except:` swallow it


class DeadlineExceeded(BaseException):
    """The work took too long. Not an `Exception`, so that `except Exception` inside the work lets it through."""


class _Watch:
    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._target = threading.get_ident()
        self._closed = False
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The exception may arrive in here as well; then closing starts over, and nothing is raised after it.
        while not self._closed:
            try:
                self._close()
            except DeadlineExceeded:
                continue

    def _close(self) -> None:
        with self._lock:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._target), None)  # clears a pending one
            self._closed = True
        self._wake.set()

    def _run(self) -> None:
        wait_s = self._limit_s
        while not self._wake.wait(wait_s):
            with self._lock:
                if self._closed:
                    return
                raised = ctypes.py_object(DeadlineExceeded)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._target), raised)
            wait_s = _REPEAT_S


def within(limit_s: float, work: Callable[[], T]) -> T:
    """The result of `work()`.

    Args:
        limit_s: seconds allowed.
        work: pure Python, safe to abandon half-way.

    Raises:
        DeadlineExceeded: it was not finished in time.
    """
    with _Watch(limit_s):
        return work()
