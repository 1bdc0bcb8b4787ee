"""A study: one recipe, several arms, several seeds, run side by side in processes of one thread each, then reported.

A study folder holds `study.json`, `base/eval/SPLIT/`, `arms/NAME/seedK/` (run folders with `eval/SPLIT/`), and at
the end `summary.json` and `report.html`. Running the same command again finishes what is missing.
"""

import itertools
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from killick import provenance
from killick.config import Recipe, find_recipe, load_recipe, read_toml, to_toml
from killick.errors import ConfigError, KillickError, RecordError
from killick.registry import nearest

_KEYS = {"study", "set", "arm"}
_STUDY_KEYS = {"title", "recipe", "seeds", "jobs", "baseline"}
_ARM_KEYS = {"name", "label", "against", "set", "sweep"}


@dataclass(frozen=True)
class Arm:
    """One setting of the study.

    Attributes:
        sweep: the values that tell it from others of the same `method`.
        against: the arm it differs from in one thing only (at the same sweep values), or None.
    """

    name: str
    label: str
    method: str
    overrides: dict[str, Any]
    sweep: dict[str, Any] = field(default_factory=dict)
    against: str | None = None


@dataclass(frozen=True)
class Study:
    """A parsed study file."""

    name: str
    title: str
    recipe: str
    seeds: tuple[int, ...]
    jobs: int
    baseline: str | None
    shared: dict[str, Any]
    arms: tuple[Arm, ...]

    def sets(self, arm: Arm | None, seed: int | None) -> list[str]:
        """The `--set` overrides of one job."""
        values = {**self.shared, **(arm.overrides if arm else {})}
        if seed is not None:
            values["run.seed"] = seed
        return [f"{key}={to_toml(value)}" for key, value in values.items()]


def shipped_studies() -> dict[str, Path]:
    """Name -> file of every study in the package."""
    folder = Path(str(resources.files("killick") / "recipes" / "studies"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_study(name_or_path: str, seeds: int | None = None, jobs: int | None = None) -> Study:
    """Read a study by name or path and check the keys of every arm (its components: `check`).

    Raises:
        ConfigError: unknown file, key or recipe, two arms of one name, or a counterpart that is no arm.
    """
    path = Path(name_or_path)
    if not path.is_file():
        known = shipped_studies()
        if name_or_path not in known:
            raise ConfigError(f"No study file {name_or_path!r} and no shipped study. {nearest(name_or_path, known)}")
        path = known[name_or_path]
    data = read_toml(path)
    _refuse(data, _KEYS, str(path))
    head = data.get("study", {})
    _refuse(head, _STUDY_KEYS, f"{path}: [study]")
    if "recipe" not in head or not data.get("arm"):
        raise ConfigError(f"{path} needs [study] recipe and at least one [[arm]].")
    arms = tuple(arm for entry in data["arm"] for arm in _expand(entry, str(path)))
    names = [arm.name for arm in arms]
    if len(set(names)) < len(names):
        raise ConfigError(f"{path}: two arms have the same name: {', '.join(sorted(names))}.")
    for arm in arms:
        if arm.against is not None and arm.against not in names:
            raise ConfigError(f"{path}: arm {arm.name!r} names no arm in `against`. {nearest(arm.against, names)}")
    study = Study(
        name=path.stem,
        title=head.get("title", path.stem),
        recipe=str(find_recipe(head["recipe"])),
        seeds=tuple(range(seeds)) if seeds else tuple(head.get("seeds", [0])),
        jobs=jobs or head.get("jobs") or os.cpu_count() or 1,
        baseline=head.get("baseline"),
        shared=data.get("set", {}),
        arms=arms,
    )
    for arm in arms:
        load_recipe(study.recipe, study.sets(arm, study.seeds[0]))
    return study


def check(study: Study) -> None:
    """Check every component and setting of every arm, so that a typo in the last one shows before hours of work.

    Raises:
        ConfigError: as `build_args` and the registries say, with the arm's name.
    """
    from killick.engines.trl.run import build_args
    from killick.tasks import TASKS

    for arm in study.arms:
        recipe = load_recipe(study.recipe, study.sets(arm, study.seeds[0]))
        try:
            TASKS.build(recipe.task.name, **recipe.task.settings)
            build_args(recipe, Path("unused"))
        except ConfigError as error:
            raise ConfigError(f"Arm {arm.name!r}: {error}") from error


def _refuse(table: dict[str, Any], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}. {nearest(key, known)}")


def _expand(entry: dict[str, Any], origin: str) -> list[Arm]:
    _refuse(entry, _ARM_KEYS, f"{origin}: [[arm]]")
    if "name" not in entry:
        raise ConfigError(f"{origin}: an [[arm]] has no name.")
    name, label = entry["name"], entry.get("label", entry["name"])
    sweep = entry.get("sweep", {})
    arms = []
    for values in itertools.product(*sweep.values()):
        chosen = dict(zip(sweep, values, strict=True))
        tail = "".join(f"-{key.rpartition('.')[2]}{value}" for key, value in chosen.items())
        text = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in chosen.items())
        arms.append(
            Arm(
                name=name + tail,
                label=f"{label}, {text}" if text else label,
                method=label,
                overrides={**entry.get("set", {}), **chosen},
                sweep=chosen,
                against=entry["against"] + tail if "against" in entry else None,
            )
        )
    return arms


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
    per_model = len(recipe.evaluate.splits) * recipe.evaluate.num_samples * _num_problems(recipe)
    python = [sys.executable, "-m", "killick"]
    shared = [x for s in study.sets(None, None) for x in ("--set", s)]
    base = out / "base"
    evaluate = [*python, "evaluate", recipe.model.name_or_path, "--recipe", study.recipe, *shared]
    jobs = [Job("base", base, [*evaluate, "--out", str(base / "eval")], 0, per_model)]
    for seed in study.seeds:
        for arm in study.arms:
            folder = out / "arms" / arm.name / f"seed{seed}"
            sets = [x for s in study.sets(arm, seed) for x in ("--set", s)]
            command = [*python, "train", study.recipe, "--run-dir", str(folder), *sets]
            steps = int(load_recipe(study.recipe, study.sets(arm, seed)).trl.get("max_steps", 0))
            jobs.append(Job(f"{arm.label}, seed {seed}", folder, command, steps, per_model))
    return jobs


def _num_problems(recipe: Recipe) -> int:
    if recipe.evaluate.num_problems is None:
        raise ConfigError("A study needs [evaluate] num_problems, so that all arms answer the same problems.")
    return recipe.evaluate.num_problems


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
    from killick.report.page import write_report
    from killick.report.study import load_study as load_results
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
