"""Verifiers where verl and other engines call them: in Ray's tasks, actors with threads, and asynchronous actors."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed")

SUM = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}+\begin{pmatrix}1&2\\3&%d\end{pmatrix}"
GOLD = r"\begin{pmatrix}2&4\\6&8\end{pmatrix}"  # 4 + 4; only math-verify, in a worker process, adds matrices
COMPLETIONS = [rf"\boxed{{{SUM % n}}}" for n in (4, 5)] + [r"\boxed{\sqrt{8}}"]
ANSWERS = [GOLD, GOLD, r"2\sqrt{2}"]
EXPECTED = ["right", "wrong", "right"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def judge() -> list[str]:
    from killick.verifiers.latex import LatexVerifier

    return [verdict.reason for verdict in LatexVerifier(timeout_s=120).judge_many(COMPLETIONS, ANSWERS)]


class Judge:
    def judge(self) -> list[str]:
        return judge()

    def killed(self) -> tuple[str, float]:
        from killick.verifiers.service import Service

        service = Service(workers=1)
        slow, fine = service.call("time:sleep", [[600]], 0.5)[0], service.call("operator:add", [[1, 2]], 60)[0]
        service.close()
        return slow.problem, fine.value

    def workers(self) -> list[int]:
        from killick.verifiers.service.pool import shared

        return [worker.process.pid for worker in shared()._all]


class AsyncJudge:
    async def judge(self) -> list[str]:
        import asyncio

        return await asyncio.to_thread(judge)

    async def judge_in_the_loop(self) -> list[str]:
        return judge()


def test_in_tasks(cluster: None) -> None:
    task = ray.remote(judge)
    assert ray.get([task.remote() for _ in range(3)], timeout=300) == [EXPECTED] * 3


def test_in_an_actor_with_threads(cluster: None) -> None:
    actor = ray.remote(Judge).options(max_concurrency=4).remote()
    assert ray.get([actor.judge.remote() for _ in range(8)], timeout=300) == [EXPECTED] * 8
    assert ray.get(actor.killed.remote(), timeout=300) == ("timeout", 3)
    workers = ray.get(actor.workers.remote(), timeout=60)
    assert 1 <= len(workers) <= 4
    ray.kill(actor)  # SIGKILL: nothing of the actor's own can clean up
    deadline = time.monotonic() + 60
    while any(map(_runs, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_runs, workers))


def _runs(pid: int) -> bool:
    """Whether a process is there and is more than an entry that its new parent has not collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_in_an_asynchronous_actor(cluster: None) -> None:
    actor = ray.remote(AsyncJudge).remote()
    calls = [actor.judge.remote(), actor.judge_in_the_loop.remote(), actor.judge.remote()]
    assert ray.get(calls, timeout=300) == [EXPECTED] * 3
