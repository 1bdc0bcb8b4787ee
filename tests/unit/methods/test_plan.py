"""The two turns of a plan, on messages and on plain text."""

import pytest

from killick.errors import ConfigError, DataError
from killick.methods.plan import TextWording, problem_of
from killick.tasks.countdown import CountdownWording

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 2+2?"}]


def test_only_the_last_user_turn_changes():
    asked = TextWording().ask(CHAT, "2+2=4")
    assert asked[0] is CHAT[0]
    assert asked[1]["role"] == "user"
    assert "What is 2+2?" in asked[1]["content"]
    assert "2+2=4" in asked[1]["content"]
    assert CHAT[1]["content"] == "What is 2+2?"  # the row itself is left alone


def test_the_plan_follows_the_problem():
    guided = TextWording(hint="{problem} PLAN {plan}").guided(CHAT, "1. add")
    assert guided[-1]["content"] == "What is 2+2? PLAN 1. add"


def test_plain_text_stays_plain_text():
    assert TextWording(hint="{problem}|{plan}").guided("a", "b") == "a|b"


@pytest.mark.parametrize("problem", ["{plan}", "{problem}", "{reference} {x} {", "%s {0}"])
def test_texts_are_not_read_as_templates(problem):
    assert TextWording(hint="{problem}|{plan}").guided(problem, "{problem}") == problem + "|{problem}"


def test_a_wording_without_a_place_is_refused():
    with pytest.raises(ConfigError, match=r"request of a plan wording must hold \{reference\}"):
        TextWording(request="Plan for {problem}")
    with pytest.raises(ConfigError, match=r"hint of a plan wording must hold \{plan\}"):
        TextWording(hint="{problem}")


@pytest.mark.parametrize("prompt", [[], [{"role": "assistant", "content": "x"}], [{"role": "user", "content": [{}]}]])
def test_prompts_without_a_user_turn_of_text_are_refused(prompt):
    with pytest.raises(DataError, match="last user turn"):
        TextWording().ask(prompt, "r")


def test_countdown_speaks_its_own_language():
    prompt = [{"role": "user", "content": "3,5,7,2>22:"}]
    assert CountdownWording().ask(prompt, "7-3=4")[0]["content"] == "?3,5,7,2>22:7-3=4"
    assert CountdownWording().guided(prompt, "-4*20+")[0]["content"] == "!3,5,7,2>22:-4*20+"


def test_countdown_keeps_the_rest_of_the_prompt_and_takes_plain_text():
    wording, told = CountdownWording(), [CHAT[0], {"role": "user", "content": "1,2>3:"}]
    assert wording.ask(told, "1+2=3") == [CHAT[0], {"role": "user", "content": "?1,2>3:1+2=3"}]
    assert wording.guided("1,2>3:", "+") == "!1,2>3:+"
    with pytest.raises(DataError, match="last user turn"):
        wording.guided([{"role": "assistant", "content": "x"}], "+")


def test_problem_of():
    assert problem_of(CHAT) == "What is 2+2?"
    assert problem_of("a") == "a"
    assert problem_of([]) == ""
