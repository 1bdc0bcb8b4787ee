"""The numbers of one evaluation, as written to `summary.json`."""

from dataclasses import asdict
from typing import Any

import numpy as np

from killick.evaluate.estimators import bootstrap, ks_for, mean_at_k, pass_at_ks
from killick.evaluate.records import REASONS, RecordTable
from killick.evaluate.support import distinct_modes

_MOST_MODES = 50


def summarise(table: RecordTable, rng: np.random.Generator) -> dict[str, Any]:
    """Estimates from the records.

    Returns:
        JSON-able: `pass_at` k -> mean, low, high (95%, clustered by problem) for k = 1, 2, 4, … and N; `mean_at` k ->
        the same of the mean accuracy of the first k samples; `solved_frac`: problems with a right sample;
        `tokens_mean`; `truncated_frac`; `reason_frac` of all samples; `modes`: see `_mode_statistics`.
    """
    num_problems, num_samples = table.correct_QN.shape
    ks = ks_for(num_samples)
    intervals = bootstrap(pass_at_ks(table.num_correct_Q, num_samples, ks), rng)
    reasons = np.bincount(table.reason_QN.ravel(), minlength=len(REASONS)) / table.reason_QN.size
    return {
        "run": table.run,
        "num_problems": num_problems,
        "num_samples": num_samples,
        "pass_at": {str(k): asdict(interval) for k, interval in zip(ks, intervals, strict=True)},
        "mean_at": {str(k): asdict(mean_at_k(table.correct_QN, k, rng)) for k in ks},
        "solved_frac": float((table.num_correct_Q > 0).mean()),
        "tokens_mean": float(table.tokens_QN.mean()),
        "truncated_frac": float(table.truncated_QN.mean()),
        "reason_frac": dict(zip(REASONS, reasons.tolist(), strict=True)),
        "modes": _mode_statistics(table),
    }


def _mode_statistics(table: RecordTable) -> dict[str, Any]:
    """Solution modes among right samples.

    Returns:
        `frac`: mode -> share of the right samples that have a mode, the 50 most frequent; `rest_frac`: all others;
        `num_distinct`: over all problems; `num_distinct_per_problem_mean`: averaged over all problems, those without
        a right sample counting 0 (depends on N: compare only at equal N).
    """
    codes = table.mode_QN[table.mode_QN >= 0]
    counts = np.bincount(codes, minlength=len(table.modes))
    order = np.argsort(-counts, kind="stable")[:_MOST_MODES]
    total = max(1, len(codes))
    return {
        "frac": {table.modes[code]: float(counts[code] / total) for code in order},
        "rest_frac": float((counts.sum() - counts[order].sum()) / total),
        "num_distinct": len(table.modes),
        "num_distinct_per_problem_mean": float(distinct_modes(table).mean()),
    }
