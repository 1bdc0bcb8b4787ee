"""The worker processes: bounds on time and memory, order, threads, asyncio, forked and spawned parents, clean ends."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from killick.errors import VerifierError
from killick.verifiers.service import Service

DIVIDE = "operator:truediv"


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service(workers=2, memory_mb=200)
    yield made
    made.close()


def values(outcomes: list) -> list:
    return [outcome.value for outcome in outcomes]


def test_nothing_starts_before_the_first_call() -> None:
    made = Service(workers=2)
    assert made._all == set()


def test_order_is_kept_and_equal_calls_are_made_once(service: Service) -> None:
    calls = [[n, 4] for n in (7, 3, 7, 1, 5)] * 3
    assert values(service.call(DIVIDE, calls, 60)) == [1.75, 0.75, 1.75, 0.25, 1.25] * 3


def test_cached_outcomes_need_no_worker(service: Service) -> None:
    service.call(DIVIDE, [[1, 2]], 60)
    service.close()
    assert values(service.call(DIVIDE, [[1, 2]], 60)) == [0.5]
    assert service._all == set()


def test_an_exception_is_an_outcome_and_the_worker_goes_on(service: Service) -> None:
    wrong, right = service.call(DIVIDE, [[1, 0], [1, 1]], 60)
    assert (wrong.problem, wrong.detail) == ("error", "ZeroDivisionError: division by zero")
    assert right.value == 1.0
    assert service.num_killed == 0


def test_a_call_that_does_not_end_is_killed_and_its_worker_replaced(service: Service) -> None:
    service.call(DIVIDE, [[1, 2], [3, 2]], 60)  # both workers are up
    start = time.perf_counter()
    outcomes = service.call("time:sleep", [[600], [0], [601], [0.001]], 0.5)
    took = time.perf_counter() - start
    assert [outcome.problem for outcome in outcomes] == ["timeout", "", "timeout", ""]
    assert 0.5 <= took < 30  # two bounds and the start of new processes, not 600 s
    assert service.num_killed == 2
    assert values(service.call(DIVIDE, [[5, 2]], 60)) == [2.5]


def test_uninterruptible_work_in_c_is_killed_as_well(service: Service) -> None:
    """A power of ten billion digits is one call into C: no exception gets in, no signal handler runs."""
    (outcome,) = service.call("operator:pow", [[9, 10**10]], 1.0)
    assert outcome.problem == "timeout"


def test_too_much_memory_is_a_timeout_and_the_worker_is_replaced(service: Service) -> None:
    too_much, fine = service.call("operator:mul", [["x", 10**9], ["x", 3]], 60)
    assert (too_much.problem, too_much.detail) == ("timeout", "ended at the memory limit")
    assert fine.value == "xxx"
    assert service.num_killed == 1


def test_a_worker_that_dies_is_an_error_of_its_own_item(service: Service) -> None:
    dead, fine = service.call("os:_exit", [[3]], 60)[0], service.call(DIVIDE, [[1, 2]], 60)[0]
    assert (dead.problem, dead.detail) == ("error", "the worker process died")
    assert fine.value == 0.5


def test_texts_arrive_as_they_are(service: Service) -> None:
    odd = ["\x00", "\ud800", "\u202e\u200b", '"\n\\', "é"]
    assert values(service.call("operator:add", [[text, "|"] for text in odd], 60)) == [text + "|" for text in odd]


def test_a_worker_that_cannot_start_is_no_verdict() -> None:
    broken = Service(workers=1, warm_up=["killick.no_such_module:f"])
    with pytest.raises(VerifierError, match="no_such_module"):
        broken.call(DIVIDE, [[1, 2]], 60)
    assert broken._all == set()


def test_many_threads_share_the_workers(service: Service) -> None:
    found: dict[int, list] = {}

    def work(number: int) -> None:
        found[number] = values(service.call("operator:mul", [[number, n] for n in range(20)], 60))

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert found == {number: [number * n for n in range(20)] for number in range(8)}
    assert len(service._all) <= 2


def test_from_asyncio(service: Service) -> None:
    async def main() -> list:
        calls = [asyncio.to_thread(service.call, DIVIDE, [[n, 2]], 60) for n in range(6)]
        return [values(outcomes) for outcomes in await asyncio.gather(*calls)]

    assert asyncio.run(main()) == [[n / 2] for n in range(6)]
    assert values(asyncio.run(_inside_the_loop(service))) == [9.0]


async def _inside_the_loop(service: Service) -> list:
    return service.call(DIVIDE, [[18, 2]], 60)  # blocks the loop, but works


SCRIPT = r"""
import multiprocessing, os, signal, sys, time
from killick.verifiers.service import Service, shared

def child(queue):
    from killick.verifiers.latex import LatexVerifier
    matrix = lambda n: r"\begin{pmatrix}1&2\\3&%d\end{pmatrix}" % n
    verdicts = LatexVerifier(timeout_s=120).judge_many(
        [r"\boxed{%s+%s}" % (matrix(4), matrix(4))] * 2,
        [r"\begin{pmatrix}2&4\\6&%d\end{pmatrix}" % n for n in (8, 9)],
    )
    queue.put([v.reason for v in verdicts])

def main(method, daemon):
    assert shared().call("operator:add", [["a", "b"]], 60)[0].value == "ab"  # the parent has workers of its own
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=child, args=[queue], daemon=daemon)
    process.start()
    assert queue.get(timeout=300) == ["right", "wrong"], "verdicts of the child"
    process.join(60)
    assert process.exitcode == 0
    assert shared().call("operator:add", [["c", "d"]], 60)[0].value == "cd"  # its workers are still there
    shared().close()
    print("fine")

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "daemon")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("daemon", ["daemon", "plain"])
def test_in_forked_and_spawned_processes(tmp_path: Path, method: str, daemon: str) -> None:
    """Daemonic processes may not have `multiprocessing` children; ours are none."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    out = subprocess.run(
        [sys.executable, str(script), method, daemon], capture_output=True, text=True, timeout=400, check=False
    )
    assert (out.stdout, out.returncode) == ("fine\n", 0), out.stderr


ENDS = """
import os, signal, sys, threading, time
from killick.verifiers.service import Service

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that started this in the background ignores it
service = Service(workers=2)
service.call("operator:add", [["a", "b"], ["c", "d"]], 60)
print(*[worker.process.pid for worker in service._all], flush=True)
{action}
"""


def start(action: str) -> tuple[subprocess.Popen, list[int]]:
    code = ENDS.format(action=textwrap.dedent(action))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    return process, [int(word) for word in process.stdout.readline().split()]


def gone(pids: list[int], within_s: float) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(not os.path.exists("/proc/self"), reason="looks for processes in /proc")
class TestEnds:
    def test_a_process_that_ends_leaves_no_worker(self) -> None:
        process, pids = start("")
        assert process.wait(60) == 0
        assert len(pids) == 2
        assert gone(pids, 10)

    def test_closing_leaves_no_zombie(self) -> None:
        process, pids = start(
            """
            service.close()
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                sys.exit(0)
            sys.exit(3)
            """
        )
        assert process.wait(60) == 0
        assert gone(pids, 10)

    def test_ctrl_c_ends_the_call_and_its_workers(self) -> None:
        process, pids = start("service.call('time:sleep', [[300], [301]], 200)")
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert "KeyboardInterrupt" in errors
        assert gone(pids, 10)

    def test_workers_of_a_killed_process_end_at_their_bound(self) -> None:
        process, pids = start("service.call('operator:pow', [[9, 10**10], [9, 10**10 + 1]], 2.0)")
        time.sleep(1.0)
        process.kill()
        process.wait(30)
        assert gone(pids, 30)
