"""Judging a file of (gold, prediction) cases; where they say what is expected: agreement, and which way it errs."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from killick.errors import DataError
from killick.verifiers.judge import judge, judge_all
from killick.verifiers.types import Reason, Verdict, Verifier, wrong

_TEXTS = ("gold", "pred")
_OPTIONAL = {"expected": bool, "kind": str}
KEYS = (*_TEXTS, *_OPTIONAL)


@dataclass(frozen=True)
class Case:
    """One line of a case file.

    Attributes:
        gold: the right answer.
        pred: a completion, or an answer.
        expected: whether `pred` is the answer `gold`; None when nobody has said.
        kind: what sort of case it is, if that is said.
        line: its line in the file, from 1; 0 without a file.
    """

    gold: str
    pred: str
    expected: bool | None = None
    kind: str | None = None
    line: int = 0


@dataclass(frozen=True)
class Score:
    """Cases and the verdicts on them, in the same order.

    Attributes:
        problems: for each case, why the verifier refuses its gold, or "".
    """

    cases: tuple[Case, ...]
    verdicts: tuple[Verdict, ...]
    problems: tuple[str, ...]

    @property
    def labelled(self) -> bool:
        """Whether the cases say what is expected."""
        return all(case.expected is not None for case in self.cases)

    def to_dict(self) -> dict[str, Any]:
        """JSON form: counts over all cases and per kind (`agreement` is a share), and every disagreement.

        Raises:
            DataError: the cases do not say what is expected.
        """
        if not self.labelled:
            raise DataError("Nothing to score against: the cases have no expected. Take reasons and lines instead.")
        kinds = sorted({case.kind for case in self.cases if case.kind is not None})
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

    def reasons(self) -> dict[str, int]:
        """How many verdicts there are of each reason that occurs."""
        counts = Counter(verdict.reason for verdict in self.verdicts)
        return {reason: counts[reason] for reason in get_args(Reason) if counts[reason]}

    def lines(self) -> list[dict[str, Any]]:
        """JSON form of each verdict, in order; `problem` only where the gold is refused."""
        return [
            {
                "line": case.line,
                "correct": verdict.correct,
                "reason": verdict.reason,
                "gold": case.gold,
                "pred": case.pred,
                **({"problem": problem} if problem else {}),
            }
            for case, verdict, problem in zip(self.cases, self.verdicts, self.problems, strict=True)
        ]


def _counts(pairs: Sequence[tuple[Case, Verdict]]) -> dict[str, Any]:
    outcomes = Counter((case.expected, verdict.correct) for case, verdict in pairs)
    return {
        "cases": len(pairs),
        "agreement": (outcomes[True, True] + outcomes[False, False]) / len(pairs),
        "false_accepts": outcomes[False, True],
        "false_rejects": outcomes[True, False],
    }


def load_cases(path: Path, columns: Mapping[str, str] | None = None) -> tuple[Case, ...]:
    """Cases of a JSONL file with the keys gold and pred, and, if known, expected (in all lines or none) and kind.

    Other keys are ignored. A gold or prediction may be a number; it is taken as it is written.

    Args:
        path: the file.
        columns: for a key whose name is another in the file, that name.

    Raises:
        DataError: no such file, no case in it, or a line that is not a case.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # other separators may stand inside a text of JSON
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read the case file {path}: {error}.") from error
    names = {key: (columns or {}).get(key, key) for key in KEYS}
    cases = [
        _case(line, f"{path}, line {number}", number, names) for number, line in enumerate(lines, 1) if line.strip()
    ]
    if not cases:
        raise DataError(f"The case file {path} holds no case.")
    odd = next((case for case in cases if (case.expected is None) != (cases[0].expected is None)), None)
    if odd:
        with_it, without = (cases[0], odd) if odd.expected is None else (odd, cases[0])
        raise DataError(
            f"{path}: line {with_it.line} has {names['expected']}, line {without.line} has not. Give it in all lines "
            "to score the verifier, or in none to have the answers judged."
        )
    return tuple(cases)


def _case(line: str, where: str, number: int, names: Mapping[str, str]) -> Case:
    try:
        row = json.loads(line, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}).") from error
    found: dict[str, Any] = {key: row.get(name) if isinstance(row, dict) else None for key, name in names.items()}
    bad = [names[key] for key in _TEXTS if not isinstance(found[key], str)]
    bad += [names[key] for key, kind in _OPTIONAL.items() if not isinstance(found[key], kind | None)]
    if bad:
        raise DataError(
            f"{where}: {', '.join(bad)} missing or of the wrong type. A case has the texts gold and pred, and may have "
            "expected = true or false and the text kind. Other names are given with --columns gold=NAME,pred=NAME."
        )
    return Case(**found, line=number)


def score(verifier: Verifier, cases: Sequence[Case]) -> Score:
    """Judge all cases; a gold the verifier refuses counts as an answer it does not accept ("unparsable")."""
    golds, preds = [case.gold for case in cases], [case.pred for case in cases]
    try:
        return Score(tuple(cases), tuple(judge_all(verifier, preds, golds)), ("",) * len(cases))
    except DataError:
        judged = [_judge_any(verifier, pred, gold) for pred, gold in zip(preds, golds, strict=True)]
    return Score(tuple(cases), tuple(verdict for verdict, _ in judged), tuple(problem for _, problem in judged))


def _judge_any(verifier: Verifier, pred: str, gold: str) -> tuple[Verdict, str]:
    try:
        return judge(verifier, pred, gold), ""
    except DataError as error:
        return wrong("unparsable"), str(error)
