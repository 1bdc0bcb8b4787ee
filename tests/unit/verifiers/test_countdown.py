"""The countdown judge: every verdict in a table, hostile text in bounded time."""

import time

import pytest

from killick.errors import ConfigError, DataError
from killick.verifiers.countdown import CountdownVerifier, ParsedStep, parse_steps

GOLD = "3,5,7,2>22"
CASES = [
    # 7-3=4, 4*5=20, 20+2=22: every number once, all true.
    ("7-3=4;4*5=20;20+2=22", GOLD, "right"),
    ("7-3=4;5*4=20;2+20=22", GOLD, "right"),
    ("  7-3=4;4*5=20;20+2=22\n", GOLD, "right"),
    ("12/4=3;3*8=24", "12,4,8>24", "right"),
    ("5+5=10;10+5=15", "5,5,5>15", "right"),  # equal numbers, each once
    ("", GOLD, "no_answer"),
    (" \t\n", GOLD, "no_answer"),
    ("7-3=4;4*5=20;20+2=23", GOLD, "wrong"),  # false arithmetic
    ("7-3=4;4*5=20", GOLD, "wrong"),  # last step missing
    ("7-3=4;4*5=20;20+2=22;22+1=23", GOLD, "wrong"),  # a step too many
    ("7-3=4;4*5=20;20+5=25", "3,5,7,2>25", "wrong"),  # 5 is used up
    ("7-3=4;4*5=20;20-2=18", GOLD, "wrong"),  # true, but not the target
    ("7-3=4;9*5=45;45+2=47", "3,5,7,2>47", "wrong"),  # 9 was never there
    ("5+5=10;10+5=15", "5,5,7>15", "wrong"),  # there are only two fives
    ("22+0=22", "22,1>22", "wrong"),  # zero is not available
    ("3-3=0;5+0=5", "3,3,5>5", "wrong"),  # zero is not a positive value
    ("5/0=5", "5,5>5", "wrong"),  # division by zero
    ("7/2=3;3*8=24", "7,2,8>24", "wrong"),  # not exact
    ("7/2=4;4*8=32", "7,2,8>32", "wrong"),
    ("100*3=300;300-200=100", "100,3,200>100", "wrong"),  # 300 is above max_value
    ("3-5=-2;7-2=5", "3,5,7>5", "unparsable"),  # negative values have no spelling
    ("7-3=4;4*5=20;20+2=22;", GOLD, "unparsable"),
    (";7-3=4;4*5=20;20+2=22", GOLD, "unparsable"),
    ("7-3=4;;4*5=20;20+2=22", GOLD, "unparsable"),
    ("7-3=4;4*5", GOLD, "unparsable"),
    ("7 - 3 = 4;4*5=20;20+2=22", GOLD, "unparsable"),
    ("07-3=4;4*5=20;20+2=22", GOLD, "unparsable"),  # one spelling per value
    ("7-3=4;4*5=20;20+2=22\n7-3=4", GOLD, "unparsable"),
    ("7**3=343", GOLD, "unparsable"),
    ("7//3=2", GOLD, "unparsable"),
    ("__import__('os').system('true')", GOLD, "unparsable"),
    ("٧-٣=٤;٤*٥=٢٠;٢٠+٢=٢٢", GOLD, "unparsable"),  # Arabic-Indic digits
    ("７-３=４;４*５=２０;２０+２=２２", GOLD, "unparsable"),  # full-width digits
    ("7-3=4\u200b;4*5=20;20+2=22", GOLD, "unparsable"),  # zero-width space
    ("7\u22123=4;4*5=20;20+2=22", GOLD, "unparsable"),  # typographic minus
    ("\u200b", GOLD, "unparsable"),
    ("\x00", GOLD, "unparsable"),
    ("(" * 1_000_000, GOLD, "unparsable"),
    (" " * 1_000_000, GOLD, "unparsable"),
    ("9" * 100_000, GOLD, "unparsable"),
    ("9" * 400 + "+1=2", GOLD, "unparsable"),
    ("7-3=4;" * 100_000, GOLD, "unparsable"),
    ("1+1=2;" * 80 + "x", GOLD, "unparsable"),  # under the length limit: matching must still be linear
]


@pytest.mark.parametrize(("text", "gold", "reason"), CASES, ids=[f"{i}-{c[0][:24]!r}" for i, c in enumerate(CASES)])
def test_verdicts(text: str, gold: str, reason: str) -> None:
    start = time.perf_counter()
    verdict = CountdownVerifier()(text, gold)
    assert (verdict.correct, verdict.reason) == (reason == "right", reason)
    assert time.perf_counter() - start < 0.5


def test_max_value_is_the_bound_itself() -> None:
    # 20 * 10 = 200 is the largest value allowed by default.
    assert CountdownVerifier()("20*10=200", "20,10>200").correct
    assert not CountdownVerifier(max_value=199)("100+100=200;200-1=199", "100,100,1>199").correct
    with pytest.raises(ConfigError, match="at least 1"):
        CountdownVerifier(max_value=0)


@pytest.mark.parametrize(
    "gold",
    ["", "24", "3>24", "3,5", "3,5>", ">24", "3,,5>24", "0,5>24", "3,5>0", "3,5>-1", "03,5>24", "3, 5>24", "3,5>24\n",
     "٣,5>24", "3,5>24>24", "3.5,5>24", "3," * 1000 + "5>24"],
)  # fmt: skip
def test_malformed_gold_is_a_data_error(gold: str) -> None:
    with pytest.raises(DataError, match="malformed"):
        CountdownVerifier().check_gold(gold)
    with pytest.raises(DataError, match="malformed"):
        CountdownVerifier()("1+1=2", gold)


def test_gold_out_of_reach_is_a_data_error() -> None:
    CountdownVerifier().check_gold("20,10>200")
    with pytest.raises(DataError, match="above max_value"):
        CountdownVerifier().check_gold("20,11>201")


def test_parse_steps_reads_and_does_not_judge() -> None:
    assert parse_steps("7-3=5;1/0=0") == (ParsedStep(7, "-", 3, 5), ParsedStep(1, "/", 0, 0))
    assert parse_steps("7-3") is None
