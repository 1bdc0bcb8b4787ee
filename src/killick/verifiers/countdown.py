"""The judge of countdown solutions: a grammar and integer arithmetic, nothing is ever evaluated as code."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from killick.errors import ConfigError, DataError
from killick.verifiers.types import RIGHT, Verdict, wrong

# ASCII digits only (\d would take other scripts), no leading zero, so a value has one spelling.
_NUMBER = r"(?:0|[1-9][0-9]{0,5})"
_STEP = re.compile(rf"({_NUMBER})([-+*/])({_NUMBER})=({_NUMBER})")
_CHAIN = re.compile(rf"{_STEP.pattern}(?:;{_STEP.pattern})*")
_GOLD = re.compile(r"([1-9][0-9]{0,5}(?:,[1-9][0-9]{0,5})+)>([1-9][0-9]{0,5})")
_MAX_CHARS = 512


class ParsedStep(NamedTuple):
    """One step as written: `a op b = value`, true or not."""

    a: int
    op: str
    b: int
    value: int


def parse_steps(text: str) -> tuple[ParsedStep, ...] | None:
    """The steps of a solution text, or None when it does not fit the grammar `a op b = value (; ...)`.

    White space around the whole is ignored. Nothing is checked beyond the grammar.
    """
    if len(text) > _MAX_CHARS:  # before any other work: completions are hostile
        return None
    text = text.strip(" \t\r\n")
    if not _CHAIN.fullmatch(text):
        return None
    return tuple(ParsedStep(int(a), op, int(b), int(value)) for a, op, b, value in _STEP.findall(text))


def _result(step: ParsedStep) -> int | None:
    """The true value of the left side, or None for a division that is not exact or is by zero."""
    if step.op == "+":
        return step.a + step.b
    if step.op == "-":
        return step.a - step.b
    if step.op == "*":
        return step.a * step.b
    return step.a // step.b if step.b and step.a % step.b == 0 else None


def _parse_gold(answer: str) -> tuple[list[int], int] | None:
    match = _GOLD.fullmatch(answer) if len(answer) <= _MAX_CHARS else None
    return (list(map(int, match[1].split(","))), int(match[2])) if match else None


@dataclass(frozen=True)
class CountdownVerifier:
    """Judges a chain of steps against gold such as `3,5,7,2>24`.

    Right means: one step fewer than there are numbers, each step takes two values still available and states its
    true result, a positive integer of at most `max_value`, and the last result is the target. With one step fewer
    than numbers, every number is then used exactly once.

    Attributes:
        max_value: largest value a step may give.
    """

    max_value: int = 200

    def __post_init__(self) -> None:
        if self.max_value < 1:
            raise ConfigError(f"max_value must be at least 1, found {self.max_value}. The countdown world uses 200.")

    def check_gold(self, answer: str) -> None:
        """Refuse a gold that is not `number,number,...>target` with a target of at most `max_value`.

        Raises:
            DataError: malformed gold, or a target no allowed step can give.
        """
        gold = _parse_gold(answer)
        if gold is None:
            raise DataError(
                f"The countdown gold {answer[:80]!r} is malformed. Allowed: at least two positive numbers and a "
                "positive target without leading zeros, such as '3,5,7,2>24'. Correct the answer column."
            )
        if gold[1] > self.max_value:
            raise DataError(
                f"The countdown target in {answer[:80]!r} is above max_value = {self.max_value}, so nothing can reach "
                "it. Raise max_value or drop the row."
            )

    def __call__(self, completion: str, answer: str) -> Verdict:
        """Judge one completion; linear in at most 512 characters, longer ones are unparsable.

        Raises:
            DataError: the gold is malformed (never because of the completion).
        """
        gold = _parse_gold(answer)
        if gold is None:
            self.check_gold(answer)
            raise AssertionError("check_gold accepts only what _parse_gold reads")
        if len(completion) <= _MAX_CHARS and not completion.strip():
            return wrong("no_answer")
        steps = parse_steps(completion)
        if steps is None:
            return wrong("unparsable")
        available, target = gold
        if len(steps) != len(available) - 1:
            return wrong()
        for step in steps:
            for operand in (step.a, step.b):
                if operand not in available:
                    return wrong()
                available.remove(operand)
            if step.value != _result(step) or not 1 <= step.value <= self.max_value:
                return wrong()
            available.append(step.value)
        return RIGHT if available == [target] else wrong()
