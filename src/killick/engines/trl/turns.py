"""A text as the turn a policy would have written after a prompt: token ids, for any chat template.

The turn is what the chat template writes after the generation prompt, up to and with the end-of-turn token (after a
plain prompt: the text and the end-of-sequence token). Only the white space around the text is the template's to
change. Anything else it writes would become a training target nobody asked for: in thinking mode Qwen3 puts an empty
think block before an answer without one, which would teach the model not to think. Such a text is refused; with
`enable_thinking = false` the block stands in the generation prompt and the same text is fine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from killick.errors import ConfigError, DataError

Prompt = str | list[dict[str, Any]]
_SAVE = "save a chat template with the model (tokenizer.chat_template) whose assistant turn"
_NOT_THINKING = "For a thinking model set [trl] chat_template_kwargs = { enable_thinking = false }"


@dataclass(frozen=True)
class Refusal:
    """Why a text cannot be encoded.

    Attributes:
        kind: "control_tokens" (the text is at fault) or "unfit" (template or tokenizer do not go with it).
        reason: what was found and what to do.
    """

    kind: Literal["control_tokens", "unfit"]
    reason: str


@dataclass(frozen=True)
class TurnEncoder:
    """Encodes a text as the turn that follows a prompt, prompts being rendered as `GRPOTrainer` renders them.

    Attributes:
        tokenizer: of transformers (the tokenizer inside it, where the trainer has a processor).
        eos_ids: ids that end a turn, `trainer.eos_token_ids`.
        chat_template: `trainer.chat_template`; None takes the tokenizer's own.
        template_kwargs: `trainer.chat_template_kwargs`.
    """

    tokenizer: Any
    eos_ids: tuple[int, ...]
    chat_template: str | None = None
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def encode(self, prompt: Prompt, text: str) -> tuple[int, ...]:
        """Ids of the turn, an end-of-turn token last and nowhere else.

        Raises:
            ConfigError: chat template or tokenizer do not go with this text.
            DataError: the text holds a special token.
        """
        (turn,) = self.encode_all([prompt], [text])
        if isinstance(turn, Refusal):
            raise (ConfigError if turn.kind == "unfit" else DataError)(turn.reason)
        return turn

    def encode_all(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[tuple[int, ...] | Refusal]:
        """As `encode` for many rows, a `Refusal` in the place of an error; all prompts are messages, or all texts."""
        plain = bool(prompts) and isinstance(prompts[0], str)
        write = self._plain_turn if plain else self._chat_turn
        turns = [self.control_token(text) or write(prompt, text) for prompt, text in zip(prompts, texts, strict=True)]
        written = [turn for turn in turns if not isinstance(turn, Refusal)]
        prefixes = self._ids([before for before, _ in written], plain)
        wholes = self._ids([before + after for before, after in written], plain)
        encoded = (self._continuation(*ids) for ids in zip(prefixes, wholes, strict=True))
        return [turn if isinstance(turn, Refusal) else next(encoded) for turn in turns]

    def prompt_text(self, prompt: Prompt) -> str:
        """A prompt as the policy reads it, the generation prompt included."""
        return prompt if isinstance(prompt, str) else self._render(prompt, generate=True)

    def control_token(self, text: str) -> Refusal | None:
        """A refusal if the text spells a special token, which would end or forge a turn."""
        found = next((token for token in self._specials if token in text), None)
        if found is None:
            return None
        return Refusal("control_tokens", f"The text holds the special token {found!r}. Remove it from the data.")

    # ---- text -----------------------------------------------------------------------------------------------------

    def _render(self, messages: list[dict[str, Any]], *, generate: bool) -> str:
        text: str = self.tokenizer.apply_chat_template(
            messages,
            chat_template=self.chat_template,
            add_generation_prompt=generate,
            tokenize=False,
            **self.template_kwargs,
        )
        return text

    def _chat_turn(self, prompt: Any, text: str) -> tuple[str, str] | Refusal:
        """(prompt with its generation prompt, what the template writes after it up to the end of the turn)."""
        from jinja2 import TemplateError

        try:
            before = self._render(prompt, generate=True)
            whole = self._render([*prompt, {"role": "assistant", "content": text}], generate=False)
            if not whole.startswith(before):  # templates may print the date, and midnight may have passed in between
                before = self._render(prompt, generate=True)
        except (TemplateError, TypeError, ValueError) as error:
            return Refusal(
                "unfit",
                f"The prompt with an assistant turn cannot be rendered: {error}. To train on it, {_SAVE} works.",
            )
        if not whole.startswith(before):
            return _prefix_lost(before, whole)
        turn = whole[len(before) :]
        ends = [(turn.find(end), end) for end in self._ends if end in turn]
        if not ends:
            return self._no_end(turn)
        at, end = min(ends)
        if not _is_whole(text, before, turn[:at]):
            return _rewritten(text, turn[:at])
        return before, turn[:at] + end

    def _plain_turn(self, prompt: Any, text: str) -> tuple[str, str] | Refusal:
        """(prompt, text and end-of-sequence token): a base model ends documents, not turns."""
        end = self.tokenizer.eos_token or next(iter(self._ends), None)
        return (prompt, text + end) if end else self._no_end(text)

    # ---- ids ------------------------------------------------------------------------------------------------------

    def _ids(self, texts: list[str], plain: bool) -> list[list[int]]:
        """A rendered template holds its own BOS, a plain prompt gets the tokenizer's; so does the trainer."""
        if not texts:
            return []
        encoded = self.tokenizer(texts, add_special_tokens=plain, return_attention_mask=False, verbose=False)
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def _continuation(self, prefix: list[int], whole: list[int]) -> tuple[int, ...] | Refusal:
        """The ids after the prefix. A turn encoded alone would get a space in front from some tokenizers."""
        if whole[: len(prefix)] != prefix:
            return self._merged(prefix, whole)
        ids = whole[len(prefix) :]
        if not ids or ids[-1] not in self.eos_ids:
            return self._no_end(self.tokenizer.decode(ids))
        if not self._special_ids.isdisjoint(ids[:-1]):
            reason = "The tokenizer reads part of the text as a special token or does not know it. Rewrite that text."
            return Refusal("control_tokens", reason)
        return tuple(ids)

    @cached_property
    def _ends(self) -> tuple[str, ...]:
        return tuple(self.tokenizer.decode([index]) for index in self.eos_ids)

    @cached_property
    def _specials(self) -> tuple[str, ...]:
        tokens = [str(token) for token in self.tokenizer.added_tokens_decoder.values() if token.special]
        return tuple(dict.fromkeys(token for token in (*self._ends, *tokens) if token))

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        ids = [index for index, token in self.tokenizer.added_tokens_decoder.items() if token.special]
        return frozenset([*self.eos_ids, *self.tokenizer.all_special_ids, *ids])

    # ---- reasons --------------------------------------------------------------------------------------------------

    def _no_end(self, turn: str) -> Refusal:
        known = ", ".join(map(repr, self._ends)) or "none"
        return Refusal(
            "unfit",
            f"The reference turn ends in {turn[-40:]!r}, with no end-of-turn token the trainer knows ({known}), so the "
            "model would not learn to stop. Set tokenizer.eos_token (or eos_token_id in generation_config.json) to the "
            f"token that ends a turn, or {_SAVE} ends in one of those.",
        )

    def _merged(self, prefix: list[int], whole: list[int]) -> Refusal:
        at = _divergence(prefix, whole)
        return Refusal(
            "unfit",
            f"The end of the prompt, {self.tokenizer.decode(prefix[at:])!r}, has other tokens once the reference "
            f"follows ({self.tokenizer.decode(whole[at : at + 3])!r}), so the reference would not have the tokens of a "
            "completion. End plain prompts, or the template's generation prompt, in a special token, one line break or "
            "no white space at all, and let the tokenizer add no token behind a prompt.",
        )


def _is_whole(text: str, before: str, turn: str) -> bool:
    """Whether a turn is the text up to white space; its beginning may stand in the generation prompt (`<think>`)."""
    text, turn = "".join(text.split()), "".join(turn.split())
    return text.endswith(turn) and "".join(before.split()).endswith(text.removesuffix(turn))


def _divergence(a: Sequence[Any], b: Sequence[Any]) -> int:
    return next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def _prefix_lost(before: str, whole: str) -> Refusal:
    at = _divergence(before, whole)
    return Refusal(
        "unfit",
        "The chat template does not keep the prompt when an assistant turn follows: the prompt goes on with "
        f"{before[at : at + 40]!r}, the conversation with {whole[at : at + 40]!r}. {_NOT_THINKING}; otherwise {_SAVE} "
        "begins with its generation prompt and leaves earlier turns alone.",
    )


def _rewritten(text: str, turn: str) -> Refusal:
    return Refusal(
        "unfit",
        f"The chat template writes the reference {text[:40]!r} as {turn[:60]!r}; what it adds or drops would become a "
        f"training target (an empty think block teaches the model not to think). {_NOT_THINKING}, or give references "
        f"that hold their thinking; otherwise {_SAVE} holds the reference alone.",
    )


def check_template(encoder: TurnEncoder, prompt: Prompt, planned_prompt: Prompt, text: str) -> None:
    """Check on one row that a reference has the same tokens with and without a plan in its prompt.

    Args:
        encoder: with the settings of the trainer.
        prompt: an ordinary prompt.
        planned_prompt: the same prompt with any plan in its user turn.
        text: a reference without special tokens.

    Raises:
        ConfigError: the tokens cannot be the same, or the plan does not arrive; says why and what to do.
        DataError: the text holds a special token.
    """
    base, planned = encoder.encode(prompt, text), encoder.encode(planned_prompt, text)
    if base != planned:
        at = _divergence(base, planned)
        raise ConfigError(
            "The reference has other tokens once the prompt holds a plan: "
            f"{encoder.tokenizer.decode(base[at : at + 12])!r} became "
            f"{encoder.tokenizer.decode(planned[at : at + 12])!r}, but SORT compares the two token by token. To use "
            f"it, {_SAVE} does not depend on what the user says."
        )
    if encoder.prompt_text(prompt) == encoder.prompt_text(planned_prompt):
        raise ConfigError(
            "The prompt with a plan reads like the prompt without: the chat template drops the plan, so SORT would be "
            "plain DFT. Save a chat template with the model that writes the whole user turn."
        )
