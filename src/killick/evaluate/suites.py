"""Test suites: several benchmarks under one sampler, and their numbers with averages by group.

A suite is a TOML file: `title`, `ks`, `[sampling]`, and a `[[benchmark]]` for each test set. Three ship with the
package, under `recipes/suites`.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from killick.errors import ConfigError, DataError
from killick.evaluate.estimators import Interval, bootstrap, macro_bootstrap, pass_at_ks
from killick.evaluate.settings import SamplingSettings
from killick.registry import construct, nearest
from killick.tasks import TASKS
from killick.tasks.types import Task

if TYPE_CHECKING:
    from killick.evaluate.run import EvaluationResult

Group = Literal["in", "out"]
GROUPS: Mapping[Group, str] = {"in": "in distribution", "out": "out of distribution"}


@dataclass(frozen=True)
class Benchmark:
    """One test set of a suite.

    Attributes:
        task: registry name.
        label: column heading.
        group: "in" or "out" of the distribution the papers train on; averages are taken within a group.
        split: of the task.
        pool: benchmarks of one pool count once in the average, as one set of problems; "" stands alone.
        settings: of the task.
    """

    task: str
    label: str
    group: Group
    split: str = "test"
    pool: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """Of its evaluation, within the suite's."""
        return f"{self.task}-{self.split}"


@dataclass(frozen=True)
class Suite:
    """What is asked; `ks` are the rows of the table."""

    title: str
    ks: tuple[int, ...]
    sampling: SamplingSettings
    benchmarks: tuple[Benchmark, ...]


@dataclass(frozen=True)
class LeftOut:
    """A benchmark that cannot be run here, and why."""

    benchmark: Benchmark
    reason: str


def shipped_suites() -> dict[str, Path]:
    """Name -> file of every suite in the package."""
    folder = Path(str(resources.files("killick") / "recipes" / "suites"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_suite(name_or_path: str) -> Suite:
    """A shipped suite by name, or one from a file whose name ends in `.toml`.

    Raises:
        ConfigError: no such suite, no TOML, or a key or value it cannot have.
    """
    shipped = shipped_suites()
    path = Path(name_or_path) if name_or_path.endswith(".toml") else shipped.get(name_or_path)
    if path is None:
        raise ConfigError(f"Unknown suite {name_or_path!r}. {nearest(name_or_path, shipped)} Or give a .toml file.")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"The suite {path} cannot be read: {error}") from error
    made = {"sampling": _table(SamplingSettings, data.get("sampling"), path, "sampling")}
    made["benchmarks"] = tuple(_table(Benchmark, one, path, "benchmark") for one in data.pop("benchmark", []))
    suite: Suite = _table(Suite, {**data, **made, "ks": tuple(data.get("ks") or ())}, path, "suite")
    _check(suite, path)
    return suite


def _table(cls: type, table: Any, path: Path, name: str) -> Any:
    if not isinstance(table, dict):
        raise ConfigError(f"The suite {path} needs a table [{name}].")
    return construct(f"section of the suite {path}", name, cls, table)


def _check(suite: Suite, path: Path) -> None:
    folders = [one.folder for one in suite.benchmarks]
    if not folders or len(set(folders)) < len(folders):
        raise ConfigError(f"The suite {path} needs at least one [[benchmark]], and no task and split twice.")
    for one in suite.benchmarks:
        if one.group not in GROUPS:
            raise ConfigError(f"The suite {path}: group = {one.group!r} of {one.label!r}; allowed are {list(GROUPS)}.")
        if one.task not in TASKS.names():
            raise ConfigError(f"The suite {path}: unknown task {one.task!r}. {nearest(one.task, TASKS.names())}")
    if not suite.ks or not all(1 <= k <= suite.sampling.num_samples for k in suite.ks):
        raise ConfigError(f"The suite {path}: ks = {list(suite.ks)}; give numbers from 1 to num_samples.")


def find_data(
    suite: Suite, settings: Mapping[str, Any], limit: int | None
) -> tuple[list[tuple[Benchmark, Task]], list[LeftOut]]:
    """Read the problems of every benchmark before anything is sampled.

    Args:
        suite: the suite.
        settings: of every task, over the suite's own, e.g. path.
        limit: first problems of each benchmark; None takes all.

    Returns:
        The benchmarks that can be run, with their tasks, and the others.

    Raises:
        ConfigError: a setting no task can have.
    """
    found, left_out = [], []
    for benchmark in suite.benchmarks:
        task = TASKS.build(benchmark.task, **{**benchmark.settings, **settings})
        try:
            task.rows(benchmark.split, limit)
            found.append((benchmark, task))
        except DataError as error:
            left_out.append(LeftOut(benchmark, str(error)))
    return found, left_out


def suite_report(
    suite: Suite, results: "Sequence[tuple[Benchmark, EvaluationResult]]", left_out: Sequence[LeftOut]
) -> dict[str, Any]:
    """The numbers of a suite, JSON-able.

    Returns:
        `title`, `model`, `sampling`; `ks`: those of the suite, none above the samples drawn; `benchmarks`: one entry
        each with `label`, `task`, `split`, `group`, `pool`, `num_problems`, `folder`, `pass_at` (k -> mean, low,
        high), `truncated_frac`; `averages`: group -> `pass_at`, `num_benchmarks`, `of` (those asked for); `left_out`.

    Raises:
        ConfigError: no results.
    """
    if not results:
        raise ConfigError("Nothing of the suite was evaluated: every benchmark was left out.")
    spec = results[0][1].spec
    ks = sorted({min(k, spec.sampling.num_samples) for k in suite.ks})
    rng = np.random.default_rng(0)
    values = {one.folder: _values(result, ks) for one, result in results}
    entries = [
        {
            "label": one.label, "task": one.task, "split": one.split, "group": one.group, "pool": one.pool,
            "num_problems": result.spec.num_problems, "folder": str(result.folder),
            "pass_at": _at(ks, bootstrap(values[one.folder], rng)),
            "truncated_frac": float(result.table.truncated_QN.mean()),
        }
        for one, result in results
    ]  # fmt: skip
    averages = {}
    for group in GROUPS:
        sets = _sets(group, [one for one, _ in results])
        if sets:
            pooled = [np.concatenate([values[one.folder] for one in members]) for members in sets]
            averages[group] = {
                "pass_at": _at(ks, macro_bootstrap(pooled, rng)),
                "num_benchmarks": sum(map(len, sets)),
                "of": sum(one.group == group for one in suite.benchmarks),
            }
    return {
        "title": suite.title, "model": asdict(spec.model), "backend": dict(spec.backend),
        "sampling": asdict(spec.sampling), "ks": ks, "benchmarks": entries, "averages": averages,
        "left_out": [{"label": one.benchmark.label, "reason": one.reason} for one in left_out],
    }  # fmt: skip


def _values(result: "EvaluationResult", ks: Sequence[int]) -> np.ndarray:
    return pass_at_ks(result.table.num_correct_Q, result.spec.sampling.num_samples, ks)


def _at(ks: Sequence[int], intervals: Sequence[Interval]) -> dict[str, Any]:
    return {str(k): asdict(interval) for k, interval in zip(ks, intervals, strict=True)}


def _sets(group: Group, benchmarks: Sequence[Benchmark]) -> list[list[Benchmark]]:
    """The benchmarks of a group, those of one pool together."""
    sets: dict[str, list[Benchmark]] = {}
    for one in benchmarks:
        if one.group == group:
            sets.setdefault(f"pool {one.pool}" if one.pool else one.folder, []).append(one)
    return list(sets.values())
