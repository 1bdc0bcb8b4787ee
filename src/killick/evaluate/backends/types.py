"""What every backend takes and gives, and how it names random streams where it cannot make the noise itself."""

import hashlib
import json
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from killick.evaluate.settings import ModelIdentity, SamplingSettings
from killick.tasks.types import Row


@dataclass(frozen=True)
class Completion:
    """One sampled text.

    Attributes:
        uid: of its problem.
        sample: its number among the problem's samples, from 0.
        text: decoded without special tokens, ending before the first stop string.
        tokens: sampled tokens, end-of-sequence and stop included.
        truncated: neither end-of-sequence nor a stop string within `max_tokens`.
    """

    uid: str
    sample: int
    text: str
    tokens: int
    truncated: bool


class Sampler(Protocol):
    """Draws completions."""

    def sample(
        self, rows: Sequence[Row], settings: SamplingSettings, done: Collection[tuple[str, int]] = frozenset()
    ) -> Generator[list[Completion], None, None]:
        """Every (problem uid, sample number) that is not in `done`, exactly once, in batches and in any order.

        What a batch holds is written to disk before the next one is asked for.

        Raises:
            ConfigError, DataError: the backend cannot give the rest.
        """
        ...


class Backend(Sampler, Protocol):
    """Frozen dataclass: the fields are its settings, `model` among them; heavy things are loaded on first use."""

    @property
    def dtype(self) -> str:
        """In which the model computes; "auto" where this side does not know."""
        ...

    def identity(self) -> ModelIdentity:
        """Which model is sampled.

        Raises:
            DataError: there is no such model.
        """
        ...

    def defining(self) -> Mapping[str, Any]:
        """Of the settings, those that move numbers; `name` is the registry name. They are hashed with the rest."""
        ...


def stream_seed(seed: int, uid: str, sample: int) -> int:
    """The seed of one completion, for backends that draw by themselves: 31 bits, which every server takes."""
    name = json.dumps([seed, uid, sample]).encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:4]) >> 1


def cut_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the first stop string; whether a backend leaves it in differs."""
    places = [text.find(end) for end in stop if end in text]
    return text[: min(places)] if places else text
