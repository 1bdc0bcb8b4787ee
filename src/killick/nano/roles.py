"""Which characters of a countdown solution are decisions and which are routine.

    7-3=4;5*4=20;20+2=22
    dordsrrs…

A character is a decision when the values still at hand leave a choice: which value comes next, and what is done with
it. The target is not taken into account: on a problem with one solution it would leave no choice anywhere. Copying out
a value that is the only one possible, computing a result and separating steps are routine.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from killick.verifiers.countdown import ParsedStep, parse_steps

Role = Literal["operand", "operator", "forced", "result", "separator"]
DECISIONS: tuple[Role, ...] = ("operand", "operator")
_WHITE = " \t\r\n"  # what parse_steps ignores around a chain


def roles_of(text: str) -> list[Role] | None:
    """The role of every character of a chain of steps, or None when the text is none.

    `operand`: a digit of an operand where another digit, or the end of the number, was possible with the values at
    hand. `forced`: one where nothing else was, such as the whole second operand of the last step, when only one value
    is left. `operator`: always a decision. `result`: a digit after `=`. `separator`: `=`, `;` and white space around
    the whole.

    The values at hand at the start are the operands that no earlier step has made. That the larger operand of `+` and
    `*` comes first by custom is not taken into account either.

    Args:
        text: at most 512 characters are read as a chain; longer ones give None.
    """
    steps = parse_steps(text)
    if steps is None:
        return None
    at_hand = _numbers(steps)
    before = len(text) - len(text.lstrip(_WHITE))
    roles: list[Role] = ["separator"] * before
    for index, step in enumerate(steps):
        roles += ["separator"] * (index > 0)
        roles += _copying(step.a, at_hand)
        roles.append("operator")
        roles += _copying(step.b, at_hand)
        roles.append("separator")
        roles += ["result"] * len(str(step.value))
        at_hand[step.value] += 1
    return roles + ["separator"] * (len(text) - len(roles))


def _numbers(steps: Iterable[ParsedStep]) -> Counter[int]:
    """The values a chain starts from: operands for which no unused result stands ready."""
    numbers: Counter[int] = Counter()
    made: Counter[int] = Counter()
    for step in steps:
        for operand in (step.a, step.b):
            (made if made[operand] else numbers)[operand] += -1 if made[operand] else 1
        made[step.value] += 1
    return numbers


def _copying(operand: int, at_hand: Counter[int]) -> list[Role]:
    """Roles of the digits of one operand, which is then no longer at hand."""
    text = str(operand)
    values = [str(value) for value, count in at_hand.items() if count > 0]
    # What may follow the digits so far: a digit, or "" where a value ends.
    choices = [{v[i : i + 1] for v in values if v.startswith(text[:i])} for i in range(len(text))]
    at_hand[operand] -= 1
    return ["operand" if len(choice) > 1 else "forced" for choice in choices]
