"""How a plan is asked for, and how it is shown: wordings on chat messages or plain prompts, no model in sight.

A plan is context, never a target: it goes into the user turn through the model's own chat template.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from killick.errors import ConfigError, DataError

Prompt = list[dict[str, Any]] | str
"""Chat messages, or plain text for a model without a chat template."""


class PlanWording(Protocol):
    """The two turns SORT needs beside the ordinary prompt. A task may bring its own as the attribute `plan_wording`."""

    def ask(self, prompt: Prompt, reference: str) -> Prompt:
        """The prompt that shows problem and reference solution and asks for the plan."""
        ...

    def guided(self, prompt: Prompt, plan: str) -> Prompt:
        """The ordinary prompt with the plan in its user turn."""
        ...


@dataclass(frozen=True)
class TextWording:
    """The wording for models that read English.

    Attributes:
        request: the turn that asks for a plan; holds `{problem}` and `{reference}`.
        hint: the turn that shows a plan; holds `{problem}` and `{plan}`.

    Raises:
        ConfigError: a place for one of these texts is missing.
    """

    request: str = (
        "Here is a problem and a correct solution.\n\nProblem:\n{problem}\n\nSolution:\n{reference}\n\n"
        "Write the plan behind this solution as a short numbered list of its decisions, in order: which quantities are "
        "introduced, which lemmas, case splits, constraints or substitutions are used. Leave out routine calculation, "
        "explanations and the final answer. One line for each decision."
    )
    hint: str = "{problem}\n\nA plan that leads to the solution:\n{plan}"

    def __post_init__(self) -> None:
        for name, text, places in (
            ("request", self.request, ("{problem}", "{reference}")),
            ("hint", self.hint, ("{problem}", "{plan}")),
        ):
            for place in places:
                if place not in text:
                    raise ConfigError(f"The {name} of a plan wording must hold {place}, found {text[:80]!r}.")

    def ask(self, prompt: Prompt, reference: str) -> Prompt:
        """See `PlanWording`."""
        return rewritten(prompt, lambda problem: _fill(self.request, problem=problem, reference=reference))

    def guided(self, prompt: Prompt, plan: str) -> Prompt:
        """See `PlanWording`."""
        return rewritten(prompt, lambda problem: _fill(self.hint, problem=problem, plan=plan))


def rewritten(prompt: Prompt, change: Any) -> Prompt:
    """The prompt with the text of its last user turn changed; everything before it, a system message say, is kept.

    Raises:
        DataError: the messages hold no user turn, or one that is not plain text.
    """
    if isinstance(prompt, str):
        return str(change(prompt))
    if not prompt or prompt[-1].get("role") != "user" or not isinstance(prompt[-1].get("content"), str):
        raise DataError(
            "A plan goes into the last user turn, but this prompt does not end with a user turn of plain text: "
            f"{str(prompt)[-120:]!r}."
        )
    return [*prompt[:-1], {**prompt[-1], "content": change(prompt[-1]["content"])}]


def problem_of(prompt: Prompt) -> str:
    """The text of the last turn, for records that people read."""
    return prompt if isinstance(prompt, str) else str(prompt[-1].get("content", "")) if prompt else ""


def _fill(template: str, **texts: str) -> str:
    """All places at once: a problem that itself holds `{plan}` or braces stays as it is."""
    parts = [template]
    for name, text in texts.items():
        place = "{" + name + "}"
        parts = [piece for part in parts for piece in _split(part, place, text)]
    return "".join(parts)


class _Filled(str):
    """A piece that is text already and holds no more places."""


def _split(part: str, place: str, text: str) -> list[str]:
    if isinstance(part, _Filled) or place not in part:
        return [part]
    before, _, after = part.partition(place)
    return [before, _Filled(text), *_split(after, place, text)]
