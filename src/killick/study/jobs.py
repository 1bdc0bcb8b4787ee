"""The jobs of a study: one process for each arm and seed, some at a time, watched by what they write."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from killick import provenance
from killick.config import Recipe, load_recipe
from killick.errors import ConfigError, KillickError, RecordError
from killick.study.definition import Study
from killick.tasks import TASKS


@dataclass
class Job:
    """One process: a base evaluation, or one arm with one seed (training, then evaluation)."""

    label: str
    folder: Path
    command: list[str]
    steps: int
    records: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Everything the process printed."""
        return self.folder / "job.log"

    def progress(self) -> tuple[int, int]:
        """Optimiser steps and evaluation records on disk."""
        records = sum(_lines(path) for path in self.folder.glob("eval/*/records.jsonl"))
        return _lines(self.folder / "train_log.jsonl"), records

    def finished(self) -> bool:
        """Whether everything this job makes is there."""
        records = self.progress()[1]
        return records >= self.records and (self.steps == 0 or (self.folder / "model" / "done.json").exists())


def _lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0


def plan(study: Study, out: Path) -> list[Job]:
    """All jobs of a study, and `study.json` written beside them.

    Raises:
        RecordError: the folder holds another study.
    """
    recipe = load_recipe(study.recipe, study.sets(None, None))
    _write_description(study, recipe, out)
    python = [sys.executable, "-m", "killick"]
    shared = [x for s in study.sets(None, None) for x in ("--set", s)]
    base = out / "base"
    evaluate = [*python, "evaluate", recipe.model.name_or_path, "--recipe", study.recipe, *shared]
    jobs = [Job("base", base, [*evaluate, "--out", str(base / "eval")], 0, _num_records(recipe))]
    for seed in study.seeds:
        for arm in study.arms:
            folder = out / "arms" / arm.name / f"seed{seed}"
            sets = [x for s in study.sets(arm, seed) for x in ("--set", s)]
            command = [*python, "train", study.recipe, "--run-dir", str(folder), *sets]
            own = load_recipe(study.recipe, study.sets(arm, seed))
            steps = int(own.trl.get("max_steps", 0))
            jobs.append(Job(f"{arm.label}, seed {seed}", folder, command, steps, _num_records(own)))
    return jobs


def _num_records(recipe: Recipe) -> int:
    """Answers that the evaluation of one model makes."""
    section = recipe.evaluate
    if section.num_problems is None:
        raise ConfigError("A study needs [evaluate] num_problems, so that all arms answer the same problems.")
    task = TASKS.build(recipe.task.name, **recipe.task.settings)
    # A split may hold fewer problems than asked for.
    num_problems = sum(len(task.rows(split, section.num_problems)) for split in section.splits)
    return num_problems * section.num_samples


def _write_description(study: Study, recipe: Recipe, out: Path) -> None:
    path = out / "study.json"
    splits = recipe.evaluate.splits
    data = {
        "name": study.name,
        "title": study.title,
        "seeds": list(study.seeds),
        "baseline": study.baseline,
        "settings": recipe.to_dict(),
        "base": {"label": "base", "evals": {split: f"base/eval/{split}" for split in splits}},
        "arms": [
            {
                "name": arm.name,
                "label": arm.label,
                "method": arm.method,
                "sweep": arm.sweep,
                "against": arm.against,
                "overrides": arm.overrides,
                "runs": [{"seed": seed, "dir": f"arms/{arm.name}/seed{seed}"} for seed in study.seeds],
            }
            for arm in study.arms
        ],
    }
    if path.exists():
        stored = provenance.read_json(path)
        keys = ("settings", "name")
        found = provenance.differences({k: stored.get(k) for k in keys}, {k: data[k] for k in keys})
        if found:
            raise RecordError(
                f"{out} holds another study (there / asked: {provenance.listed(found)}). Give another --out."
            )
    provenance.make_folder(out)
    provenance.write_json(path, data)


def run(study: Study, out: Path, console: Console) -> list[Job]:
    """Run all jobs, `study.jobs` at a time; returns those that failed.

    Raises:
        KeyboardInterrupt: after Ctrl-C, once every running job has written its checkpoint.
    """
    jobs = plan(study, out)
    waiting = [job for job in jobs if not job.finished()]
    running: list[Job] = []
    failed: list[Job] = []
    threads = max(1, (os.cpu_count() or 1) // study.jobs)
    with _bars(console) as bars:
        total = bars.add_task(
            f"{study.name}: {len(jobs)} jobs", total=len(jobs), completed=len(jobs) - len(waiting), note=""
        )
        tasks: dict[int, Any] = {}
        try:
            while waiting or running:
                while waiting and len(running) < study.jobs:
                    job = waiting.pop(0)
                    _start(job, threads)
                    running.append(job)
                    tasks[id(job)] = bars.add_task(job.label, total=job.steps + job.records or 1, note="starting")
                time.sleep(0.5)
                for job in list(running):
                    _show(bars, tasks[id(job)], job)
                    if job.process is not None and job.process.poll() is not None:
                        running.remove(job)
                        bars.remove_task(tasks.pop(id(job)))
                        bars.advance(total)
                        if job.process.returncode != 0:
                            failed.append(job)
                            console.print(f"[red]failed[/red] {job.label}: see {job.log}")
        except KeyboardInterrupt:
            _stop(running, console)
            raise
    return failed


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(), console=console,
    )  # fmt: skip


def _show(bars: Progress, task: Any, job: Job) -> None:
    steps, records = job.progress()
    if steps < job.steps:
        note = f"training, step {steps} of {job.steps}"
    else:
        note = f"sampling, {records:,} of {job.records:,} answers"
    bars.update(task, completed=steps + records, note=note)


def _start(job: Job, threads: int) -> None:
    job.folder.mkdir(parents=True, exist_ok=True)
    # A terminal sends Ctrl-C to the whole group; a session of its own lets the parent pass on exactly one.
    with job.log.open("ab") as log:
        job.process = subprocess.Popen(
            job.command,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"},
        )


def _stop(running: list[Job], console: Console) -> None:
    console.print("Stopping: each job finishes its step and writes a checkpoint …")
    for job in running:
        if job.process is not None:
            job.process.send_signal(signal.SIGINT)
    for job in running:
        if job.process is not None:
            try:
                job.process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                job.process.kill()


def finish(study: Study, out: Path, console: Console) -> None:
    """Table, `summary.json` and `report.html` from what is on disk."""
    from killick.report.load import load_study as load_results
    from killick.report.page import write_report
    from killick.report.summary import study_summary, summary_table

    results = load_results(out)
    provenance.write_json(out / "summary.json", study_summary(results))
    console.print(summary_table(results))
    report = write_report(out)
    for path in (out / "summary.json", report):
        console.print(f"Written: {path}")


def check_failed(failed: list[Job]) -> None:
    """Raise with the last lines of the first failed job's log."""
    if failed:
        tail = failed[0].log.read_text(errors="replace").strip().splitlines()[-12:]
        raise KillickError(
            f"{len(failed)} of the jobs failed, first: {failed[0].label}. Last lines of {failed[0].log}:\n"
            + "\n".join(tail)
        )
