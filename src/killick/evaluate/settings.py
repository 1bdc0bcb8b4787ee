"""What an evaluation was asked to do, and the hash that ties its records to exactly that.

Whatever moves a number is hashed: sampler, problems, task settings, model content and dtype. What only changes speed
is recorded beside it and not hashed.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Protocol

from killick.errors import ConfigError, DataError, RecordError
from killick.models import DTYPES
from killick.tasks.types import Row, Task


@dataclass(frozen=True)
class SamplingSettings:
    """How completions are drawn. Every other sampler setting is off: no top-k, no min-p, no penalties.

    Attributes:
        num_samples: completions per problem (N).
        max_tokens: longest completion, end-of-sequence token included.
        seed: names the random streams; one stream per (seed, problem uid, sample).
        temperature: divides the logits; 0 means greedy and allows a single sample.
        top_p: keeps the smallest set of tokens with at least this probability, after temperature; 1 keeps all.
        stop: the text ends before the first of these strings; a special token's text ends it like end-of-sequence.
    """

    num_samples: int
    max_tokens: int
    seed: int
    temperature: float = 1.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("num_samples", "max_tokens", "seed"):
            lowest = 0 if name == "seed" else 1
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
                raise ConfigError(f"sampling.{name} = {value!r}: give an integer of at least {lowest}.")
        for name in ("temperature", "top_p"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise ConfigError(f"sampling.{name} = {value!r}: give a number.")
            if abs(value) > 1e300:  # an integer may not even fit a float
                raise ConfigError(f"sampling.{name} is too large. Typical are 0 to 2.")
            object.__setattr__(self, name, float(value))  # 1 and 1.0 must hash alike
        if not isinstance(self.stop, list | tuple) or not all(isinstance(text, str) and text for text in self.stop):
            raise ConfigError(f"sampling.stop = {self.stop!r}: give a list of non-empty strings.")
        for text in self.stop:
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise ConfigError(
                    f"sampling.stop has {text!r}, which UTF-8 cannot hold: remove the half character."
                ) from error
        object.__setattr__(self, "stop", tuple(self.stop))
        if not 0.0 <= self.temperature < float("inf"):
            raise ConfigError(f"sampling.temperature = {self.temperature}: allowed is 0 (greedy) or more, finite.")
        if not 0.0 < self.top_p <= 1.0:
            raise ConfigError(f"sampling.top_p = {self.top_p}: allowed is 0 < top_p <= 1 (1 keeps every token).")
        if self.temperature == 0.0 and self.num_samples > 1:
            raise ConfigError(
                f"sampling.temperature = 0 draws {self.num_samples} identical samples. "
                "Set num_samples = 1 for greedy decoding, or a temperature above 0."
            )


class _EvaluationFields(Protocol):
    """What of an `[evaluate]` section names the sampler; read only."""

    @property
    def num_samples(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def temperature(self) -> float: ...
    @property
    def top_p(self) -> float: ...
    @property
    def stop(self) -> tuple[str, ...]: ...


def evaluation_settings(section: _EvaluationFields) -> SamplingSettings:
    """The sampler of an `[evaluate]` section.

    Raises:
        ConfigError: a value out of range.
    """
    return SamplingSettings(**{f.name: getattr(section, f.name) for f in fields(SamplingSettings)})


@dataclass(frozen=True)
class Performance:
    """How the model is run.

    Attributes:
        batch_size: rows decoded together; not hashed, since it changes samples only through float rounding.
        dtype: in which the model was loaded, hashed; recorded here, applied by whoever loads the model.
    """

    batch_size: int = 256
    dtype: str = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.batch_size, int) or isinstance(self.batch_size, bool) or self.batch_size < 1:
            raise ConfigError(f"batch_size = {self.batch_size!r}: give an integer of at least 1 (rows).")
        if self.dtype not in DTYPES:
            raise ConfigError(f"dtype = {self.dtype!r}: allowed are {', '.join(DTYPES)}.")


@dataclass(frozen=True)
class ModelIdentity:
    """Which model was sampled: a label for people, and a fingerprint of its files (see `identity.model_identity`)."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class EvaluationSpec:
    """Everything that defines the numbers of one evaluation; build it with `describe`.

    Attributes:
        task: registry name of the task.
        task_settings: its fields, JSON-able.
        split: of the task.
        num_problems: problems actually evaluated (Q).
        problems: digest of their uids, prompts and golds.
        sampling: the sampler.
        model: the model; only its fingerprint is hashed, so a moved folder stays the same model.
        performance: its dtype is hashed, the batch size is not.
        backend: what samples: its name, and those of its settings that move numbers. Another backend draws other
            samples from, at best, the same distribution, so it is another evaluation.
    """

    task: str
    task_settings: Mapping[str, Any]
    split: str
    num_problems: int
    problems: str
    sampling: SamplingSettings
    model: ModelIdentity
    performance: Performance = field(default_factory=Performance)
    backend: Mapping[str, Any] = field(default_factory=lambda: {"name": "transformers"})

    def defining(self) -> dict[str, Any]:
        """The hashed settings as one flat JSON-able dict, e.g. `sampling.top_p`."""
        flat: dict[str, Any] = {}
        _flatten("", {**self.to_dict(), "performance": {"dtype": self.performance.dtype}}, flat)
        del flat["model.name"]
        if flat["backend.name"] == "transformers":
            del flat["backend.name"]  # evaluations from before there were others keep their hash
        return flat

    def hash(self) -> str:
        """16 hex digits; equal exactly when two evaluations ask for the same numbers."""
        text = json.dumps(self.defining(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Nested, JSON-able; tuples have become lists."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "EvaluationSpec":
        """Inverse of `to_dict`.

        Raises:
            RecordError: keys are missing or unknown (written by another version of killick), or a value cannot be.
        """
        try:
            parts = {
                "sampling": SamplingSettings(**data["sampling"]),
                "model": ModelIdentity(**data["model"]),
                "performance": Performance(**data["performance"]),
            }
            spec = cls(**{**data, **parts})
            texts = (spec.task, spec.split, spec.problems, spec.model.name, spec.model.fingerprint)
            if not all(isinstance(text, str) for text in texts) or not isinstance(spec.task_settings, Mapping):
                raise TypeError("task, split, problems and model must be texts, task_settings a table")
            if not isinstance(spec.backend, Mapping) or not isinstance(spec.backend["name"], str):
                raise TypeError(f"backend = {spec.backend!r} is no table with a name")
            if not isinstance(spec.num_problems, int):
                raise TypeError(f"num_problems = {spec.num_problems!r} is no whole number")
            return spec
        except (KeyError, TypeError, ConfigError) as error:
            raise RecordError(
                f"Not the settings of an evaluation this version of killick can read: {error}."
            ) from error


def describe(
    task_name: str, task: Task, split: str, limit: int | None, sampling: SamplingSettings, model: ModelIdentity
) -> EvaluationSpec:
    """The spec of evaluating the first `limit` problems of a split (all when None); loads the problems once.

    Raises:
        ConfigError, DataError: from the task (unknown split, unreadable data).
    """
    rows = task.rows(split, limit)
    settings: dict[str, Any] = {f.name: getattr(task, f.name) for f in fields(task)} if is_dataclass(task) else {}
    plain = json.loads(json.dumps(settings, default=str))
    return EvaluationSpec(task_name, plain, split, len(rows), digest(rows), sampling, model)


def check_uids(rows: Sequence[Row], split: str) -> None:
    """Refuse a split in which two problems share a uid: their records could not be told apart.

    Raises:
        DataError: they do.
    """
    twice = [uid for uid, count in Counter(row.uid for row in rows).items() if count > 1]
    if twice:
        raise DataError(f"Split {split!r} has several problems with uid {twice[0]!r}; uids must be unique.")


def digest(rows: Sequence[Row]) -> str:
    """16 hex digits over uid, prompt and gold of every problem, in order."""
    total = hashlib.sha256()
    for row in rows:
        total.update(json.dumps([row.uid, row.prompt, row.answer], sort_keys=True).encode() + b"\n")
    return total.hexdigest()[:16]


def _flatten(prefix: str, value: Any, into: dict[str, Any]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{prefix}.{key}" if prefix else key, inner, into)
    else:
        into[prefix] = value
