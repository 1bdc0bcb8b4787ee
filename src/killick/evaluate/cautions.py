"""What a reader of an evaluation's numbers must know: completions that were cut, and the judge's own trouble."""

from typing import TYPE_CHECKING

from killick.evaluate.records import REASONS

if TYPE_CHECKING:
    from killick.evaluate.run import EvaluationResult


def cautions(result: "EvaluationResult") -> list[str]:
    """Lines to print under a table; none for an evaluation in which everything ended and was judged."""
    table, lines = result.table, []
    total, truncated = table.correct_QN.size, int(table.truncated_QN.sum())
    if truncated:
        lines.append(
            f"{truncated} of {total} completions hit max_tokens = {result.spec.sampling.max_tokens} and were cut."
        )
    for reason, cause in (("error", result.trouble), ("timeout", None)):
        num = int((table.reason_QN == REASONS.index(reason)).sum())
        if num:
            first = f" (first cause: {cause})" if cause else ""
            lines.append(f"{num} of {total} verdicts are `{reason}`{first}: the judge's trouble, counted as not right.")
    return lines
