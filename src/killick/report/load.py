"""Folders on disk -> one `Study`, whichever of three things they are: a study, one training run, or evaluations."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from killick.errors import ConfigError, RecordError
from killick.evaluate.compare import ALLOWABLE
from killick.evaluate.folder import EvaluationFolder, evaluations_below, is_evaluation, is_finished
from killick.evaluate.settings import EvaluationSpec
from killick.evaluate.suite_table import REPORT, read_report
from killick.provenance import read_json
from killick.registry import nearest
from killick.report.evaluation import Evaluation
from killick.report.study import Arm, Run, Study, read_run, read_study


def load_study(path: Path | Sequence[Path], allow: Collection[str] = ()) -> Study:
    """Read a folder of a study, a run, an evaluation, several evaluations (a suite, say), or a list of the last three.

    Args:
        path: a folder, or several. Of a list the first model is the one that the others are compared with.
        allow: names from `killick.evaluate.compare.ALLOWABLE`: what models of a list may differ in as well.

    Raises:
        RecordError: nothing of the kind is there, or a file is damaged.
        ConfigError: an unknown name in `allow`, or there is no list that it could be for.
    """
    for name in allow:
        if name not in ALLOWABLE:
            raise ConfigError(f"{name!r} is nothing that may differ. {nearest(name, ALLOWABLE)}")
    try:
        if not isinstance(path, str | Path):
            return _together([Path(item) for item in path], tuple(allow))
        if allow:
            raise ConfigError(f"{path} alone is compared with nothing that may differ. Name several folders.")
        return _alone(Path(path))
    except OSError as error:
        raise RecordError(
            f"Cannot read {str(error.filename)[:200]!r}: {error.strerror}. Check the name and its rights."
        ) from error


def _alone(folder: Path) -> Study:
    if (folder / "study.json").is_file():
        return read_study(folder)
    if _is_run(folder):
        return _single_run(folder)
    found, missing = _evaluations_of(folder)
    study = _models(found)
    return replace(study, missing=[f"The evaluation of {name} is not finished." for name in missing])


def _together(folders: list[Path], allow: tuple[str, ...]) -> Study:
    """Several folders, the first of which holds the model that the others are compared with."""
    if not folders:
        raise RecordError("No folder was given. Name a study folder, a run folder or evaluation folders.")
    found, missing = [], []
    for folder in folders:
        if (folder / "study.json").is_file():
            raise RecordError(f"{folder} is a study, which has a report of its own. Name runs or evaluations of it.")
        own, unfinished = _evaluations_of(folder)
        found += own
        missing += [f"{folder}: the evaluation of {name} is not finished." for name in unfinished]
    study = _models(found, allow)
    for arm in study.arms:
        absent = [split for split in study.splits if not arm.evaluations(split)]
        missing += [f"{arm.label}: no finished evaluation of {split}." for split in absent]
    return replace(study, baseline=study.arms[0].name if len(study.arms) > 1 else None, missing=missing)


def _is_run(folder: Path) -> bool:
    return (folder / "resolved.json").is_file() or (folder / "train_log.jsonl").is_file()


def _single_run(folder: Path) -> Study:
    resolved = read_json(folder / "resolved.json") if (folder / "resolved.json").is_file() else {}
    named = resolved.get("run", {})
    seed = named.get("seed") if isinstance(named, dict) else None
    name = str((named.get("name") if isinstance(named, dict) else None) or folder.resolve().name)
    arm = Arm(name=name, label=name, method=name, sweep={}, runs=[read_run(folder, seed)])
    places = evaluations_below(folder / "eval")
    missing = [f"The evaluation of {n} is not finished." for n, place in places.items() if not is_finished(place)]
    seeds = [] if seed is None else [seed]
    return Study(name=name, title=name, kind="run", seeds=seeds, settings={}, arms=[arm], missing=missing)


class _Found(NamedTuple):
    """An evaluation, and the folder in which it was found (itself, when it was named)."""

    given: Path
    place: Path
    spec: EvaluationSpec

    @property
    def model(self) -> str:
        """A model is often named by a path; the last part tells models apart, the rest where somebody keeps them."""
        return Path(self.spec.model.name).name or self.place.resolve().name


def _evaluations_of(folder: Path) -> tuple[list[_Found], list[str]]:
    """The finished evaluations of one folder that was named, and the names of the others."""
    if is_evaluation(folder):
        places, unfinished = [folder], []
    else:
        below = evaluations_below(folder / "eval" if _is_run(folder) else folder)
        if not below:
            raise _nothing(folder)
        places = [place for place in below.values() if is_finished(place)]
        unfinished = [name for name, place in below.items() if not is_finished(place)]
        if not places:
            raise RecordError(
                f"No evaluation in {folder} is finished: {', '.join(below)}. Run the same command again to resume."
            )
    return [_Found(folder, place, EvaluationFolder(place).read_spec()[0]) for place in places], unfinished


def _nothing(folder: Path) -> RecordError:
    held = ", ".join(sorted(entry.name for entry in folder.iterdir())[:12]) if folder.is_dir() else "no such folder"
    return RecordError(
        f"{folder} is no study (study.json), no training run (resolved.json, train_log.jsonl), no evaluation "
        f"(spec.json and records.jsonl) and holds none. Found: {held or 'nothing'}. Point at a folder that holds one "
        "of these."
    )


def _models(found: list[_Found], allow: tuple[str, ...] = ()) -> Study:
    """One arm a model; evaluations of one model become two arms where they have the same split or other folders."""
    several_tasks = len({one.spec.task for one in found}) > 1
    groups: dict[tuple[Path | None, str, str, int], dict[str, _Found]] = {}
    for one in found:
        split = f"{one.spec.task}/{one.spec.split}" if several_tasks else one.spec.split
        within = None if one.given == one.place else one.given
        number = 1
        while split in groups.get(key := (within, one.model, one.spec.model.fingerprint, number), {}):
            number += 1
        groups.setdefault(key, {})[split] = one
    models = list(groups.values())
    labels = _labels([next(iter(own.values())) for own in models])
    arms, suites = [], {}
    told: set[Path] = set()
    for label, own in zip(labels, models, strict=True):
        given = next(iter(own.values())).given
        run = Run(None, {}, {}, [], {})
        if given not in told:  # what its folder tells beside evaluations belongs to its first model
            told.add(given)
            run = read_run(given, None) if _is_run(given) else run
            if (given / REPORT).is_file():
                suites[label] = read_report(given / REPORT)
        run = replace(run, evaluations={split: Evaluation(one.place, split, allow) for split, one in own.items()})
        arms.append(Arm(label, label, label, {}, [run]))
    title = labels[0] if len(labels) == 1 else f"{len(labels)} models compared"
    return Study(name=title, title=title, kind="evaluations", seeds=[], settings={}, arms=arms, suites=suites)


def _labels(models: list[_Found]) -> list[str]:
    """Names of the models; of those with one name their folders, as given if these tell them apart."""
    labels = [one.model for one in models]
    for folders in ([str(one.given) for one in models], [str(one.place) for one in models]):
        labels = [folder if labels.count(label) > 1 else label for label, folder in zip(labels, folders, strict=True)]
    for place, label in enumerate(labels):
        same = labels[:place].count(label)
        if same:
            labels[place] = f"{label} ({same + 1})"
    return labels
