"""What runs in a worker process: one line of JSON in, one line of JSON out, until standard input ends.

A request names a function by import path; the name comes from this package's own code, never from a completion. JSON
carries null bytes and lone surrogates unharmed and, unlike pickle, cannot carry code.
"""

import importlib
import json
import os
import signal
import sys
from typing import Any, BinaryIO

_GRACE_S = 2.0  # the parent kills first; this is for a worker whose parent is gone


def limit_memory(extra_bytes: int) -> None:
    """Let the address space grow by no more than this from now on (where the system can limit it)."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return  # not Linux: only the time is bounded
    resource.setrlimit(resource.RLIMIT_AS, (used + extra_bytes, used + extra_bytes))


def find(path: str) -> Any:
    """The function behind `package.module:name`."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The outcome of one request; whatever the function raises is an outcome as well."""
    try:
        return {"value": find(request["function"])(*request["arguments"])}
    except MemoryError:
        return {"problem": "memory", "detail": "MemoryError"}
    except Exception as error:
        return {"problem": "error", "detail": f"{type(error).__name__}: {str(error)[:300]}"}


def serve(requests: BinaryIO, replies: BinaryIO, warm_up: list[str], memory_mb: int) -> None:
    """Import what will be called, say so, limit the memory, answer requests."""
    try:
        for path in warm_up:
            find(path)()
    except Exception as error:
        replies.write(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode() + b"\n")
        replies.flush()
        return
    limit_memory(memory_mb * 1024 * 1024)
    replies.write(b'{"ready": true}\n')
    replies.flush()
    for line in requests:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, request["limit_s"] + _GRACE_S)  # its default action ends the process
        reply = answer(request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()
        if reply.get("problem") == "memory":
            return  # what is left of this process is not to be trusted


def main(settings: str) -> None:
    """Entry point: keeps the reply pipe to itself, so that nothing a library prints gets into it."""
    options = json.loads(settings)
    sys.setrecursionlimit(2000)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, replies, options["warm_up"], options["memory_mb"])
