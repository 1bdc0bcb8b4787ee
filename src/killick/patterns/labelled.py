"""Short solutions with the patterns they show, and how well a classifier agrees with them.

The texts were written for this purpose: terse ones, and answers as language models write them. Half of them,
`development`, was looked at while the rules were written, the other half, `held_out`, was not. Texts and rules have the
same author, so real completions will agree less well.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal, get_args

from killick.errors import ConfigError
from killick.patterns.names import PATTERNS

Half = Literal["development", "held_out"]


@dataclass(frozen=True)
class Labelled:
    """A text and the patterns it shows."""

    text: str
    labels: frozenset[str]
    half: Half


@dataclass(frozen=True)
class Agreement:
    """How a classifier does on one pattern.

    Attributes:
        num_labelled: texts that show it.
        num_found: texts in which the classifier sees it.
        num_both: texts in both.
    """

    num_labelled: int
    num_found: int
    num_both: int

    @property
    def precision(self) -> float:
        """Share of the found that are labelled; nan when none is found."""
        return self.num_both / self.num_found if self.num_found else float("nan")

    @property
    def recall(self) -> float:
        """Share of the labelled that are found; nan when none is labelled."""
        return self.num_both / self.num_labelled if self.num_labelled else float("nan")


def labelled_texts(half: Half | None = None) -> list[Labelled]:
    """The labelled texts, all or one half.

    Raises:
        ConfigError: no such half.
    """
    if half is not None and half not in get_args(Half):
        raise ConfigError(f"There is no half {half!r} of the labelled texts. Allowed: {', '.join(get_args(Half))}.")
    lines = resources.files("killick.patterns").joinpath("labelled.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    texts = [Labelled(row["text"], frozenset(row["labels"]), row["half"]) for row in rows]
    return [one for one in texts if half in (None, one.half)]


def agreement(texts: Sequence[Labelled], classify: Callable[[str], Iterable[str]]) -> dict[str, Agreement]:
    """Precision and recall of a classifier, pattern by pattern."""
    found = [frozenset(classify(one.text)) for one in texts]
    return {
        name: Agreement(
            num_labelled=sum(name in one.labels for one in texts),
            num_found=sum(name in seen for seen in found),
            num_both=sum(name in one.labels and name in seen for one, seen in zip(texts, found, strict=True)),
        )
        for name in PATTERNS
    }
