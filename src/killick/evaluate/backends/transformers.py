"""A model in this process, by `killick.evaluate.sample`: the backend whose samples do not depend on their batch."""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from killick.evaluate.backends.types import Completion
from killick.evaluate.settings import ModelIdentity, SamplingSettings
from killick.tasks.types import Row


@dataclass(frozen=True)
class LoadedModel:
    """A sampler over a model that is already loaded."""

    model: Any
    tokenizer: Any
    batch_size: int

    def sample(
        self, rows: Sequence[Row], settings: SamplingSettings, done: Collection[tuple[str, int]] = frozenset()
    ) -> Generator[list[Completion], None, None]:
        """See `killick.evaluate.sample.sample`."""
        from killick.evaluate.sample import sample

        return sample(self.model, self.tokenizer, rows, settings, done=done, batch_size=self.batch_size)


@dataclass(frozen=True)
class TransformersBackend:
    """Hugging Face `generate` in this process.

    Attributes:
        model: as `killick.models.resolve` takes it.
        dtype: in which the model is loaded.
        batch_size: rows decoded together; changes speed and float rounding only.
    """

    model: str
    dtype: str = "float32"
    batch_size: int = 512

    @cached_property
    def loaded(self) -> LoadedModel:
        """The model, loaded on first use."""
        from killick.models import load_model

        return LoadedModel(*load_model(self.model, dtype=self.dtype), self.batch_size)

    def identity(self) -> ModelIdentity:
        """The fingerprint of the model's files."""
        from killick.evaluate.identity import model_identity
        from killick.models import resolve

        return model_identity(resolve(self.model).name)

    def defining(self) -> Mapping[str, Any]:
        """Nothing but the name: dtype and batch size are recorded with the performance."""
        return {"name": "transformers"}

    def sample(
        self, rows: Sequence[Row], settings: SamplingSettings, done: Collection[tuple[str, int]] = frozenset()
    ) -> Generator[list[Completion], None, None]:
        """See `killick.evaluate.sample.sample`."""
        return self.loaded.sample(rows, settings, done)
