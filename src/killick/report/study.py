"""What a report is made of, and how it is read from a folder with a study.json.

Reading is strict about what is there (a damaged file is an error that names the line) and lenient about what is not:
a run that has not been evaluated yet is listed under `missing`, so a page can be written while a study grows.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from killick.errors import RecordError
from killick.evaluate.folder import evaluations_below, is_finished
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
        suites: model -> the report of its suite (`killick.evaluate.suites.suite_report`), of folders that are suites'.
    """

    name: str
    title: str
    kind: Kind
    seeds: list[int]
    settings: dict[str, Any]
    arms: list[Arm]
    baseline: str | None = None
    missing: list[str] = field(default_factory=list)
    suites: dict[str, dict[str, Any]] = field(default_factory=dict)

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
    def differing(self) -> list[str]:
        """Sentences about settings in which the models of a split differ, which was allowed."""
        sentences = []
        for split in self.splits:
            asked = [one.allowed_settings for arm in self.arms for one in arm.evaluations(split)]
            for key in dict.fromkeys(key for settings in asked for key in settings):
                values = dict.fromkeys(str(settings.get(key)) for settings in asked)
                if len(values) > 1:
                    sentences.append(f"Split {split}: {key} is {' / '.join(values)}.")
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


def read_run(folder: Path, seed: int | None) -> Run:
    """A training run and its finished evaluations.

    Raises:
        RecordError: a file is damaged.
    """

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


def read_study(folder: Path) -> Study:
    """The study of a study.json.

    Raises:
        RecordError: a file is damaged, or study.json lacks something or points outside.
    """
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
        run = read_run(place, item.get("seed"))
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
