"""Own time and memory of evaluate, resume, compare and report on 100,000 records; sampling itself is left out.

400 problems × 250 samples, texts of about 300 tokens, judged by the verifier of mathematical answers. Each step runs in
a process of its own, so that its peak memory is its own.

    python tools/bench_records.py [--problems 400] [--samples 250] [--out runs/bench_records.json]
"""

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROSE = (
    "we first rewrite the given expression so that every term has the same denominator then observe that both sides "
    "are positive and hence we may square them which gives a quadratic in one variable whose discriminant must be a "
    "perfect square checking small cases by hand shows only few values remain"
)
FORMS = ("{0}", "{0}.0", r"\frac{{{1}}}{{2}}", "{0} ", r"\sqrt{{{2}}}", "{0}+x", r"\text{{none}}")
STEPS = ("evaluate", "resume_half", "resume_done", "compare", "report")


def completion(rng: random.Random, answer: int) -> str:
    """About 300 tokens of prose and formulas (1.2 kB), and in most cases a box."""
    parts = []
    for _ in range(12):
        parts.append(" ".join(rng.choices(PROSE.split(), k=12)).capitalize())
        parts.append(f"$x_{{{rng.randrange(9)}}} = {rng.randrange(900)} - {rng.randrange(90)}y$.")
    if rng.random() < 0.05:
        return " ".join(parts)  # truncated, no answer
    value = answer if rng.random() < 0.4 else answer + rng.randrange(1, 200)
    boxed = rng.choice(FORMS).format(value, 2 * value, value * value)
    return " ".join(parts) + rf" The final answer is $\boxed{{{boxed}}}$."


class CannedSampler:
    """A sampler that costs next to nothing: the texts exist before the clock starts."""

    def __init__(self, texts: dict[tuple[str, int], str], batch_size: int = 512) -> None:
        self.texts, self.batch_size, self.spent_s = texts, batch_size, 0.0

    def sample(self, rows: Any, settings: Any, done: Any = frozenset()) -> Any:
        from killick.evaluate.backends.types import Completion

        jobs = [(row.uid, n) for row in rows for n in range(settings.num_samples) if (row.uid, n) not in done]
        for start in range(0, len(jobs), self.batch_size):
            began = time.perf_counter()
            batch = [
                Completion(uid, n, self.texts[uid, n], len(self.texts[uid, n]) // 4, "boxed" not in self.texts[uid, n])
                for uid, n in jobs[start : start + self.batch_size]
            ]
            self.spent_s += time.perf_counter() - began
            yield batch


def write_problems(folder: Path, num_problems: int) -> None:
    lines = [json.dumps({"problem": f"Problem {n}?", "answer": str(n * 7 + 3)}) for n in range(num_problems)]
    (folder / "problems.jsonl").write_text("\n".join(lines) + "\n")


def evaluate(folder: Path, name: str, num_samples: int) -> tuple[float, float]:
    """One evaluation into `folder/name`, or what is missing of it; seconds as `step`, without making texts."""
    from killick.evaluate.run import evaluate_with
    from killick.evaluate.settings import ModelIdentity, SamplingSettings, describe
    from killick.tasks.jsonl import JsonLines

    task = JsonLines(path=str(folder / "problems.jsonl"))
    rng = random.Random(0)
    texts = {(row.uid, n): completion(rng, int(row.answer)) for row in task.rows("train") for n in range(num_samples)}
    sampler = CannedSampler(texts)
    began, cpu_began = time.perf_counter(), time.process_time()
    sampling = SamplingSettings(num_samples=num_samples, max_tokens=2048, seed=0)
    spec = describe("jsonl", task, "train", None, sampling, ModelIdentity("canned", "canned"))
    evaluate_with(sampler, task, spec, folder / name, progress=False)
    return time.perf_counter() - began - sampler.spent_s, time.process_time() - cpu_began


def step(name: str, folder: Path, num_samples: int) -> tuple[float, float]:
    """Run one step; its seconds on the clock, and of this process on a processor (the two differ on a busy machine)."""
    if name == "evaluate":
        return evaluate(folder, "first", num_samples)
    if name == "resume_half":
        shutil.copytree(folder / "first", folder / "second")
        records = folder / "second" / "records.jsonl"
        with records.open("rb+") as file:
            file.truncate(records.stat().st_size // 2)
        return evaluate(folder, "second", num_samples)
    if name == "resume_done":
        return evaluate(folder, "second", num_samples)
    began, cpu_began = time.perf_counter(), time.process_time()
    if name == "compare":
        from killick.evaluate.compare import compare

        compare([folder / "first", folder / "second"])
    else:
        from killick.report.page import write_report

        write_report(folder / "first", folder / "report.html")
    return time.perf_counter() - began, time.process_time() - cpu_began


def measured(name: str, folder: Path, num_samples: int) -> dict[str, float]:
    """One step in a process of its own: seconds of the step, and of the whole process, and its peak memory."""
    began = time.perf_counter()
    argv = [sys.executable, __file__, "--step", name, "--folder", str(folder), "--samples", str(num_samples)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    return {**json.loads(done.stdout.splitlines()[-1]), "process_s": round(time.perf_counter() - began, 2)}


def run(num_problems: int = 400, num_samples: int = 250) -> dict[str, Any]:
    """All steps; the limits for each are a minute of this process's own time, and 2 GiB with its largest worker."""
    with tempfile.TemporaryDirectory() as made:
        write_problems(Path(made), num_problems)
        steps = {name: measured(name, Path(made), num_samples) for name in STEPS}
        size = (Path(made) / "first" / "records.jsonl").stat().st_size
    fits = all(one["cpu_s"] < 60 and one["peak_mib"] + one["worker_peak_mib"] < 2048 for one in steps.values())
    return {
        "num_records": num_problems * num_samples, "records_mib": round(size / 2**20, 1), "steps": steps,
        "within_60_cpu_s_and_2_gib": fits,
    }  # fmt: skip


UNIT = 2**20 if sys.platform == "darwin" else 2**10


def own_peak_mib() -> float:
    """Highest resident memory of this process. On Linux ru_maxrss would start at what the parent had."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNIT
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 2**10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=400)
    parser.add_argument("--samples", type=int, default=250)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        own_s, cpu_s = step(asked.step, asked.folder, asked.samples)
        peak, worker = own_peak_mib(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / UNIT
        spent = {"own_s": round(own_s, 2), "cpu_s": round(cpu_s, 2)}
        print(json.dumps({**spent, "peak_mib": round(peak), "worker_peak_mib": round(worker)}))
        return
    text = json.dumps(run(asked.problems, asked.samples), indent=2)
    print(text)
    if asked.out:
        asked.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
