"""Several evaluations side by side, only when they asked the same question."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from killick.errors import ConfigError, RecordError
from killick.evaluate.estimators import Interval, bootstrap, ks_for, paired_difference, pass_at_ks
from killick.evaluate.folder import Evaluation, load
from killick.provenance import differences

if TYPE_CHECKING:
    from rich.table import Table

# What two evaluations may differ in: the model is what is compared, and another sampler seed draws from the same
# distribution (equal seeds only make the difference less noisy).
MAY_DIFFER = frozenset({"model.fingerprint", "sampling.seed"})


@dataclass(frozen=True)
class ComparedRun:
    """One line of a comparison.

    Attributes:
        folder: as given.
        model: name of the evaluated model.
        seed: of the sampler.
        pass_at: one interval per k.
        difference: this run minus the first, on the same problems, per k; empty for the first run.
        tokens_mean: sampled tokens per completion.
        truncated_frac: share of completions without an end.
    """

    folder: str
    model: str
    seed: int
    pass_at: tuple[Interval, ...]
    difference: tuple[Interval, ...]
    tokens_mean: float
    truncated_frac: float


@dataclass(frozen=True)
class Comparison:
    """Evaluations of one question: `settings` are what all runs share, `ks` the columns."""

    settings: dict[str, Any]
    ks: tuple[int, ...]
    runs: tuple[ComparedRun, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `ks[i]` belongs to entry i of every `pass_at` and `difference`."""
        return asdict(self)


def compare(folders: Sequence[Path], rng: np.random.Generator | None = None) -> Comparison:
    """Load evaluations and estimate pass@k for each, and its difference from the first one.

    Args:
        folders: two or more evaluation folders; the first is the baseline.
        rng: for the bootstrap; a generator seeded with 0 by default, so that a table can be reproduced.

    Raises:
        ConfigError: fewer than two folders.
        RecordError: an evaluation is missing, unfinished or corrupt, or asked another question than the first
            (other task, split, problems or sampling); every differing setting is listed with both values.
    """
    if len(folders) < 2:
        raise ConfigError(f"A comparison needs at least 2 evaluation folders, found {len(folders)}.")
    rng = rng or np.random.default_rng(0)
    evaluations = [load(Path(folder)) for folder in folders]
    for other in evaluations[1:]:
        _refuse_different(evaluations[0], other)
    num_samples = evaluations[0].spec.sampling.num_samples
    ks = ks_for(num_samples)
    values = [pass_at_ks(one.table.num_correct_Q, num_samples, ks) for one in evaluations]
    runs = []
    for one, values_QK in zip(evaluations, values, strict=True):
        is_first = one is evaluations[0]
        runs.append(
            ComparedRun(
                folder=str(one.folder),
                model=one.spec.model.name,
                seed=one.spec.sampling.seed,
                pass_at=tuple(bootstrap(values_QK, rng)),
                difference=() if is_first else tuple(paired_difference(values[0], values_QK, rng)),
                tokens_mean=float(one.table.tokens_QN.mean()),
                truncated_frac=float(one.table.truncated_QN.mean()),
            )
        )
    return Comparison(_common_settings(evaluations[0]), tuple(ks), tuple(runs))


def comparison_table(comparison: Comparison) -> "Table":
    """A rich table: pass@k with intervals, then differences from the first run; settings in the caption."""
    from rich.table import Table
    from rich.text import Text

    shared = comparison.settings
    caption = (
        f"{shared['task']} / {shared['split']}: {shared['num_problems']} problems × {shared['sampling.num_samples']} "
        f"samples, temperature {shared['sampling.temperature']}, top_p {shared['sampling.top_p']}, max_tokens "
        f"{shared['sampling.max_tokens']}, stop {shared['sampling.stop']}. 95% bootstrap over problems; Δ: paired, "
        "minus the first run."
    )
    table = Table(caption=caption)
    table.add_column("run", overflow="fold")
    for k in comparison.ks:
        table.add_column(f"pass@{k}", justify="right")
    table.add_column("tokens", justify="right")
    table.add_column("truncated", justify="right")
    for run in comparison.runs:
        cells = [_cell(interval, "{:.3f}") for interval in run.pass_at]
        table.add_row(Text(run.folder), *cells, f"{run.tokens_mean:.1f}", f"{run.truncated_frac:.3f}")
        if run.difference:
            table.add_row("  Δ", *[_cell(interval, "{:+.3f}") for interval in run.difference], end_section=True)
    return table


def _cell(interval: Interval, form: str) -> Any:
    from rich.text import Text

    low, high = form.format(interval.low), form.format(interval.high)
    return Text(f"{form.format(interval.mean)}\n[{low}, {high}]")  # Text: brackets are not markup


def _common_settings(one: Evaluation) -> dict[str, Any]:
    return {key: value for key, value in one.spec.defining().items() if key not in MAY_DIFFER}


def _refuse_different(first: Evaluation, other: Evaluation) -> None:
    found = differences(_common_settings(first), _common_settings(other))
    if first.table.uids != other.table.uids:
        only = sorted(set(first.table.uids) ^ set(other.table.uids))[0]
        found.append(("uids", f"{only in first.table.uids} for {only!r}", f"{only in other.table.uids}"))
    if found:
        listed = "; ".join(f"{key}: {one!r} against {two!r}" for key, one, two in found)
        raise RecordError(
            f"{first.folder} and {other.folder} cannot be compared, they differ in {listed}. "
            "Evaluate both with the same task, split and sampling settings."
        )
