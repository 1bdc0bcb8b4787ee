"""Folders on disk -> one `Study`, whichever of three things they are: a study, one training run, or evaluations.

Reading is strict about what is there (a damaged file is an error that names the line) and lenient about what is not:
a run that has not been evaluated yet is listed under `missing`, so a page can be written while a study grows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from killick.errors import RecordError
from killick.evaluate.folder import EvaluationFolder, evaluations_below, is_evaluation, is_finished
from killick.evaluate.suite_table import REPORT, read_report
from killick.provenance import differences, read_json
from killick.report.estimates import Coverage, coverage
from killick.report.evaluation import Evaluation
from killick.report.files import read_log
from killick.report.journal import GROUPS_FILE, REPAIRS_FILE, GroupTable, RepairTable, read_groups, read_repairs

Kind = Literal["study", "run", "evaluations"]


@dataclass(frozen=True)
class Run:
    """One training run, or the untrained base (no log then).

    Attributes:
        seed: seed of the run; None when nothing says.
        resolved: every setting of the run, nested as in its recipe.
        versions: package -> version.
        log: one dictionary a logged optimiser step, in order.
        evaluations: split -> evaluation.
        folder: where it is; None when it has no folder of its own.
    """

    seed: int | None
    resolved: dict[str, Any]
    versions: dict[str, Any]
    log: list[dict[str, Any]]
    evaluations: dict[str, Evaluation]
    folder: Path | None = None

    @cached_property
    def repairs(self) -> RepairTable | None:
        """Its repairs, read on first use; None when none was recorded.

        Raises:
            RecordError: the file is damaged.
        """
        return None if self.folder is None else read_repairs(self.folder / REPAIRS_FILE)

    @cached_property
    def groups(self) -> GroupTable | None:
        """Its training groups, read on first use; None when none was recorded.

        Raises:
            RecordError: the file is damaged.
        """
        return None if self.folder is None else read_groups(self.folder / GROUPS_FILE)

    def series(self, key: str) -> tuple[list[float], list[float]]:
        """Steps and values of one logged number, where it was logged."""
        found = [(row["step"], row.get(key)) for row in self.log if "step" in row]
        rows = [(s, v) for s, v in found if isinstance(v, int | float) and not isinstance(v, bool)]
        return [float(step) for step, _ in rows], [float(value) for _, value in rows]

    @property
    def wall_s(self) -> float | None:
        """Seconds of training: the host's own total if logged, else step times times the steps each stands for."""
        totals = self.series("train_runtime")[1]
        if totals:
            return totals[-1]
        steps, times = self.series("step_time")
        if not times:
            return None
        gaps = [step - before for before, step in zip([0.0, *steps[:-1]], steps, strict=True)]
        return sum(time * gap for time, gap in zip(times, gaps, strict=True))


@dataclass(frozen=True)
class Arm:
    """One setting of one method, over its seeds.

    Attributes:
        name: unique in the study.
        label: what readers see.
        method: arms of one method share a hue and a frontier curve.
        sweep: the settings in which the arm differs from its method's other arms.
        is_base: the untrained model everything is compared with.
        against: name of the arm that differs from this one in a single thing, or None; shown as a paired difference.
    """

    name: str
    label: str
    method: str
    sweep: dict[str, Any]
    runs: list[Run]
    is_base: bool = False
    against: str | None = None

    def evaluations(self, split: str) -> list[Evaluation]:
        """The evaluations of that split, one a seed, in the order of the seeds."""
        return [run.evaluations[split] for run in self.runs if split in run.evaluations]

    @property
    def sweep_text(self) -> str:
        """The sweep values in short: `beta=0.05`."""
        return ", ".join(f"{key.rsplit('.', 1)[-1]}={value}" for key, value in self.sweep.items())


@dataclass(frozen=True)
class Study:
    """Everything a report is made of.

    Attributes:
        seeds: seeds of the training runs.
        settings: settings of the study as a whole.
        arms: the base first when there is one.
        baseline: name of the arm every other arm is compared with, or None.
        missing: what study.json promises and the disk does not hold, one sentence each.
        suite: the report of a suite (see `killick.evaluate.suites.suite_report`), or None.
    """

    name: str
    title: str
    kind: Kind
    seeds: list[int]
    settings: dict[str, Any]
    arms: list[Arm]
    baseline: str | None = None
    missing: list[str] = field(default_factory=list)
    suite: dict[str, Any] | None = None

    @cached_property
    def splits(self) -> list[str]:
        """Names of the evaluated splits, in order of first appearance."""
        return list(dict.fromkeys(split for arm in self.arms for run in arm.runs for split in run.evaluations))

    @cached_property
    def coverage(self) -> dict[tuple[str, str], Coverage]:
        """(arm name, split) -> pass@k with intervals, for every evaluated pair; computed once for all panels."""
        found = {(arm.name, split): coverage(arm, split) for arm in self.arms for split in self.splits}
        return {key: value for key, value in found.items() if value is not None}

    @cached_property
    def unlike(self) -> list[str]:
        """Sentences about splits on which the models were not asked the same question."""
        sentences = []
        for split in self.splits:
            asked = [(arm.label, found[0].question) for arm in self.arms if (found := arm.evaluations(split))]
            keys = {key for _, other in asked[1:] for key, _, _ in differences(asked[0][1], other)}
            if keys:
                sentences.append(f"Split {split}: the models were evaluated with different {', '.join(sorted(keys))}.")
        return sentences

    @cached_property
    def methods(self) -> list[str]:
        """Methods of the trained arms, in order of first appearance."""
        return list(dict.fromkeys(arm.method for arm in self.arms if not arm.is_base))

    @property
    def base(self) -> Arm | None:
        """The untrained model, when it was evaluated."""
        return next((arm for arm in self.arms if arm.is_base), None)

    def arm(self, name: str) -> Arm:
        """The arm of that name.

        Raises:
            RecordError: no such arm.
        """
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise RecordError(
            f"study.json names the arm {name!r} as baseline; its arms are {', '.join(a.name for a in self.arms)}. "
            "Correct `baseline` or remove it."
        )


def load_study(path: Path | Sequence[Path]) -> Study:
    """Read a folder of a study, a run, an evaluation, several evaluations (a suite, say), or a list of evaluations.

    Raises:
        RecordError: nothing of the kind is there, or a file is damaged.
    """
    try:
        return _load(path)
    except OSError as error:
        raise RecordError(
            f"Cannot read {str(error.filename)[:200]!r}: {error.strerror}. Check the name and its rights."
        ) from error


def _load(path: Path | Sequence[Path]) -> Study:
    if isinstance(path, str | Path):
        folder = Path(path)
        if (folder / "study.json").is_file():
            return _study(folder)
        if (folder / "resolved.json").is_file() or (folder / "train_log.jsonl").is_file():
            return _single_run(folder)
        if is_evaluation(folder):
            return _evaluations([folder])
        found = evaluations_below(folder)
        if not found:
            raise _nothing(folder)
        return _several(folder, found)
    folders = [Path(item) for item in path]
    for folder in folders:
        if not is_evaluation(folder):
            raise _nothing(folder)
    if not folders:
        raise RecordError("No folder was given. Name a study folder, a run folder or evaluation folders.")
    return _evaluations(folders)


def _nothing(folder: Path) -> RecordError:
    held = ", ".join(sorted(entry.name for entry in folder.iterdir())[:12]) if folder.is_dir() else "no such folder"
    return RecordError(
        f"{folder} is no study (study.json), no training run (resolved.json, train_log.jsonl), no evaluation "
        f"(spec.json and records.jsonl) and holds none. Found: {held or 'nothing'}. Point at a folder that holds one "
        "of these."
    )


def _run(folder: Path, seed: int | None) -> Run:
    def optional(name: str) -> dict[str, Any]:
        return read_json(folder / name) if (folder / name).is_file() else {}

    log = folder / "train_log.jsonl"
    found = {split: place for split, place in evaluations_below(folder / "eval").items() if is_finished(place)}
    return Run(
        seed=seed,
        resolved=optional("resolved.json"),
        versions=optional("versions.json"),
        log=read_log(log) if log.is_file() else [],
        evaluations={split: Evaluation(place, split) for split, place in found.items()},
        folder=folder,
    )


def _study(folder: Path) -> Study:
    index = read_json(folder / "study.json")
    source = folder / "study.json"
    missing: list[str] = []
    try:
        arms = [_base(folder, index["base"], missing)] if index.get("base") else []
        arms += [_arm(folder, entry, missing) for entry in index["arms"]]
        study = Study(
            name=str(index["name"]),
            title=str(index.get("title") or index["name"]),
            kind="study",
            seeds=list(index.get("seeds", [])),
            settings=dict(index.get("settings", {})),
            arms=_told_apart(arms),
            baseline=index.get("baseline"),
            missing=missing,
        )
    except RecordError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordError(
            f"{source} lacks or misplaces {error}. It needs name, arms (each with name, label, method, runs of seed "
            "and dir), and may have title, seeds, settings, base, baseline."
        ) from error
    for arm in study.arms:
        for run in arm.runs:
            absent = [split for split in study.splits if run.evaluations and split not in run.evaluations]
            missing += [
                f"{arm.label}{'' if run.seed is None else f', seed {run.seed}'}: no finished evaluation of {split}."
                for split in absent
            ]
    names = [arm.name for arm in study.arms]
    for name in names:
        if names.count(name) > 1:
            raise RecordError(f"{source} has two arms named {name!r}. Give every arm its own name.")
    for named in (study.baseline, *(arm.against for arm in study.arms)):
        if named is not None:
            study.arm(named)
    return study


def _told_apart(arms: list[Arm]) -> list[Arm]:
    """The arms with their name added to labels that several of them carry."""
    labels = [arm.label for arm in arms]
    return [replace(arm, label=f"{arm.label} ({arm.name})") if labels.count(arm.label) > 1 else arm for arm in arms]


def _inside(folder: Path, relative: str) -> Path:
    """A folder named in study.json, which may only point below the study folder."""
    parts = PurePosixPath(relative)
    if parts.is_absolute() or ".." in parts.parts:
        raise RecordError(f"study.json points at {relative!r}; only folders below the study folder are allowed.")
    return folder / parts


def _base(folder: Path, entry: dict[str, Any], missing: list[str]) -> Arm:
    evaluations: dict[str, Evaluation] = {}
    for split, relative in entry["evals"].items():
        place = _inside(folder, relative)
        if is_finished(place):
            evaluations[split] = Evaluation(place, split)
    if not evaluations:
        missing.append("The base has no finished evaluation.")
    label = str(entry.get("label", "base"))
    return Arm(
        name="base", label=label, method=label, sweep={}, runs=[Run(None, {}, {}, [], evaluations)], is_base=True
    )


def _arm(folder: Path, entry: dict[str, Any], missing: list[str]) -> Arm:
    runs = []
    for item in entry["runs"]:
        place = _inside(folder, item["dir"])
        if not place.is_dir():
            missing.append(f"Arm {entry['name']}: the run folder {item['dir']} does not exist.")
            continue
        run = _run(place, item.get("seed"))
        if not run.evaluations:
            missing.append(f"Arm {entry['name']}: {item['dir']} has no finished evaluation.")
        runs.append(run)
    return Arm(
        name=str(entry["name"]),
        label=str(entry.get("label", entry["name"])),
        method=str(entry["method"]),
        sweep=dict(entry.get("sweep", {})),
        runs=runs,
        against=entry.get("against"),
    )


def _single_run(folder: Path) -> Study:
    resolved = read_json(folder / "resolved.json") if (folder / "resolved.json").is_file() else {}
    named = resolved.get("run", {})
    seed = named.get("seed") if isinstance(named, dict) else None
    name = str((named.get("name") if isinstance(named, dict) else None) or folder.resolve().name)
    run = _run(folder, seed)
    arm = Arm(name=name, label=name, method=name, sweep={}, runs=[run])
    missing = _unfinished(evaluations_below(folder / "eval"))
    seeds = [] if seed is None else [seed]
    return Study(name=name, title=name, kind="run", seeds=seeds, settings={}, arms=[arm], missing=missing)


def _unfinished(found: dict[str, Path]) -> list[str]:
    return [f"The evaluation of {name} is not finished." for name, place in found.items() if not is_finished(place)]


def _several(folder: Path, found: dict[str, Path]) -> Study:
    """Evaluations below a folder, with the table of their suite if they are one."""
    finished = [place for place in found.values() if is_finished(place)]
    if not finished:
        raise RecordError(
            f"No evaluation in {folder} is finished: {', '.join(found)}. Run the same command again to resume."
        )
    suite = read_report(folder / REPORT) if (folder / REPORT).is_file() else None
    return replace(_evaluations(finished), missing=_unfinished(found), suite=suite)


def _evaluations(folders: list[Path]) -> Study:
    """One arm a model or folder name; two evaluations of one model on one split become two arms."""
    specs = [EvaluationFolder(folder).read_spec()[0] for folder in folders]
    several_tasks = len({spec.task for spec in specs}) > 1
    arms: dict[str, dict[str, Evaluation]] = {}
    for folder, spec in zip(folders, specs, strict=True):
        split = f"{spec.task}/{spec.split}" if several_tasks else spec.split
        # A model is often named by a path; its last part tells models apart, the rest tells where somebody keeps them.
        label = Path(spec.model.name).name or folder.resolve().name
        place, number = label, 1
        while split in arms.get(label, {}):
            number += 1
            label = f"{place} ({number})"
        arms.setdefault(label, {})[split] = Evaluation(folder, split)
    built = [Arm(label, label, label, {}, [Run(None, {}, {}, [], found)]) for label, found in arms.items()]
    title = built[0].label if len(built) == 1 else f"{len(built)} models compared"
    return Study(name=title, title=title, kind="evaluations", seeds=[], settings={}, arms=built)
