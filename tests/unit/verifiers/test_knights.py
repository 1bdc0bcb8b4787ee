"""Knights and Knaves: a table of (text, gold, reason); a gold has one right assignment of roles."""

import pytest

from killick.errors import ConfigError, DataError
from killick.verifiers.knights import KnightsVerifier

TWO = "Zoey is a knight, Oliver is a knave"
THREE = "Zoey is a knight, Oliver is a knave, Mia is a knave"
SAME = "Zoey is a knave, Oliver is a knave"
ALL = "Zoey is a knight, Oliver is a knight, Mia is a knight"

CASES = [
    # orders and wordings
    ("Zoey is a knight, Oliver is a knave", TWO, "right"),
    ("Oliver is a knave and Zoey is a knight.", TWO, "right"),
    ("(1) Zoey is a knight\n(2) Oliver is a knave", TWO, "right"),
    ("1. Zoey: knight\n2. Oliver: knave", TWO, "right"),
    ("- **Zoey** is a **knight**\n- **Oliver** is a **knave**", TWO, "right"),
    ("Zoey (knight), Oliver (knave)", TWO, "right"),
    ("Zoey = knight; Oliver = knave", TWO, "right"),
    ("Zoey -> Knight, Oliver -> Knave", TWO, "right"),
    ("| Zoey | Knight |\n| Oliver | Knave |", TWO, "right"),
    ("ZOEY IS A KNIGHT, OLIVER IS A KNAVE", TWO, "right"),
    ("Zoey must be a knight and Oliver must be a knave", TWO, "right"),
    ("Zoey is a truth-teller and Oliver is a liar.", TWO, "right"),
    ("Zoey is a knight (truth-teller). Oliver is a knave (liar).", TWO, "right"),
    ("Zoey (the first one) is a knight. Oliver is a knave.", TWO, "right"),
    (r"\boxed{\text{Zoey is a knight, Oliver is a knave}}", TWO, "right"),
    (r"\boxed{Zoey: knight}, \boxed{Oliver: knave}", TWO, "right"),
    ("Zoey: \\boxed{knight}\nOliver: \\boxed{knave}", TWO, "right"),
    ("<answer>Zoey is a knight, Oliver is a knave</answer> I hope.", TWO, "right"),
    ("Conclusion:\nKnights: Zoey\nKnaves: Oliver, Mia", THREE, "right"),
    ("**Knights:**\n- Zoey\n\n**Knaves:**\n- Oliver\n- Mia", THREE, "right"),
    ("The only knight is Zoey; the knaves are Oliver and Mia", THREE, "right"),
    ("Zoey is a knight, Oliver and Mia are knaves", THREE, "right"),
    ("Zoey is a knight and the rest are knaves.", THREE, "right"),
    ("The only knight is Zoey; the others are knaves.", THREE, "right"),
    ("Zoey, Oliver and Mia are all knights", ALL, "right"),
    ("They are all knights.", ALL, "right"),
    ("Both are knaves.", SAME, "right"),
    # negations
    ("Oliver is not a knight. Zoey is not a knave.", TWO, "right"),
    ("Oliver isn't a knight; Zoey is a knight, not a knave", TWO, "right"),
    ("Zoey is a knight, and neither Oliver nor Mia is a knight", THREE, "right"),
    ("Zoey is not a knight. Oliver is a knave", TWO, "wrong"),
    # reasoning before, and after, the final statement
    (
        "Assume Zoey is a knave. Contradiction.\nConclusion: Zoey is a knight, Oliver is a knave",
        TWO,
        "right",
    ),
    ("If Zoey is a knave then so is Oliver.\n\nSo:\nZoey is a knight\nOliver is a knave", TWO, "right"),
    (
        "Final answer: Zoey is a knight, Oliver is a knave.\nCheck: if Zoey is a knave, we get a contradiction.",
        TWO,
        "right",
    ),
    (
        "Conclusion: Zoey is a knave, Oliver is a knave.\nWait. Conclusion: Zoey is a knight, Oliver is a knave",
        TWO,
        "right",
    ),
    ("Conclusion: Zoey is a knight because Oliver claims that Zoey is a knave. Oliver is a knave.", TWO, "right"),
    # wrong, incomplete, contradictory
    ("Zoey is a knight, Oliver is a knight", TWO, "wrong"),
    ("Zoey is a knave, Oliver is a knight", TWO, "wrong"),
    ("Zoey is a knight", TWO, "wrong"),
    ("Zoey is a knight, Oliver is a knave", THREE, "wrong"),
    ("Zoey is a knight, Oliver is a knave. Zoey is a knave.", TWO, "wrong"),
    ("Zoey is a knight and a knave, Oliver is a knave", TWO, "wrong"),
    ("Zoey and Oliver are knights and Oliver is a knave", TWO, "wrong"),
    ("Knights: Zoey, Oliver\nKnaves: Oliver", TWO, "wrong"),
    ("Everyone is a knight.", TWO, "wrong"),
    ("Assume Zoey is a knight. Then Oliver is a knave.", TWO, "wrong"),  # Zoey is only supposed
    ("<answer>Oliver is a knave</answer> Zoey is a knight, Oliver is a knave", TWO, "wrong"),
    (r"\boxed{Zoey is a knave} <answer>Zoey is a knight, Oliver is a knave</answer>", TWO, "right"),
    # ambiguous, or no statement
    ("A knight is Zoey, Oliver is a knave", TWO, "unparsable"),
    ("Not knights: Zoey. Oliver is a knave", TWO, "unparsable"),
    ("Zoey is a knight or a knave, Oliver is a knight or a knave", TWO, "no_answer"),
    ("If Zoey is a knight then Oliver is a knave.", TWO, "no_answer"),
    ("Everyone is a knave except Zoey", TWO, "no_answer"),
    ("Zoey's friend is a knight, Oliver's friend is a knave", TWO, "no_answer"),
    ("knight, knave", TWO, "no_answer"),
    ("Zoey, Oliver", TWO, "no_answer"),
    ("", TWO, "no_answer"),
    ("Jack is a knight, Jackson is a knave", "Jackson is a knave, Jack is a knight", "right"),
    ("Jackson is a knave", "Jackson is a knave, Jack is a knave", "wrong"),
    ("It is impossible that Zoey is a knight and Oliver is a knave", TWO, "no_answer"),
    ("Zoey is a former knight, Oliver is a knave", TWO, "no_answer"),
    ("Zoey is a knight's enemy, Oliver is a knave", TWO, "wrong"),
]


@pytest.mark.parametrize(("text", "gold", "reason"), CASES)
def test_table(text: str, gold: str, reason: str) -> None:
    verdict = KnightsVerifier()(text, gold)
    assert verdict.reason == reason
    assert verdict.correct == (reason == "right")


@pytest.mark.parametrize(("text", "gold", "reason"), [case for case in CASES if case[2] == "right"])
def test_right_for_one_gold_is_wrong_for_the_other(text: str, gold: str, reason: str) -> None:
    assert KnightsVerifier()(text, KnightsVerifier().other(gold)).reason == "wrong"


def test_everyone_but_one_never_counts_for_the_one() -> None:
    """ "Everyone but Zoey is a knave" says that Zoey is none; it must not be read as "Zoey is a knave"."""
    assert not KnightsVerifier()("Everyone but Zoey is a knave", "Zoey is a knave, Oliver is a knave").correct


@pytest.mark.parametrize(
    "gold", ["", "Zoey", "Zoey is a knight, Zoey is a knave", "Zoey is a spy", "Zoey is a knight,"]
)
def test_golds_that_are_none(gold: str) -> None:
    with pytest.raises(DataError, match="each person a role"):
        KnightsVerifier().check_gold(gold)


def test_the_other_gold_turns_the_first_person() -> None:
    assert KnightsVerifier().other(TWO) == "Zoey is a knave, Oliver is a knave"
    with pytest.raises(ConfigError):
        KnightsVerifier(max_chars=0)


def test_the_key_is_who_is_what_in_any_wording() -> None:
    """An incomplete statement and one that contradicts itself are answers too, of their own."""
    texts = [
        "Both are knaves.",
        r"\boxed{Oliver: knave, Zoey: knave}",
        "Zoey is a knight",
        "Everyone but Zoey is a knave",
        "Zoey is a knight and a knave, Oliver is a knave",
        "who knows",
    ]
    both = "Oliver: knave, Zoey: knave"
    expected = [both, both, "Zoey: knight", None, "Oliver: knave, Zoey: knave and knight", None]
    assert [KnightsVerifier().answer_key(text, TWO) for text in texts] == expected
