"""Batched sampling with Hugging Face `generate`, every setting pinned and one random stream per completion.

`generate` decodes greedily over logits to which this module has added temperature, top-p and Gumbel noise: an exact
categorical draw (see `noise`) that depends on (seed, problem uid, sample) and on nothing else in the batch.
"""

import contextlib
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import GenerationConfig
from transformers.generation.logits_process import LogitsProcessor, LogitsProcessorList, TopPLogitsWarper
from transformers.generation.stopping_criteria import StoppingCriteria, StoppingCriteriaList

from killick.errors import ConfigError, DataError
from killick.evaluate.backends.types import Completion, cut_at_stop
from killick.evaluate.noise import gumbel, row_keys
from killick.evaluate.settings import SamplingSettings
from killick.prompts import render_prompts
from killick.tasks.types import Row

# Noise is made in 64-bit integers, a block of rows at a time: 2 MB stays in the cache (measured three times faster at
# a vocabulary of 49,152 than 32 MB) and bounds the memory whatever the vocabulary.
_MAX_NOISE_ELEMENTS = 1 << 18


def sample(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Row],
    settings: SamplingSettings,
    *,
    done: Collection[tuple[str, int]] = frozenset(),
    batch_size: int = 256,
) -> Generator[list[Completion], None, None]:
    """Draw every (problem, sample) that is not in `done`, one list per batch; longest prompts first.

    Args:
        model: a causal language model of transformers (or PEFT around one); left in the mode it was in.
        tokenizer: with a chat template.
        rows: the problems; uids must be unique.
        settings: the sampler.
        done: (uid, sample) pairs to leave out.
        batch_size: rows decoded together.

    Raises:
        ConfigError: a prompt plus `max_tokens` exceeds the model's positions, or nothing could end a completion.
        DataError: no chat template, or the model returns NaN.
    """
    inner = _inner(model)
    ends = ends_of(inner.generation_config, tokenizer, settings)
    prompts = render_prompts(tokenizer, rows)
    check_lengths(getattr(inner.config, "max_position_embeddings", None), rows, prompts, settings)
    jobs = jobs_of(rows, prompts, settings, done)
    for start in range(0, len(jobs), batch_size):
        batch = jobs[start : start + batch_size]
        names = [(rows[index].uid, n) for index, n in batch]
        yield _decode_batch(model, tokenizer, [prompts[index] for index, _ in batch], names, settings, ends)


class GumbelSampler(LogitsProcessor):
    """Logits -> logits / temperature, cut by top-p, plus Gumbel noise; the arg-max of that is a sample.

    Args:
        keys_B: one key per row of the batch.
        prompt_width: padded prompt length; completion step = sequence length - prompt width.
        settings: the sampler; temperature 0 leaves the logits alone.
    """

    def __init__(self, keys_B: Int[Tensor, " B"], prompt_width: int, settings: SamplingSettings) -> None:
        self.keys_B = keys_B
        self.prompt_width = prompt_width
        self.temperature = settings.temperature
        self.top_p = TopPLogitsWarper(settings.top_p) if settings.top_p < 1.0 else None

    def __call__(self, input_ids: Int[Tensor, "B L"], scores: Float[Tensor, "B V"]) -> Float[Tensor, "B V"]:
        """Perturbed logits, float32.

        Raises:
            DataError: a row has NaN, +inf or only -inf, which an arg-max would silently turn into a token.
        """
        if not torch.isfinite(scores.amax(dim=-1)).all():
            raise DataError("The model returned NaN or infinite logits: load it in float32, or check its weights.")
        if self.temperature == 0.0:
            return scores
        step = input_ids.shape[1] - self.prompt_width
        num_tokens = scores.shape[1]
        block = max(1, _MAX_NOISE_ELEMENTS // num_tokens)
        parts = []
        for keys, logits in zip(self.keys_B.split(block), scores.split(block), strict=True):
            logits = logits.float() / self.temperature
            if self.top_p is not None:
                logits = self.top_p(input_ids, logits)
            parts.append(logits + gumbel(keys, step, num_tokens))
        return parts[0] if len(parts) == 1 else torch.cat(parts)


class StopStrings(StoppingCriteria):
    """Ends a row once its completion (never its prompt) holds a stop string, and remembers at which length.

    Only a tail of each open row is decoded: a token adds at least one byte, so a string of n bytes that has just
    been completed lies within the last n tokens; the margin covers a character split between tokens.
    """

    def __init__(self, tokenizer: Any, stop: Sequence[str], prompt_width: int, num_rows: int) -> None:
        self.tokenizer = tokenizer
        self.stop = tuple(stop)
        self.prompt_width = prompt_width
        self.window = max(len(text.encode()) for text in stop) + 8
        self.lengths = [0] * num_rows

    def __call__(self, input_ids: Int[Tensor, "B L"], scores: Any, **_: Any) -> Bool[Tensor, " B"]:
        """True for rows that have ended."""
        length = input_ids.shape[1] - self.prompt_width
        still_open = [index for index, ended in enumerate(self.lengths) if not ended]
        tails = input_ids[still_open, max(self.prompt_width, input_ids.shape[1] - self.window) :].tolist()
        for index, text in zip(still_open, _decode(self.tokenizer, tails), strict=True):
            if any(stop in text for stop in self.stop):
                self.lengths[index] = length
        return torch.tensor([ended > 0 for ended in self.lengths], device=input_ids.device)


@dataclass(frozen=True)
class Ends:
    """What ends a completion: token ids, and strings looked for in the text."""

    ids: tuple[int, ...]
    strings: tuple[str, ...]


def ends_of(generation_config: Any, tokenizer: Any, settings: SamplingSettings) -> Ends:
    """What ends a completion: the ends the model and its tokenizer name, and the stop strings.

    Raises:
        ConfigError: nothing could.
    """
    from_model = generation_config.eos_token_id
    ids = set(from_model if isinstance(from_model, list | tuple) else [from_model]) | {tokenizer.eos_token_id}
    special = [text for text in settings.stop if text in tokenizer.all_special_tokens]
    ids |= set(tokenizer.convert_tokens_to_ids(special))  # decoding drops these, so no text search can find them
    strings = tuple(text for text in settings.stop if text not in special)
    ids.discard(None)
    if not ids and not strings:
        raise ConfigError(
            "Neither tokenizer nor model names an end-of-sequence token, and sampling.stop is empty: every completion "
            "would be truncated. Set tokenizer.eos_token or sampling.stop."
        )
    return Ends(tuple(sorted(ids)), strings)


def jobs_of(
    rows: Sequence[Row],
    prompts: Sequence[Sequence[int]],
    settings: SamplingSettings,
    done: Collection[tuple[str, int]],
) -> list[tuple[int, int]]:
    """(index of the row, sample number) of all that is to be drawn.

    Equal lengths share a batch (little padding); longest first, so a lack of memory shows at once.
    """
    order = sorted(range(len(rows)), key=lambda index: -len(prompts[index]))
    return [(index, n) for index in order for n in range(settings.num_samples) if (rows[index].uid, n) not in done]


def check_lengths(
    limit: int | None, rows: Sequence[Row], prompts: Sequence[Sequence[int]], settings: SamplingSettings
) -> None:
    """Refuse a prompt that leaves less than `max_tokens` of the model's positions.

    Raises:
        ConfigError: there is one.
    """
    for row, prompt in zip(rows, prompts, strict=True):
        if limit is not None and len(prompt) + settings.max_tokens > limit:
            room = limit - len(prompt)
            cure = f"Set sampling.max_tokens <= {room}" if room > 0 else "Take a model with more positions"
            raise ConfigError(
                f"Problem {row.uid!r} has {len(prompt)} prompt tokens; with max_tokens = {settings.max_tokens} that "
                f"exceeds the {limit} positions of the model. {cure}."
            )


def _decode_batch(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    names: Sequence[tuple[str, int]],
    settings: SamplingSettings,
    ends: Ends,
) -> list[Completion]:
    width = max(len(prompt) for prompt in prompts)
    padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else (ends.ids or (0,))[0]
    ids_BS = torch.tensor([[padding] * (width - len(prompt)) + list(prompt) for prompt in prompts])
    mask_BS = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    keys_B = row_keys([(settings.seed, uid, n) for uid, n in names]).to(model.device)
    stops = StopStrings(tokenizer, ends.strings, width, len(prompts)) if ends.strings else None
    config = GenerationConfig(
        do_sample=False,
        num_beams=1,
        max_new_tokens=settings.max_tokens,
        eos_token_id=list(ends.ids) or None,
        pad_token_id=padding,
        use_cache=True,
    )
    with _pinned(model, config):
        out_BL = model.generate(
            input_ids=ids_BS.to(model.device),
            attention_mask=mask_BS.to(model.device),
            generation_config=config,
            logits_processor=LogitsProcessorList([GumbelSampler(keys_B, width, settings)]),
            stopping_criteria=StoppingCriteriaList([stops] if stops else []),
        )
    return _cut(tokenizer, out_BL[:, width:].cpu(), names, ends, stops)


def _cut(
    tokenizer: Any, ids_BT: Tensor, names: Sequence[tuple[str, int]], ends: Ends, stops: StopStrings | None
) -> list[Completion]:
    """Sampled ids -> completions: nothing after the first end token, and text only up to the first stop string."""
    is_end_BT = torch.isin(ids_BT, torch.tensor(ends.ids, dtype=ids_BT.dtype))
    ended_B = is_end_BT.any(dim=1)
    lengths = torch.where(ended_B, is_end_BT.int().argmax(dim=1) + 1, ids_BT.shape[1]).tolist()
    if stops is not None:
        lengths = [min(length, stop or length) for length, stop in zip(lengths, stops.lengths, strict=True)]
    texts = _decode(tokenizer, [ids[:length] for ids, length in zip(ids_BT.tolist(), lengths, strict=True)])
    completions = []
    for (uid, n), text, length, ended in zip(names, texts, lengths, ended_B.tolist(), strict=True):
        before = cut_at_stop(text, ends.strings)
        stopped = len(before) < len(text)
        completions.append(Completion(uid, n, before, length, not (ended or stopped)))
    return completions


def _decode(tokenizer: Any, ids: list[list[int]]) -> list[str]:
    texts: list[str] = tokenizer.batch_decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return texts


def _inner(model: Any) -> Any:
    """The transformers model itself, which owns config and generation config (PEFT wraps it)."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@contextlib.contextmanager
def _pinned(model: Any, config: GenerationConfig) -> Iterator[None]:
    """Replace the model's own generation config for one call, and switch dropout off.

    `generate` fills every field left open with the value of `model.generation_config`; a checkpoint that ships
    top_k = 20 or a repetition penalty would change the sampler although nobody asked for it.
    """
    inner = _inner(model)
    saved, training = inner.generation_config, model.training
    inner.generation_config = config
    model.eval()
    try:
        yield
    finally:
        inner.generation_config = saved
        model.train(training)
