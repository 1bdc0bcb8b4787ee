"""The nano tokenizer and chat template."""

from pathlib import Path

import jinja2
import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from killick.nano.tokenizer import build_tokenizer

PROBLEM = [{"role": "user", "content": "3,5,7,2>22:"}]
ANSWER = {"role": "assistant", "content": "7-3=4;4*5=20;20+2=22"}


def test_small_and_with_the_usual_special_tokens() -> None:
    tokenizer = build_tokenizer()
    assert len(tokenizer) <= 32
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    assert tokenizer.padding_side == "left"


def test_rendered_text_of_the_three_kinds() -> None:
    tokenizer = build_tokenizer()
    for content, rendered in {
        "3,5>8:": "<solve>3,5>8:<answer>",
        "?3,5>8:5+3=8": "<plan>3,5>8:5+3=8<answer>",
        "!3,5>8:+": "<guided>3,5>8:+<answer>",
    }.items():
        messages = [{"role": "user", "content": content}]
        assert tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False) == rendered
        assert tokenizer.apply_chat_template(messages, tokenize=False) == rendered.removesuffix("<answer>")


def test_several_turns_and_the_assistant_mask() -> None:
    tokenizer = build_tokenizer()
    out = tokenizer.apply_chat_template(
        [*PROBLEM, ANSWER, *PROBLEM, ANSWER], return_dict=True, return_assistant_tokens_mask=True
    )
    marked = [i for i, m in zip(out["input_ids"], out["assistant_masks"], strict=True) if m]
    assert tokenizer.decode(marked) == f"{ANSWER['content']}<eos>" * 2


def test_other_roles_are_refused() -> None:
    with pytest.raises(jinja2.exceptions.TemplateError, match="user and assistant"):
        build_tokenizer().apply_chat_template([{"role": "system", "content": "3"}, *PROBLEM])


def test_unknown_characters_become_unk_one_by_one() -> None:
    tokenizer = build_tokenizer()
    assert tokenizer("a \n٣")["input_ids"] == [tokenizer.unk_token_id] * 4


def test_saved_tokenizer_is_the_same(tmp_path: Path) -> None:
    tokenizer = build_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    for cls in (AutoTokenizer, PreTrainedTokenizerFast):
        loaded = cls.from_pretrained(tmp_path)
        assert loaded.get_vocab() == tokenizer.get_vocab()
        assert loaded.chat_template == tokenizer.chat_template
        assert loaded.padding_side == "left"
        ids = loaded.apply_chat_template([*PROBLEM, ANSWER], return_dict=False)
        assert ids == tokenizer.apply_chat_template([*PROBLEM, ANSWER], return_dict=False)
        assert loaded.decode(ids, skip_special_tokens=True) == PROBLEM[0]["content"] + ANSWER["content"]
