"""The numbers of a study as one dictionary (`summary.json`) and as one terminal table."""

from typing import Any

from rich.table import Table

from killick.evaluate.estimators import Interval
from killick.report.estimates import difference, failed_group_frac, mean_tokens, wall_s
from killick.report.markup import finite, number
from killick.report.repairs import recovery, repair_summary
from killick.report.study import Arm, Run, Study

LAST_STEPS = 10
TERMINAL_KS = (1, 16)
SHOWN_KS = (1, 8, 64, 128, 256, 1024)


def study_summary(study: Study) -> dict[str, Any]:
    """Every model on every split: pass@k with intervals, lengths, training facts, paired differences, settings.

    Returns:
        JSON-able, without NaN. `models` maps arm names; shares lie in [0, 1], times are seconds, lengths tokens. A
        number that was never logged is None.
    """
    summary = {
        "name": study.name,
        "title": study.title,
        "kind": study.kind,
        "seeds": study.seeds,
        "baseline": study.baseline,
        "settings": study.settings,
        "missing": study.missing,
        "models": {arm.name: _model(study, arm) for arm in study.arms},
    }
    plain: dict[str, Any] = finite(summary)
    return plain


def summary_table(study: Study) -> Table:
    """The main numbers for a terminal, one row a model and split; few enough columns for 120 characters."""
    available = {k for found in study.coverage.values() for k in found.at}
    ks = sorted({k for k in TERMINAL_KS if k in available} | ({max(available)} if available else set()))
    table = Table(title=study.title, title_justify="left")
    table.add_column("model")
    table.add_column("split")
    for heading in [*(f"pass@{k}" for k in ks), "tokens", "failed groups", "wall s", "runs"]:
        table.add_column(heading, justify="right")
    for split in study.splits:
        for arm in study.arms:
            if (arm.name, split) not in study.coverage:
                continue
            found = study.coverage[arm.name, split]
            cells = [spread(found.at.get(k)) for k in ks]
            cells += [number(mean_tokens(arm, split).mean, 1), number(failed_group_frac(arm), 2)]
            # Labels come from files; a `[` in one must not be read as terminal markup.
            table.add_row(_plain(arm.label), _plain(split), *cells, number(wall_s(arm), 0), str(found.num_runs))
        table.add_section()
    return table


def shown_ks(study: Study) -> list[int]:
    """The k worth a column: some round ones, and the largest any arm reached."""
    available = {k for found in study.coverage.values() for k in found.at}
    return sorted({k for k in SHOWN_KS if k in available} | ({max(available)} if available else set()))


def spread(interval: Interval | None) -> str:
    """`0.213 [0.190, 0.240]`, or a dash."""
    if interval is None:
        return "–"
    return f"{number(interval.mean)} \\[{number(interval.low)}, {number(interval.high)}]"


def _plain(text: str) -> str:
    return text.replace("[", "\\[")


def _model(study: Study, arm: Arm) -> dict[str, Any]:
    resolved = next((run.resolved for run in arm.runs if run.resolved), {})
    versions = next((run.versions for run in arm.runs if run.versions), {})
    return {
        "label": arm.label,
        "method": arm.method,
        "sweep": arm.sweep,
        "is_base": arm.is_base,
        "seeds": [run.seed for run in arm.runs if run.seed is not None],
        "settings": resolved,
        "versions": versions,
        "training": {
            "failed_group_frac_mean": failed_group_frac(arm),
            f"failed_group_frac_last_{LAST_STEPS}": failed_group_frac(arm, LAST_STEPS),
            "wall_s": wall_s(arm),
        },
        "splits": {split: _split(study, arm, split) for split in study.splits if (arm.name, split) in study.coverage},
        "runs": [_run(run) for run in arm.runs if run.repairs is not None or run.groups is not None],
    }


def _run(run: Run) -> dict[str, Any]:
    parts = {"repairs": repair_summary(run), "recovery": recovery(run)}
    return {"seed": run.seed} | {name: part for name, part in parts.items() if part is not None}


def _split(study: Study, arm: Arm, split: str) -> dict[str, Any]:
    found = study.coverage[arm.name, split]
    evaluations = arm.evaluations(split)
    own = [study.arm(arm.against)] if arm.against is not None else []
    others = [other for other in [*references(study), *own] if other.name != arm.name]
    differences = {other.name: difference(arm, other, split) for other in others}
    return {
        "num_problems": evaluations[0].num_problems,
        "num_samples": evaluations[0].num_samples,
        "num_runs": found.num_runs,
        "interval": found.how,
        "settings": evaluations[0].settings,
        "pass_at_k": {k: _numbers(interval) for k, interval in found.at.items()},
        "mean_tokens": _numbers(mean_tokens(arm, split)),
        "truncated_frac": sum(float(e.table.truncated_QN.mean()) for e in evaluations) / len(evaluations),
        "differences": {
            name: {
                "pass_at_k": {k: _numbers(interval) for k, interval in diff.at.items()},
                "num_pairs": diff.num_pairs,
                "interval": diff.how,
            }
            for name, diff in differences.items()
            if diff is not None
        },
    }


def references(study: Study) -> list[Arm]:
    """The models others are compared with: the base, and the arm named as baseline."""
    named = [study.arm(study.baseline)] if study.baseline is not None else []
    return [arm for arm in [study.base, *named] if arm is not None]


def _numbers(interval: Interval) -> dict[str, float]:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}
