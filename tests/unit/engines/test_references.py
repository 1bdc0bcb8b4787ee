"""References as token ids: the same in both contexts under public chat templates, and what is refused, with its reason.

Tokenizers are trained here on a few sentences, with the pre-tokenisation and the special tokens of the real models;
the templates are the public ones. Expected ids never come from a template: they are the tokens of the reference text
followed by the end-of-turn id.
"""

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

from killick.engines.trl.references import References, uid_of
from killick.engines.trl.turns import Refusal, TurnEncoder, check_template
from killick.errors import ConfigError, DataError
from killick.nano import base_path

HERE = Path(__file__).resolve().parent
SMOLLM2 = HERE.parents[2] / "models" / "smollm2-135m-instruct"
SENTENCES = [
    "The sum is what we want\n\nThe answer is 4, because 2+2 = 4\n\nThe answer is 4\n\nThe sum",
    "Natalia sold 48/2 = 24 clips in May, so she sold 48+24 = 72 clips. user assistant system Answer: The The The",
]
# The split patterns of the models' own tokenizers; they differ in how many digits form a piece.
_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA_SPLIT, QWEN_SPLIT = _PATTERN % r"\p{N}{1,3}", _PATTERN % r"\p{N}"
LLAMA_SPECIAL = [
    *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>")
]
QWEN_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
THINK = [AddedToken(token, special=False, normalized=False) for token in ("<think>", "</think>")]


def byte_level(split: str | None, special: list[str], eos: str, bos: str | None = None) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer; without a split pattern merges cross any boundary."""
    core = Tokenizer(models.BPE())
    core.normalizer = normalizers.NFC()
    spread = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(split), "isolated"), spread]) if split else spread
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    core.train_from_iterator(SENTENCES, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token=eos, bos_token=bos, additional_special_tokens=special
    )
    if bos:
        pair = [(bos, tokenizer.convert_tokens_to_ids(bos))]
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(f"{bos} $A", special_tokens=pair)
    return tokenizer


def fixture(name: str) -> str:
    return (HERE / "chat_templates" / f"{name}.jinja").read_text("utf-8")


@dataclass(frozen=True)
class Case:
    encoder: TurnEncoder
    end: int
    text: str = "The sum is 2+2 = 4.\n\nThe answer is 4."
    prompts: tuple[Any, ...] = ([{"role": "user", "content": "What is 2+2?"}],)
    planned: tuple[Any, ...] = field(default=())


def chat_case(tokenizer: Any, eos: list[str], **template_kwargs: Any) -> Case:
    user = {"role": "user", "content": "What is 2+2?"}
    with_plan = {"role": "user", "content": "What is 2+2?\n\nPlan: 1. Add."}
    system = {"role": "system", "content": "Be brief."}
    ids = tuple(tokenizer.convert_tokens_to_ids(eos))
    encoder = TurnEncoder(tokenizer, ids, None, template_kwargs)
    return Case(encoder, ids[0], prompts=([user], [system, user]), planned=([with_plan], [system, with_plan]))


@cache
def case(name: str) -> Case:
    if name == "llama3_2":
        tokenizer = byte_level(LLAMA_SPLIT, LLAMA_SPECIAL, "<|eot_id|>", "<|begin_of_text|>")
        tokenizer.chat_template = fixture(name)
        return chat_case(tokenizer, ["<|eot_id|>", "<|end_of_text|>", "<|eom_id|>"])
    if name == "qwen2_5":
        tokenizer = byte_level(QWEN_SPLIT, QWEN_SPECIAL, "<|im_end|>")
        tokenizer.chat_template = fixture(name)
        return chat_case(tokenizer, ["<|im_end|>", "<|endoftext|>"])
    if name.startswith("qwen3"):
        tokenizer = byte_level(QWEN_SPLIT, QWEN_SPECIAL, "<|im_end|>")
        tokenizer.add_tokens(THINK)
        tokenizer.chat_template = fixture("qwen3")
        thinking = {} if name == "qwen3_thinking" else {"enable_thinking": False}
        return chat_case(tokenizer, ["<|im_end|>", "<|endoftext|>"], **thinking)
    if name == "smollm2":
        if not SMOLLM2.is_dir():
            pytest.skip("run tools/make_smollm2.py to make models/smollm2-135m-instruct")
        return chat_case(AutoTokenizer.from_pretrained(SMOLLM2), ["<|im_end|>"])
    tokenizer = AutoTokenizer.from_pretrained(base_path())
    if name == "nano":
        ask, planned = ([{"role": "user", "content": f"{mark}3,5,7,2>22:"}] for mark in ("", "!"))
        return Case(
            TurnEncoder(tokenizer, (tokenizer.eos_token_id,)),
            tokenizer.eos_token_id,
            "7-3=4;5*4=20",
            (ask,),
            (planned,),
        )
    assert name == "plain"
    tokenizer = byte_level(LLAMA_SPLIT, LLAMA_SPECIAL, "<|end_of_text|>", "<|begin_of_text|>")
    eos = tokenizer.eos_token_id
    texts = ("Question: 2+2?\nAnswer:", "Question: 2+2?\nPlan: add.\nAnswer:")
    return Case(TurnEncoder(tokenizer, (eos,)), eos, " The answer is 4.", texts[:1], texts[1:])


def text_ids(encoder: TurnEncoder, text: str) -> list[int]:
    return encoder.tokenizer(text, add_special_tokens=False)["input_ids"]


def trainer_ids(encoder: TurnEncoder, prompt: Any) -> list[int]:
    """The calls of `GRPOTrainer._tokenize_prompts`."""
    if isinstance(prompt, str):
        return encoder.tokenizer(text=[prompt])["input_ids"][0]
    return encoder.tokenizer.apply_chat_template(
        conversation=[prompt],
        tools=None,
        chat_template=encoder.chat_template,
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **encoder.template_kwargs,
    )["input_ids"][0]


# ---- identity -------------------------------------------------------------------------------------------------------

MODELS = ["llama3_2", "qwen2_5", "qwen3_not_thinking", "smollm2", "nano", "plain"]


@pytest.mark.parametrize("name", MODELS)
def test_the_same_ids_in_both_contexts_and_those_of_a_completion(name: str) -> None:
    it = case(name)
    expected = (*text_ids(it.encoder, it.text), it.end)
    assert len(expected) > 4
    for prompt, planned in zip(it.prompts, it.planned, strict=True):
        assert it.encoder.encode(prompt, it.text) == expected
        assert it.encoder.encode(planned, it.text) == expected
        check_template(it.encoder, prompt, planned, it.text)
    assert [index for index in expected if index in it.encoder.eos_ids] == [it.end]
    assert it.encoder.tokenizer.decode(expected[:-1]) == it.text


@pytest.mark.parametrize("name", MODELS[:-1])
def test_after_the_ids_of_the_trainers_prompt_they_are_the_conversation(name: str) -> None:
    it = case(name)
    for prompt in (*it.prompts, *it.planned):
        turn = [*prompt, {"role": "assistant", "content": it.text}]
        ids = it.encoder.tokenizer.apply_chat_template(turn, **it.encoder.template_kwargs)["input_ids"]
        mine = [*trainer_ids(it.encoder, prompt), *it.encoder.encode(prompt, it.text)]
        assert ids[: len(mine)] == mine
        assert it.encoder.tokenizer.decode(ids[len(mine) :]).strip() == ""
        assert it.encoder.prompt_text(prompt) == it.encoder.tokenizer.decode(trainer_ids(it.encoder, prompt))


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30).map(str.strip).filter(bool))
def test_any_text_comes_back_whole_or_is_refused(text: str) -> None:
    for name in ("llama3_2", "qwen2_5", "qwen3_not_thinking"):
        it = case(name)
        (turn,) = it.encoder.encode_all([it.prompts[0]], [text])
        if isinstance(turn, Refusal):
            assert any(token in text for token in ("<|", "think>"))
        else:
            assert it.encoder.tokenizer.decode(turn[:-1]) == unicodedata.normalize("NFC", text)
            assert turn[-1] == it.end


def test_llama_has_one_bos_and_neither_its_date_nor_its_trimming_reaches_the_reference() -> None:
    it = case("llama3_2")
    bos = it.encoder.tokenizer.bos_token_id
    assert trainer_ids(it.encoder, it.prompts[0]).count(bos) == 1
    expected = (*text_ids(it.encoder, it.text), it.end)
    prompts = []
    for day in ("26 Jul 2024", "01 Jan 2031"):
        encoder = TurnEncoder(it.encoder.tokenizer, it.encoder.eos_ids, None, {"date_string": day})
        prompts.append(trainer_ids(encoder, it.prompts[0]))
        assert encoder.encode(it.prompts[0], f" {it.text}\n") == expected
    assert prompts[0] != prompts[1]


def test_midnight_between_two_renderings_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    days: Iterator[int] = iter([0, 1, 1, 1, 1, 1])

    class Clock:
        @staticmethod
        def now() -> datetime:
            return datetime(2031, 1, 1) + timedelta(days=next(days))

    monkeypatch.setattr(chat_template_utils, "datetime", Clock)
    it = case("llama3_2")
    assert it.encoder.encode(it.prompts[0], it.text) == (*text_ids(it.encoder, it.text), it.end)
    assert next(days) == 1  # the prompt was rendered once more: three readings, the first on the day before


def test_a_template_of_the_trainer_replaces_the_tokenizers() -> None:
    it = case("qwen2_5")
    other = "{% for m in messages %}{{ m.role + ': ' + m.content + '<|im_end|>' }}{% endfor %}" + (
        "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
    )
    encoder = TurnEncoder(it.encoder.tokenizer, it.encoder.eos_ids, other)
    assert encoder.prompt_text(it.prompts[0]) == "user: What is 2+2?<|im_end|>assistant:"
    # The space after the colon is white space of the template: the model would write it too.
    assert encoder.encode(it.prompts[0], "The answer") == (*text_ids(encoder, " The answer"), it.end)


# ---- thinking -------------------------------------------------------------------------------------------------------

THOUGHT = "<think>\n2+2\n</think>\n\nThe answer is 4."


def test_qwen3_in_thinking_mode_refuses_an_answer_it_would_put_an_empty_thought_before() -> None:
    it = case("qwen3_thinking")
    with pytest.raises(ConfigError, match=r"as '<think>\\n\\n</think>\\n\\nThe sum .*enable_thinking = false"):
        it.encoder.encode(it.prompts[0], it.text)


def test_qwen3_in_thinking_mode_takes_references_that_think() -> None:
    it = case("qwen3_thinking")
    expected = (*text_ids(it.encoder, THOUGHT), it.end)
    assert it.encoder.encode(it.prompts[0], THOUGHT) == expected
    loose = "<think>2+2</think>The answer is 4."  # the template sets the line breaks the model would write
    assert it.encoder.encode(it.prompts[0], loose) == expected


def test_qwen3_without_thinking_has_the_empty_thought_in_the_prompt() -> None:
    it = case("qwen3_not_thinking")
    assert it.encoder.prompt_text(it.prompts[0]).endswith("<think>\n\n</think>\n\n")
    with pytest.raises(ConfigError, match="does not keep the prompt"):
        it.encoder.encode(it.prompts[0], THOUGHT)


def with_template(template: str) -> Case:
    """The Qwen tokenizer under a template of this shape: user turns, an assistant turn, a generation prompt."""
    tokenizer = byte_level(QWEN_SPLIT, QWEN_SPECIAL, "<|im_end|>")
    tokenizer.add_tokens(THINK)
    tokenizer.chat_template = template
    return chat_case(tokenizer, ["<|im_end|>"])


def written(assistant: str, generation: str = "'<|im_start|>assistant\n'", user: str = "m.content") -> str:
    return (
        "{%- for m in messages -%}{%- if m.role == 'assistant' -%}{{- " + assistant + " -}}{%- else -%}"
        "{{- '<|im_start|>user\n' + " + user + " + '<|im_end|>\n' -}}{%- endif -%}{%- endfor -%}"
        "{%- if add_generation_prompt -%}{{- " + generation + " -}}{%- endif -%}"
    )


def test_a_thought_may_begin_in_the_generation_prompt() -> None:
    it = with_template(
        written("'<|im_start|>assistant\n' + m.content + '<|im_end|>'", "'<|im_start|>assistant\n<think>\n'")
    )
    assert it.encoder.encode(it.prompts[0], THOUGHT) == (
        *text_ids(it.encoder, THOUGHT.removeprefix("<think>\n")),
        it.end,
    )
    with pytest.raises(ConfigError, match="does not keep the prompt"):
        it.encoder.encode(it.prompts[0], it.text)


# ---- refused templates and tokenizers -------------------------------------------------------------------------------

GOOD = "'<|im_start|>assistant\n' + m.content + '<|im_end|>\n'"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (written(GOOD, user="('' if messages[-1].role == 'assistant' else 'Now: ') + m.content"),
         r"does not keep the prompt.*with 'Now: What .* with 'What is"),
        (written("'<|im_start|>bot\n' + m.content + '<|im_end|>'"), r"does not keep the prompt.*'assistant.*'bot"),
        (written("'<|im_start|>assistant\n' + m.content + '\n'"), r"with no end-of-turn token.*'<\|im_end\|>'"),
        (written("'<|im_start|>assistant\n' + m.content + '<|endoftext|>'"), "with no end-of-turn token"),
        (written("'<|im_start|>assistant\nSure! ' + m.content + '<|im_end|>'"), r"'Sure! The.*training target"),
        (written("'<|im_start|>assistant\n' + m.content[:8] + '<|im_end|>'"), r"as 'The sum '; what it adds or drops"),
        (written("'<|im_start|>assistant\n' + m.content[4:] + '<|im_end|>'"), r"as 'sum is .*; what it adds or drops"),
        (written("'<|im_start|>assistant\n' + m.content + '<|im_end|>'", "'<|im_start|>assistant\n '"),
         "does not keep"),
        (written("'<|im_start|>assistant: ' + m.content + '<|im_end|>'", "'<|im_start|>assistant: '"),
         r"The end of the prompt, ' ', has other tokens once the reference follows \(' The"),
        (written("'<|im_start|>bot' + ('\n\n' if 'Plan' in messages[0].content else '\n') + m.content + '<|im_end|>'",
                 "'<|im_start|>bot'"),
         r"other tokens once the prompt holds a plan: '\\nThe.* became '\\n\\nThe"),
        (written(GOOD, user="m.content[:12]"), "drops the plan"),
        (written("raise_exception('no assistant here')"), "cannot be rendered: no assistant here"),
        (None, "cannot be rendered: .*chat_template"),
    ],
)  # fmt: skip
def test_templates_that_cannot_keep_the_tokens_are_refused(template: str, reason: str) -> None:
    it = with_template(template)
    with pytest.raises(ConfigError, match=reason):
        check_template(it.encoder, it.prompts[0], it.planned[0], it.text)


def test_a_template_of_the_right_shape_is_not_refused() -> None:
    it = with_template(written(GOOD))
    check_template(it.encoder, it.prompts[0], it.planned[0], it.text)


def test_a_tokenizer_that_merges_over_the_boundary_is_refused() -> None:
    """Without a split pattern `: The` was seen often enough in training to be one token."""
    tokenizer = byte_level(None, QWEN_SPECIAL, "<|im_end|>")
    assert len(tokenizer(" The The", add_special_tokens=False)["input_ids"]) < 2 * len(tokenizer(" The")["input_ids"])
    tokenizer.chat_template = written(
        "'<|im_start|>assistant The' + m.content + '<|im_end|>'", "'<|im_start|>assistant The'"
    )
    it = chat_case(tokenizer, ["<|im_end|>"])
    with pytest.raises(ConfigError, match="has other tokens once the reference follows"):
        it.encoder.encode(it.prompts[0], " The")


@pytest.mark.parametrize(("prompt", "text"), [("Answer: ", "The answer"), ("Answer:\n", "\nThe answer")])
def test_plain_prompts_whose_white_space_merges_are_refused(prompt: str, text: str) -> None:
    it = case("plain")
    with pytest.raises(ConfigError, match="no white space at all"):
        it.encoder.encode(prompt, text)


def test_a_tokenizer_that_ends_prompts_itself_is_refused_for_plain_prompts_only() -> None:
    it = with_template(written(GOOD))
    tokenizer = it.encoder.tokenizer
    end = ("<|im_end|>", tokenizer.eos_token_id)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing("$A <|im_end|>", special_tokens=[end])
    with pytest.raises(ConfigError, match="add no token behind a prompt"):
        it.encoder.encode("Answer:", " The answer")
    # The trainer adds nothing to what a template wrote.
    assert it.encoder.encode(it.prompts[0], it.text) == (*text_ids(it.encoder, it.text), it.end)


def test_a_turn_ends_at_its_first_end_token() -> None:
    """As Phi-3 does: the turn ends in one token, the conversation in another."""
    it = with_template(written("'<|im_start|>assistant\n' + m.content + '<|im_end|>\n<|endoftext|>'"))
    ends = it.encoder.tokenizer.convert_tokens_to_ids(["<|endoftext|>", "<|im_end|>"])
    encoder = TurnEncoder(it.encoder.tokenizer, tuple(ends))
    assert encoder.encode(it.prompts[0], it.text) == (*text_ids(encoder, it.text), it.end)


def test_no_end_token_at_all_is_refused() -> None:
    tokenizer = byte_level(QWEN_SPLIT, QWEN_SPECIAL, "<|im_end|>")
    with pytest.raises(ConfigError, match=r"no end-of-turn token the trainer knows \(none\)"):
        TurnEncoder(tokenizer, ()).encode("Answer:", " The answer")


# ---- special tokens in the data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["<|im_end|>", "<|endoftext|>", "<|im_start|>"])
def test_a_reference_that_spells_a_special_token_is_refused(token: str) -> None:
    it = case("qwen2_5")
    with pytest.raises(DataError, match=f"special token {token!r}".replace("|", r"\|")):
        it.encoder.encode(it.prompts[0], f"The answer{token} is 4.")


def test_characters_the_tokenizer_does_not_know_are_refused() -> None:
    it = case("nano")
    with pytest.raises(DataError, match="does not know it"):
        it.encoder.encode(it.prompts[0], "7-3=4 or so")


# ---- data sets ------------------------------------------------------------------------------------------------------

NO_LIMITS: dict[str, Any] = {"plan_column": None, "max_tokens": None, "accepts": None}


def dataset(*texts: Any, **columns: list[Any]) -> Dataset:
    prompts = [[{"role": "user", "content": f"What is {n}+2?"}] for n in range(len(texts))]
    return Dataset.from_dict({"prompt": prompts, "solution": list(texts), **columns})


def test_every_row_has_one_fate_and_only_usable_ones_are_found(caplog: pytest.LogCaptureFixture) -> None:
    it = case("qwen3_not_thinking")
    texts = [
        "The answer is 4.",
        None,
        "  \n",
        "4<|im_end|>",
        "The answer is 4 4 4 4 4 4 4.",
        THOUGHT,
        "The answer is 5.",
    ]
    limit = len(it.encoder.encode(it.prompts[0], texts[0]))
    asked = []

    def accepts(rows: Any) -> list[bool]:
        asked.append([row["uid"] for row in rows])
        return [row["solution"] != texts[-1] for row in rows]

    uids = [f"u{n}" for n in range(len(texts))]
    found = References.build(dataset(*texts, uid=uids), it.encoder, plan_column=None, max_tokens=limit, accepts=accepts)
    assert found.counts == {
        "usable": 1, "repeated": 0, "missing": 2, "control_tokens": 1, "unfit": 1, "too_long": 1, "rejected": 1,
    }  # fmt: skip
    assert asked == [["u0", "u6"]]  # a verifier is slow: asked last, and once
    assert [uid for uid in uids if found.get(uid) is not None] == ["u0"]
    assert len(found) == 1
    assert found.get("other") is None
    assert "1 of 7 rows" in caplog.text
    assert "does not keep the prompt" in caplog.text


def test_a_limit_counts_the_end_of_turn_and_never_cuts() -> None:
    it = case("qwen2_5")
    length = len(text_ids(it.encoder, it.text)) + 1
    kept = References.build(dataset(it.text), it.encoder, plan_column=None, max_tokens=length, accepts=None)
    assert len(kept.example().token_ids) == length
    with pytest.raises(DataError, match=r"None of the 1 rows .*too_long 1"):
        References.build(dataset(it.text), it.encoder, plan_column=None, max_tokens=length - 1, accepts=None)


def test_a_reference_is_what_the_row_says() -> None:
    it = case("qwen2_5")
    data = dataset(f" {it.text} ", "The answer is 4.", uid=[7, 8], plan=["", " add "])
    found = References.build(data, it.encoder, plan_column="plan", max_tokens=None, accepts=None)
    first, second = found.get("7"), found.get("8")
    assert first is not None
    assert second is not None
    assert (first.uid, first.text, first.plan) == ("7", it.text, None)
    assert first.prompt == [{"role": "user", "content": "What is 0+2?"}]
    assert first.token_ids == (*text_ids(it.encoder, it.text), it.end)
    assert second.plan == "add"
    assert found.example() == first
    assert found.get("8") == second


def test_white_space_of_a_plain_reference_is_kept() -> None:
    it = case("plain")
    data = Dataset.from_dict({"prompt": list(it.prompts), "solution": [it.text]})
    reference = References.build(data, it.encoder, **NO_LIMITS).example()
    assert (reference.prompt, reference.text) == (it.prompts[0], it.text)
    assert reference.token_ids == (*text_ids(it.encoder, it.text), it.end)


def test_a_plan_that_spells_a_special_token_counts_as_none(caplog: pytest.LogCaptureFixture) -> None:
    it = case("qwen2_5")
    data = dataset(it.text, it.text, plan=["add<|im_end|>", None])
    found = References.build(data, it.encoder, plan_column="plan", max_tokens=None, accepts=None)
    assert found.example().plan is None
    assert "2 of 2 references have no plan in column 'plan'" in caplog.text


def test_a_streamed_data_set_is_refused() -> None:
    it = case("qwen2_5")
    with pytest.raises(DataError, match=r"IterableDataset can only be read in order.*without streaming"):
        References.build(dataset(it.text).to_iterable_dataset(), it.encoder, **NO_LIMITS)


def test_rows_of_one_uid_must_agree() -> None:
    it = case("qwen2_5")
    same = {"prompt": [it.prompts[0]] * 2, "uid": ["a", "a"]}
    found = References.build(Dataset.from_dict({**same, "solution": ["4", "4"]}), it.encoder, **NO_LIMITS)
    assert (found.counts["usable"], found.counts["repeated"]) == (1, 1)
    with pytest.raises(DataError, match=r"Two rows .* uid 'a' but differ"):
        References.build(Dataset.from_dict({**same, "solution": ["4", "5"]}), it.encoder, **NO_LIMITS)
    with pytest.raises(DataError, match=r"Two rows .* uid 'a' but differ"):
        References.build(dataset("4", "4", uid=["a", "a"]), it.encoder, **NO_LIMITS)


def test_more_rows_than_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("killick.engines.trl.references._BATCH", 3)
    it = case("qwen2_5")
    data = dataset(*[f"The answer is {n}." if n != 4 else None for n in range(8)], uid=list("abcdefgh"))
    found = References.build(data, it.encoder, **NO_LIMITS)
    assert found.counts["usable"] == 7
    for n, uid in enumerate("abcdefgh"):
        reference = found.get(uid)
        assert (reference.text if reference else None) == data[n]["solution"]


@pytest.mark.parametrize(("change", "column"), [({"column": "proof"}, "proof"), ({"plan_column": "plan"}, "plan")])
def test_a_missing_column_is_named_with_those_found(change: dict[str, str], column: str) -> None:
    it = case("qwen2_5")
    with pytest.raises(DataError, match=f"column '{column}' .*found: prompt, solution"):
        References.build(dataset("4"), it.encoder, **{**NO_LIMITS, **change})


@pytest.mark.parametrize("texts", [[None, ""], [[{"role": "assistant", "content": "4"}]] * 2, []])
def test_no_usable_row_is_an_error_with_the_counts(texts: list[Any]) -> None:
    it = case("qwen2_5")
    with pytest.raises(DataError, match=f"None of the {len(texts)} rows .*{'missing 2' if texts else 'no rows'}"):
        References.build(dataset(*texts), it.encoder, **NO_LIMITS)


def test_the_reason_of_unfit_rows_reaches_the_error() -> None:
    it = case("qwen3_thinking")
    with pytest.raises(DataError, match=r"unfit 2.*enable_thinking = false"):
        References.build(dataset("The answer", "is 4."), it.encoder, **NO_LIMITS)


def test_uids() -> None:
    prompt = [{"role": "user", "content": "Größe?"}]
    assert uid_of({"uid": 7, "prompt": prompt}) == "7"
    assert uid_of({"uid": "a", "prompt": "b"}) == "a"
    # sha256 of the JSON text '"b"'
    assert uid_of({"prompt": "b"}) == uid_of({"uid": None, "prompt": "b"}) == uid_of({"uid": "", "prompt": "b"})
    assert uid_of({"prompt": "b"}) == "c100f95c1913f9c7"
    assert uid_of({"prompt": prompt}) == uid_of({"prompt": json.loads('[{"content": "Größe?", "role": "user"}]')})
    assert uid_of({"prompt": prompt}) != uid_of({"prompt": prompt * 2})
    with pytest.raises(DataError, match=r"not text .*Give every row a uid"):
        uid_of({"prompt": [{"role": "user", "content": [{"type": "image", "image": b"\x89PNG"}]}]})
