from itertools import islice

import pytest

from killick.nano import world
from killick.nano.roles import roles_of

LETTERS = {"operand": "d", "operator": "o", "forced": "f", "result": "r", "separator": "s"}


def marked(text):
    return "".join(LETTERS[role] for role in roles_of(text))


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        # Numbers 2, 3, 5, 7. Step 3 has 20 and 2 left: the first digit of both is 2, so it is forced; whether the
        # first operand goes on with 0 or ends is open; then only the 2 is left.
        ("7-3=4;5*4=20;20+2=22", "dodsrsdodsrrsfdofsrr"),
        # Two values from the start: the first is a choice, the second the only one left, all its digits.
        ("12*11=132", "fdoffsrrr"),
        ("3+4=7", "dofsr"),
        # Equal values: taking one of them is no choice, whichever it is.
        ("5*5=25", "fofsrr"),
        # 5 and 5 and 10: the second 5 could have been 10.
        ("5+5=10;10*10=100", "dodsrrsffoffsrrr"),
        (" 3+4=7\n", "sdofsrs"),
    ],
)
def test_roles_of_a_chain(text, roles):
    assert marked(text) == roles


def test_a_result_is_at_hand_once():
    # 1+1=2;2+2=4: the second step takes the 2 just made and a 2 there from the start: numbers 1, 1, 2.
    # Step 1: first digit 1 or 2; then 1 or 2. Step 2: both left are 2.
    assert marked("1+1=2;2+2=4") == "dodsrsfofsr"


@pytest.mark.parametrize("text", ["", "3+4", "3+4=7;", "3+4=7 2", "x", "3+04=7", "3+4=7;" * 100 + "3+4=7", "٣+4=7"])
def test_other_texts_have_no_roles(text):
    assert roles_of(text) is None


def test_every_solution_of_the_world_has_one_role_a_character():
    for solved in islice(world.pretraining_stream(0), 300):
        text = world.write(solved.solution)
        roles = roles_of(text)
        assert len(roles) == len(text)
        assert roles.count("operator") == 3
        last = text.rindex(solved.solution[-1].op)
        assert set(roles[last + 1 : text.rindex("=")]) == {"forced"}  # one value is left
        assert {role for role, c in zip(roles, text, strict=True) if c in "=;"} == {"separator"}
