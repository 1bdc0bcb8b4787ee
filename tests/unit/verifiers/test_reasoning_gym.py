"""reasoning-gym's own scorers as judge: packing of entries, and scorers that would run what a model writes."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
import reasoning_gym

from killick.errors import ConfigError, DataError
from killick.verifiers.reasoning_gym import (
    ALGEBRA,
    ARITHMETIC,
    LITERAL,
    MANY_RIGHT,
    UNSOUND,
    ReasoningGymVerifier,
    harmless,
    pack,
    scorer,
    unpack,
)


def spelling(word: str = "stop") -> str:
    entry = {"question": f"Spell {word} backward", "answer": word[::-1], "metadata": {"word": word}}
    return pack("spell_backward", {}, entry)


CASES = [
    ("<answer>pots</answer>", "right"),
    ("<answer>no</answer> so <answer> pots </answer>", "right"),
    (r"\boxed{pots}", "right"),
    ("<answer>spot</answer>", "wrong"),
    ("<answer>pots</answer> or <answer>spot</answer>", "wrong"),
    ("pots", "no_answer"),
    ("The answer is pots", "no_answer"),
    ("<answer>pots", "no_answer"),
    ("<answer> </answer>", "no_answer"),
    ("", "no_answer"),
    (f"<answer>{'x' * 20_000}</answer>", "unparsable"),
]


@pytest.mark.parametrize(("text", "reason"), CASES)
def test_table(text: str, reason: str) -> None:
    verdict = ReasoningGymVerifier()(text, spelling())
    assert verdict.reason == reason
    assert verdict.correct == (reason == "right")


def test_the_threshold_decides_about_partial_scores() -> None:
    """spell_backward scores a word of which a part is right between 0 and 1."""
    score = scorer("spell_backward", "{}")("potz", unpack(spelling())[2])
    assert 0 < score < 1
    assert not ReasoningGymVerifier()("<answer>potz</answer>", spelling()).correct
    assert ReasoningGymVerifier(threshold=score)("<answer>potz</answer>", spelling()).correct


def test_countdown_is_scored_by_value() -> None:
    entry = {"question": "", "answer": "3*4+12", "metadata": {"numbers": [3, 4, 12], "target": 24, "expression": ""}}
    gold, judge = pack("countdown", {}, entry), ReasoningGymVerifier()
    assert judge("<answer>12 + 4*3</answer>", gold).correct  # another expression is as good
    assert judge("<answer>12 + 12</answer>", gold).reason == "wrong"
    assert judge("<answer>9**9**9**9</answer>", gold).reason == "unparsable"


ATTACKS = [
    "__import__('os').system('true')",
    "[].__class__",
    "(lambda: 1)()",
    "print(1)",
    "[x for x in range(10**9)]",
    "f'{1}'",
    "9**9**9**9",
    "(9**9999)**9999",
    "2**(10**9)",
    "2**x",
    "9" * 5000,
    "exec('1')",
    "x.__class__",
    "factorial(99999)",
    "Integral(x, x)",
    "N(1)",
    "a;b",
    "x := 1",
]


@pytest.mark.parametrize("text", ATTACKS)
@pytest.mark.parametrize("name", sorted(LITERAL | ARITHMETIC | ALGEBRA))
def test_what_could_run_or_cost_is_not_scored(name: str, text: str) -> None:
    assert not harmless(name, text) or (name in LITERAL and text.isdigit())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("spiral_matrix", "1 2 3"),
        ("spiral_matrix", "[1, 2, 3]"),
        ("n_queens", "_ Q _\nQ _ _"),
        ("string_insertion", "['A', 'B']"),
        ("countdown", "(12 + 4) * 3 - 1.5 / 2"),
        ("simple_integration", "4*X**10/3 - 2*X**9 + C"),
        ("intermediate_integration", "-3*X**3*sin(X) + exp(x)*(x + 1)**2 + sqrt(x)"),
        ("polynomial_multiplication", "7055*y**8 - 554965*y**7"),
        ("simple_integration", "x**(1/2)"),
    ],
)
def test_plain_answers_are_scored(name: str, text: str) -> None:
    assert harmless(name, text)


def test_the_installed_version_has_no_other_scorer_that_evaluates() -> None:
    """Reads reasoning-gym's source: a scorer that calls eval or parse_expr must be in one of our lists."""
    evaluating = set()
    for file in Path(reasoning_gym.__file__).parent.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        for body in re.findall(r"    def score_answer\(.*?(?=\n    def |\nclass |\Z)", source, re.DOTALL):
            if re.search(
                r"(?<![\w.])(?:eval|exec)\((?!entry)|(?:sympy\.|sp\.|(?<![\w.]))(?:parse_expr|sympify)\(", body
            ):
                evaluating.add(file.stem)
    assert evaluating == LITERAL | ARITHMETIC | ALGEBRA | {"puzzle24"}


def test_entries_survive_json() -> None:
    entry = {"answer": "x", "metadata": {"grid": ((1, 2), (3,)), "by": {(0, 1): [Fraction(1, 3)]}, "n": {"!": 1}}}
    assert unpack(pack("spell_backward", {"min_word_len": 3}, entry)) == (
        "spell_backward",
        '{"min_word_len": 3}',
        entry,
    )
    with pytest.raises(DataError, match="kept as JSON"):
        pack("spell_backward", {}, {"answer": {1, 2}})


@pytest.mark.parametrize("gold", ["", "x", "[]", "{}", '{"dataset": "gcd", "settings": {}, "entry": 3}', "[" * 10_000])
def test_golds_that_are_none(gold: str) -> None:
    with pytest.raises(DataError, match="is not JSON with"):
        ReasoningGymVerifier().check_gold(gold)


def test_unknown_unsound_and_ill_set_data_sets() -> None:
    for name, settings, message in (
        ("no_such", {}, "no data set"),
        ("spell_backward", {"no_such": 1}, "refuses the settings"),
        *((name, {}, "cannot be used") for name in UNSOUND),
    ):
        with pytest.raises(DataError, match=message):
            ReasoningGymVerifier().check_gold(pack(name, settings, {"answer": "x"}))
    with pytest.raises(ConfigError, match="threshold"):
        ReasoningGymVerifier(threshold=0)
    with pytest.raises(ConfigError, match="timeout_s"):
        ReasoningGymVerifier(timeout_s=0)


def test_the_unsound_scorers_still_are() -> None:
    """When these fail, upstream was mended: take the data set off the list."""
    from reasoning_gym.factory import create_dataset

    halting = create_dataset("game_of_life_halting", seed=0, size=1)
    assert halting.score_answer("anything at all", halting[0]) == 1.0
    cards = create_dataset("puzzle24", seed=0, size=20)
    assert [cards.score_answer("6*4*1*1", cards[n]) for n in range(20)] == [1.0] * 20


def test_equal_answers_share_a_key() -> None:
    texts = [
        "<answer>Spot</answer>",
        r"so \boxed{spot}",
        "<answer>tops</answer>",
        "spot",
        f"<answer>{'x' * 20_000}</answer>",
    ]
    assert [ReasoningGymVerifier().answer_key(text, spelling()) for text in texts] == [
        "spot",
        "spot",
        "tops",
        None,
        None,
    ]


def test_no_keys_where_several_answers_are_right() -> None:
    countdown = pack("countdown", {}, {"answer": "3*4", "metadata": {"numbers": [3, 4], "target": 12}})
    with pytest.raises(ConfigError, match=r"countdown .* several right answers"):
        ReasoningGymVerifier().answer_key("", countdown)
    with pytest.raises(ConfigError, match="near"):
        ReasoningGymVerifier(threshold=0.5).answer_key("", spelling())


# Scorers of reasoning-gym 0.1.25 that look at the metadata and still accept one answer only, in one or more spellings.
ONE_BY_METADATA = {
    "advanced_geometry", "arc_agi", "bitwise_arithmetic", "calendar_arithmetic", "complex_arithmetic",
    "fraction_simplification", "futoshiki", "group_anagrams", "intermediate_integration", "mini_sudoku",
    "number_format", "number_sorting", "palindrome_partitioning", "pool_matrix", "rearc", "simple_integration",
    "sudoku", "survo", "time_intervals", "word_sorting",
}  # fmt: skip


def test_the_installed_version_has_no_other_scorer_that_accepts_several_answers() -> None:
    """One that never looks beyond the entry's answer can only compare with it; the others were read."""
    import inspect

    from reasoning_gym.factory import DATASETS

    beyond = {name for name, (data, _) in DATASETS.items() if "metadata" in inspect.getsource(data.score_answer)}
    assert beyond == MANY_RIGHT | ONE_BY_METADATA
