"""Scoring a verifier on a file of (gold, prediction, expected) cases: agreement, and which way it errs."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from killick.errors import DataError
from killick.verifiers.judge import judge, judge_all
from killick.verifiers.types import Verdict, Verifier, wrong

_KEYS = {"gold": str, "pred": str, "expected": bool, "kind": str}


@dataclass(frozen=True)
class Case:
    """One line of a case file: `expected` says whether `pred` is the answer `gold`."""

    gold: str
    pred: str
    expected: bool
    kind: str


@dataclass(frozen=True)
class Score:
    """Cases and the verdicts on them, in the same order."""

    cases: tuple[Case, ...]
    verdicts: tuple[Verdict, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON form: counts over all cases and per kind (`agreement` is a share), and every disagreement."""
        kinds = sorted({case.kind for case in self.cases})
        pairs = list(zip(self.cases, self.verdicts, strict=True))
        return {
            **_counts(pairs),
            "by_kind": {kind: _counts([pair for pair in pairs if pair[0].kind == kind]) for kind in kinds},
            "disagreements": [
                {"gold": c.gold, "pred": c.pred, "expected": c.expected, "kind": c.kind, "reason": v.reason}
                for c, v in pairs
                if c.expected != v.correct
            ],
        }


def _counts(pairs: Sequence[tuple[Case, Verdict]]) -> dict[str, Any]:
    outcomes = Counter((case.expected, verdict.correct) for case, verdict in pairs)
    return {
        "cases": len(pairs),
        "agreement": (outcomes[True, True] + outcomes[False, False]) / len(pairs),
        "false_accepts": outcomes[False, True],
        "false_rejects": outcomes[True, False],
    }


def load_cases(path: Path) -> tuple[Case, ...]:
    """Cases of a JSONL file with the keys gold, pred, expected, kind; other keys are ignored.

    Raises:
        DataError: no such file, no case in it, or a line that is not a case.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read the case file {path}: {error}.") from error
    cases = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: not JSON ({error}).") from error
        bad = [key for key, kind in _KEYS.items() if not isinstance(row, dict) or not isinstance(row.get(key), kind)]
        if bad:
            raise DataError(
                f"{path}, line {number}: {', '.join(bad)} missing or of the wrong type. A case has the texts gold, "
                "pred and kind, and expected = true or false."
            )
        cases.append(Case(**{key: row[key] for key in _KEYS}))
    if not cases:
        raise DataError(f"The case file {path} holds no case.")
    return tuple(cases)


def score(verifier: Verifier, cases: Sequence[Case]) -> Score:
    """Judge all cases; a gold the verifier refuses counts as an answer it does not accept ("unparsable")."""
    golds, preds = [case.gold for case in cases], [case.pred for case in cases]
    try:
        verdicts = judge_all(verifier, preds, golds)
    except DataError:
        verdicts = [_judge_any(verifier, pred, gold) for pred, gold in zip(preds, golds, strict=True)]
    return Score(tuple(cases), tuple(verdicts))


def _judge_any(verifier: Verifier, pred: str, gold: str) -> Verdict:
    try:
        return judge(verifier, pred, gold)
    except DataError:
        return wrong("unparsable")
