"""vLLM's offline engine, in this process: fast on a GPU. Prompts, ends and sampler fields are those of `sample`."""

import contextlib
import importlib.util
import itertools
import os
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from killick.errors import ConfigError, DataError, KillickError
from killick.evaluate.backends.types import Completion, cut_at_stop, stream_seed
from killick.evaluate.settings import ModelIdentity, SamplingSettings
from killick.models import resolve, stored_dtype
from killick.tasks.types import Row

_RECORD_EVERY_S = 1.0  # what ends within it is judged and written together
_NAMES = itertools.count()  # of requests: an engine takes each name once


@dataclass(frozen=True)
class VLLMBackend:
    """`vllm.LLM`; equal seeds give equal texts only as far as vLLM's batching lets them.

    Attributes:
        model: as `killick.models.resolve` takes it, but no adapter: merge it first.
        dtype: in which the model computes; "auto" is the stored type, also where vLLM's own "auto" would turn float32
            into a half-precision type.
        batch_size: completions handed over at most; each is recorded soon after it ends, and another takes
            its place.
        tensor_parallel_size: GPUs that share the model.
        gpu_memory_utilization: share of the GPU's memory that vLLM may take.
        max_model_len: positions reserved for prompt and completion; None takes the model's own.
        enforce_eager: start at once, without compiling or capturing graphs; slower for long work.
    """

    model: str
    dtype: str = "auto"
    batch_size: int = 4096
    tensor_parallel_size: int = 1
    gpu_memory_utilization: float = 0.9
    max_model_len: int | None = None
    enforce_eager: bool = False

    def __post_init__(self) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise ConfigError("The backend vllm needs the package vllm: pip install 'killick[vllm]'.")
        if resolve(self.model).kind == "adapter":
            raise ConfigError(f"{self.model} is an adapter. Merge it into its base and save that for the backend vllm.")
        if self.dtype == "auto":
            stored = stored_dtype(resolve(self.model))
            object.__setattr__(self, "dtype", str(stored).removeprefix("torch."))

    @cached_property
    def _engine(self) -> Any:
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")  # read at import; hundreds of lines hide the progress
        import vllm

        made = vllm.LLM(
            model=resolve(self.model).name,
            dtype=self.dtype,
            seed=0,
            trust_remote_code=False,
            generation_config="vllm",  # else the model's own settings fill what a request leaves open
            tensor_parallel_size=self.tensor_parallel_size,
            gpu_memory_utilization=self.gpu_memory_utilization,
            max_model_len=self.max_model_len,
            enforce_eager=self.enforce_eager,
        )
        return made.llm_engine

    def identity(self) -> ModelIdentity:
        """The fingerprint of the model's files."""
        from killick.evaluate.identity import model_identity

        return model_identity(resolve(self.model).name)

    def defining(self) -> Mapping[str, Any]:
        """Nothing but the name: dtype and batch size are recorded with the performance."""
        return {"name": "vllm"}

    def sample(
        self, rows: Sequence[Row], settings: SamplingSettings, done: Collection[tuple[str, int]] = frozenset()
    ) -> Generator[list[Completion], None, None]:
        """Every (problem, sample) not in `done`, longest prompts first.

        Raises:
            ConfigError: a prompt plus `max_tokens` exceeds the positions, or nothing could end a completion.
            DataError: no chat template, or vLLM gives a request up or fails.
        """
        import vllm
        from vllm.sampling_params import RequestOutputKind

        from killick.evaluate.sample import check_lengths, ends_of, jobs_of
        from killick.models import load_tokenizer
        from killick.prompts import render_prompts

        tokenizer = load_tokenizer(self.model)
        ends = ends_of(_generation_config(resolve(self.model).name), tokenizer, settings)
        prompts = render_prompts(tokenizer, rows)
        check_lengths(self._engine.model_config.max_model_len, rows, prompts, settings)
        pinned = {
            "n": 1, "temperature": settings.temperature, "top_p": settings.top_p, "max_tokens": settings.max_tokens,
            "top_k": -1, "min_p": 0.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "repetition_penalty": 1.0,
            "stop": list(ends.strings), "stop_token_ids": list(ends.ids), "skip_special_tokens": True,
            "spaces_between_special_tokens": False, "output_kind": RequestOutputKind.FINAL_ONLY,
        }  # fmt: skip
        waiting = iter(jobs_of(rows, prompts, settings, done))
        in_flight: dict[str, tuple[str, int]] = {}
        made: list[Completion] = []
        handed_on = time.monotonic()
        try:
            while True:
                for index, n in itertools.islice(waiting, self.batch_size - len(in_flight)):
                    uid, name = rows[index].uid, str(next(_NAMES))
                    params = vllm.SamplingParams(seed=stream_seed(settings.seed, uid, n), **pinned)
                    self._engine.add_request(name, {"prompt_token_ids": list(prompts[index])}, params)
                    in_flight[name] = uid, n
                for output in self._engine.step() if in_flight else ():
                    if output.finished:
                        made.append(_completion(*in_flight.pop(output.request_id), output, ends.strings))
                if made and (not in_flight or time.monotonic() - handed_on > _RECORD_EVERY_S):
                    yield made
                    made, handed_on = [], time.monotonic()
                if not in_flight:
                    return
        except KillickError:
            raise
        except Exception as error:  # its classes have no common base and move from version to version
            raise DataError(
                f"vLLM failed with {len(in_flight)} completions in flight ({type(error).__name__}: {error}). What had "
                "ended is on disk; mend the cause, or lower batch_size, and run the same command again to resume."
            ) from error
        finally:  # Ctrl-C, or nobody asks for the rest
            with contextlib.suppress(Exception):  # an engine that is dead has nothing left to end
                self._engine.abort_request(list(in_flight))


def _generation_config(name: str) -> Any:
    """The model's own, of which only the end-of-sequence ids count here; a folder without one has its config's."""
    from transformers import AutoConfig, GenerationConfig

    try:
        return GenerationConfig.from_pretrained(name)
    except OSError:
        return GenerationConfig.from_model_config(AutoConfig.from_pretrained(name))


def _completion(uid: str, n: int, output: Any, stop: Sequence[str]) -> Completion:
    drawn = output.outputs[0]
    if drawn.finish_reason not in ("stop", "length"):
        raise DataError(f"vLLM gave up sample {n} of problem {uid!r} (finish_reason {drawn.finish_reason!r}).")
    return Completion(uid, n, cut_at_stop(drawn.text, stop), len(drawn.token_ids), drawn.finish_reason == "length")
