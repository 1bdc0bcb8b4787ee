"""A pool of worker processes for calls that may never end: killed and replaced when they exceed their bounds.

Workers are plain child processes with pipes, not `multiprocessing` ones: they start from any thread, from a daemonic
process, need no `__main__` guard, and share nothing with a parent that was forked or spawned. There are
no background threads: whoever calls waits for the pipes itself, so nothing is left running between calls.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, Literal, NamedTuple

from killick.errors import VerifierError

Problem = Literal["", "timeout", "error"]
_STARTUP_S = 120.0  # importing sympy on a loaded machine
_CACHED = 65_536
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from killick.verifiers.service.worker import main; main(sys.argv[2])"
)


class Outcome(NamedTuple):
    """What a call came to: its value, or what prevented one (`timeout` also stands for too much memory)."""

    value: Any = None
    problem: Problem = ""
    detail: str = ""


class _Worker:
    """One process, and the call it is busy with."""

    def __init__(self, settings: str) -> None:
        if not sys.executable:
            raise VerifierError("Worker processes need the path of the interpreter, but sys.executable is empty.")
        self.process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, json.dumps(sys.path), settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches the caller, who then ends the worker
        )
        assert self.process.stdin, "it was asked for as a pipe"
        assert self.process.stdout, "it was asked for as a pipe"
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self.ready = False
        self._buffer = b""
        self.index = -1
        self.deadline = time.monotonic() + _STARTUP_S
        self._request: dict[str, Any] = {}

    def fileno(self) -> int:
        return self._stdout.fileno()

    def take(self, index: int, request: dict[str, Any]) -> None:
        """Be given a call; its time starts when the process is ready for it."""
        self.index, self._request = index, request
        if self.ready:
            self._send()

    def _send(self) -> None:
        # The time starts before the write: a worker that waits for a request reads it at once.
        self.deadline = time.monotonic() + self._request["limit_s"]
        try:
            self._stdin.write(json.dumps(self._request).encode() + b"\n")
            self._stdin.flush()
        except BrokenPipeError:
            return  # it died while idle; the end of its output is the next thing the caller sees

    def receive(self) -> dict[str, Any] | None:
        """A reply, {} when it is not complete yet, None when the process has ended."""
        chunk = os.read(self.fileno(), 1 << 16)
        if not chunk:
            return None
        self._buffer += chunk
        line, newline, rest = self._buffer.partition(b"\n")
        if not newline:
            return {}
        self._buffer = rest
        reply: dict[str, Any] = json.loads(line)
        if "failed" in reply:
            raise VerifierError(f"A worker process of the verifier could not start: {reply['failed']}.")
        if "ready" in reply:
            self.ready = True
            self._send()
            return {}
        return reply

    def close_pipes(self) -> None:
        for pipe in (self._stdin, self._stdout):
            with suppress(OSError):  # data that was not flushed to a process that is gone
                pipe.close()

    def end(self) -> int:
        """Kill the process, wait for it (no zombie stays) and return its exit code."""
        self.process.kill()
        code = self.process.wait()
        self.close_pipes()
        return code


class Service:
    """Calls functions in worker processes.

    Args:
        workers: processes at most; None takes one per processor this process may use, four at most.
        memory_mb: MiB a worker may take beyond what it has after its imports.
        warm_up: functions without arguments, as `package.module:name`, called once in every new worker.
    """

    def __init__(self, workers: int | None = None, memory_mb: int = 1024, warm_up: Sequence[str] = ()) -> None:
        self.max_workers = workers or min(4, _processors())
        self._settings = json.dumps({"warm_up": list(warm_up), "memory_mb": memory_mb})
        self.num_killed = 0
        self._cache: OrderedDict[str, Outcome] = OrderedDict()
        self._reset()
        _SERVICES.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._starting = 0
        self._waiting = 0

    def call(self, function: str, calls: Sequence[Sequence[Any]], timeout_s: float) -> list[Outcome]:
        """Outcomes of `function(*arguments)` for every element of `calls`, in that order.

        Blocks; from asyncio, call it with `asyncio.to_thread`. Equal calls are made once, outcomes without a problem
        are remembered.

        Args:
            function: `package.module:name`; arguments and value must be JSON.
            calls: arguments of each call.
            timeout_s: wall-clock seconds for one call, not counting the start of a process.

        Raises:
            VerifierError: a worker cannot be started.
        """
        keys = [json.dumps([function, *arguments]) for arguments in calls]
        outcomes = {key: self._cache[key] for key in keys if key in self._cache}
        todo = {key: list(arguments) for key, arguments in zip(keys, calls, strict=True) if key not in outcomes}
        requests = [{"function": function, "arguments": a, "limit_s": timeout_s} for a in todo.values()]
        for key, outcome in zip(todo, self._run(requests), strict=True):
            outcomes[key] = outcome
            if not outcome.problem:
                self._cache[key] = outcome
        while len(self._cache) > _CACHED:
            with suppress(KeyError):  # another thread may have emptied it
                self._cache.popitem(last=False)
        return [outcomes[key] for key in keys]

    def _run(self, requests: Sequence[dict[str, Any]]) -> list[Outcome]:
        outcomes = [Outcome()] * len(requests)
        pending = deque(enumerate(requests))
        busy: set[_Worker] = set()
        try:
            while pending or busy:
                while pending and (worker := self._acquire(block=not busy)):
                    busy.add(worker)
                    worker.take(*pending.popleft())
                self._collect(busy, outcomes)
        except BaseException:  # Ctrl-C too: what the workers do now is of no use to anybody
            for worker in busy:
                self._replace(worker)
            raise
        return outcomes

    def _collect(self, busy: set[_Worker], outcomes: list[Outcome]) -> None:
        """Wait until something happens to a busy worker, and note it."""
        patience = max(0.0, min(worker.deadline for worker in busy) - time.monotonic())
        readable = wait([worker.fileno() for worker in busy], patience)
        for worker in list(busy):
            if worker.fileno() in readable:
                reply = worker.receive()
                if reply == {}:
                    continue
                outcome = self._outcome(worker, reply)
            elif time.monotonic() >= worker.deadline:
                if not worker.ready:
                    raise VerifierError(f"A worker process of the verifier did not start within {_STARTUP_S:.0f} s.")
                outcome = Outcome(problem="timeout", detail="killed at the time limit")
            else:
                continue
            outcomes[worker.index] = outcome
            busy.discard(worker)
            if _can_go_on(outcome):
                self._release(worker)
            else:
                self._replace(worker)

    def _outcome(self, worker: _Worker, reply: dict[str, Any] | None) -> Outcome:
        if reply is None:
            if not worker.ready:
                raise VerifierError("A worker process of the verifier ended before it was ready.")
            return Outcome(problem="error", detail="the worker process died")
        if reply.get("problem") == "memory":
            return Outcome(problem="timeout", detail="ended at the memory limit")
        return Outcome(reply.get("value"), reply.get("problem", ""), reply.get("detail", ""))

    def _acquire(self, block: bool) -> _Worker | None:
        """An idle or a new worker; None when there is none and `block` is off, or when another thread has none yet."""
        with self._changed:
            if not block and self._waiting:
                return None
            self._waiting += 1
            try:
                while not self._idle and len(self._all) + self._starting >= self.max_workers:
                    if not block:
                        return None
                    self._changed.wait()
            finally:
                self._waiting -= 1
            if self._idle:
                return self._idle.pop()
            self._starting += 1
        try:
            worker = _Worker(self._settings)
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify()
        with self._changed:
            self._all.add(worker)
        return worker

    def _release(self, worker: _Worker) -> None:
        with self._changed:
            self._idle.append(worker)
            self._changed.notify()

    def _replace(self, worker: _Worker) -> None:
        """End a worker; the next call that needs one starts another."""
        worker.end()
        with self._changed:
            self.num_killed += 1
            self._all.discard(worker)
            self._changed.notify()

    def close(self) -> None:
        """End all idle workers; the service may be used again."""
        with self._changed:
            idle, self._idle = self._idle, []
            self._all.difference_update(idle)
        for worker in idle:
            worker.end()

    def _forget(self) -> None:
        """In a forked child: the workers are the parent's, and so is whatever state the lock was in."""
        for worker in self._all:
            worker.process.returncode = 0  # never wait for, or kill, a process of somebody else
            worker.close_pipes()
        self._reset()


def _can_go_on(outcome: Outcome) -> bool:
    """Whether the worker behind an outcome can go on: it answered, even if only with an exception."""
    return not outcome.problem or (outcome.problem == "error" and outcome.detail != "the worker process died")


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_SERVICES: "weakref.WeakSet[Service]" = weakref.WeakSet()
_SHARED: Service | None = None
_SHARED_LOCK = threading.Lock()


def shared() -> Service:
    """The service of this process for math-verify; its workers start with the first call and end with the process."""
    global _SHARED
    with _SHARED_LOCK:
        if _SHARED is None:
            _SHARED = Service(warm_up=["killick.verifiers.answers.backend:warm_up"])
        return _SHARED


def _close_all() -> None:
    for service in list(_SERVICES):
        service.close()


def _after_fork() -> None:
    global _SHARED_LOCK
    _SHARED_LOCK = threading.Lock()
    for service in list(_SERVICES):
        service._forget()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
