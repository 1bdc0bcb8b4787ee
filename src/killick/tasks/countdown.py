"""Countdown in steps: the built-in task of the nano world, small enough to watch every method at work in minutes."""

import random
from dataclasses import dataclass
from typing import Any, ClassVar

from killick.errors import ConfigError, DataError
from killick.methods.plan import Prompt, rewritten
from killick.nano import world
from killick.nano.tokenizer import GUIDED_MARK, PLAN_MARK
from killick.registry import nearest
from killick.tasks.types import Messages, Row
from killick.verifiers.countdown import CountdownVerifier, parse_steps


def solve_content(answer: str) -> str:
    """The user turn asking for a solution: `3,5,7,2>22` -> `3,5,7,2>22:`."""
    return f"{answer}:"


def plan_of(solution: str) -> str:
    """The plan of a solution: operators with the values between, without operands, e.g. `-4*20+`.

    The last value is left out: it is the target.

    Raises:
        DataError: the text is not a chain of steps.
    """
    steps = parse_steps(solution)
    if steps is None:
        raise DataError(f"No plan for {solution[:80]!r}: it is not a chain of steps such as '7-3=4;5*4=20;20+2=22'.")
    return "".join(f"{step.op}{step.value}" for step in steps[:-1]) + steps[-1].op


def plan_content(problem: str, solution: str) -> str:
    """The user turn asking for the plan of a solution; `problem` is the solve turn, e.g. `3,5,7,2>22:`."""
    return f"{PLAN_MARK}{problem}{solution}"


def guided_content(problem: str, plan: str) -> str:
    """The user turn asking for a solution along a plan; `problem` is the solve turn, e.g. `3,5,7,2>22:`."""
    return f"{GUIDED_MARK}{problem}{plan}"


def _messages(content: str) -> Messages:
    return [{"role": "user", "content": content}]


def plan_messages(problem: str, solution: str) -> Messages:
    """Chat messages of `plan_content`."""
    return _messages(plan_content(problem, solution))


def guided_messages(problem: str, plan: str) -> Messages:
    """Chat messages of `guided_content`."""
    return _messages(guided_content(problem, plan))


def uses_division(completion: str) -> bool:
    """True when the completion is a chain of steps with a division: the rare mode worth following."""
    return any(step.op == "/" for step in parse_steps(completion) or ())


class CountdownWording:
    """The two turns of SORT in the world's own language; see `killick.methods.plan.PlanWording`."""

    def ask(self, prompt: Prompt, reference: str) -> Prompt:
        """The turn that asks for the plan of a solution."""
        return rewritten(prompt, lambda problem: plan_content(problem, reference))

    def guided(self, prompt: Prompt, plan: str) -> Prompt:
        """The turn that asks for a solution along a plan."""
        return rewritten(prompt, lambda problem: guided_content(problem, plan))


@dataclass(frozen=True)
class Countdown:
    """Problems of `killick.nano.world`; no settings, the world is fixed so that results stay comparable.

    Splits: `easy` has at least 12 distinct solutions a problem, `hard` exactly one; `mixed` for tests, `validation`
    and `train` are half of each kind, drawn alike; `ood` shows numbers above those of pretraining.
    """

    splits = tuple(world.SPLITS)
    plan_wording: ClassVar[CountdownWording] = CountdownWording()

    @property
    def verifier(self) -> CountdownVerifier:
        """The judge, with the largest value of the world."""
        return CountdownVerifier(max_value=world.MAX_VALUE)

    def rows(self, split: str, limit: int | None = None) -> list[Row]:
        """The first `limit` problems of a split, each with a reference solution drawn from its distinct ones.

        Raises:
            ConfigError: unknown split, or a limit below 1.
        """
        if split not in self.splits:
            raise ConfigError(f"The task countdown has no split {split!r}. {nearest(split, self.splits)}")
        if limit is not None and limit < 1:
            raise ConfigError(f"limit must be at least 1 or None for all rows, found {limit}.")
        return [_row(split, i, problem) for i, problem in enumerate(world.problems(split)[:limit])]

    def gold_completion(self, row: Row) -> str:
        """The reference solution.

        Raises:
            DataError: the row has none.
        """
        if row.solution is None:
            raise DataError(f"The countdown row {row.uid!r} has no solution. Rows of this task always carry one.")
        return row.solution

    def mode(self, completion: str) -> str | None:
        """The operators in order, e.g. `-*+`, or None when the completion is not a chain of steps."""
        steps = parse_steps(completion)
        return None if steps is None else "".join(step.op for step in steps)


def _row(split: str, index: int, problem: world.Problem) -> Row:
    ways = world.solutions(problem.key)
    # Seeded by the problem itself, so the reference does not change with `limit` or the order of calls.
    chosen = ways[int(random.Random(problem.text).random() * len(ways))]
    solution = world.write(chosen)
    meta: dict[str, Any] = {
        "numbers": list(problem.numbers),
        "target": problem.target,
        "num_solutions": len(ways),
        "plan": plan_of(solution),
    }
    return Row(
        uid=f"countdown/{split}/{index}",
        prompt=_messages(solve_content(problem.text)),
        answer=problem.text,
        solution=solution,
        source="countdown",
        meta=meta,
    )
