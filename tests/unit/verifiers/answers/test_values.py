"""Reading and evaluating expressions: what is refused as ambiguous, exactness, precision, bounds on work."""

import threading
from fractions import Fraction

import pytest

from killick.verifiers.answers.limits import TooLarge, Undefined, budget
from killick.verifiers.answers.numerals import numeral, written_precision
from killick.verifiers.answers.syntax import parse
from killick.verifiers.answers.tree import Unreadable
from killick.verifiers.answers.values import Evaluation, exact_value, proportional, ratio, same


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+2*3", 7),
        ("2^3^2", 512),  # powers bind to the right
        ("-2^2", -4),
        ("(-2)^2", 4),
        ("6/2*3", 9),
        (r"2\frac{1}{2}", Fraction(5, 2)),
        (r"\frac12", Fraction(1, 2)),
        (r"\sqrt{\frac{9}{4}}", Fraction(3, 2)),
        (r"\sqrt[3]{-27}", -3),
        ("8^{2/3}", 4),
        ("5!/3!", 20),
        (r"\binom{5}{2}", 10),
        ("|2-5|", 3),
        (r"\lfloor -3.5 \rfloor", -4),
        (r"\sum_{k=1}^{4} k^2", 30),
        (r"\prod_{k=1}^{4} k", 24),
        ("1.5e3", 1500),
        (r"0.1\overline{6}", Fraction(1, 6)),
        (r"{1 \over 4}", Fraction(1, 4)),
    ],
)
def test_exact_values(text: str, value: Fraction) -> None:
    assert exact_value(parse(text)) == value


@pytest.mark.parametrize(
    "text",
    [
        "1 2",
        "x2",
        r"2\frac{7}{4}",
        r"\frac123",
        r"\sin x/2",
        "5!!",
        "1+",
        "(1",
        "1)",
        "",
        "answer",
        r"\input{x}",
        "a:b",
    ],
)
def test_what_is_broken_or_has_two_readings_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        parse(text)


@pytest.mark.parametrize("text", ["1/0", r"\ln 0", "0^0", "0^{-1}", "(-1)!", r"\log_1 5"])
def test_what_has_no_value(text: str) -> None:
    with pytest.raises(Undefined):
        Evaluation({}).value(parse(text))


@pytest.mark.parametrize("text", ["9^9^9", "10^{100000}", "5000!", "e^{100000}", r"\pi^{99999}", "(10^{99})!"])
def test_what_is_too_large(text: str) -> None:
    with pytest.raises(TooLarge):
        Evaluation({}).value(parse(text))


def test_small_differences_of_large_values_are_seen() -> None:
    """The two sides agree in their first 1505 digits: as many more are computed as that takes."""
    assert not same(parse(r"10^{1505}+\sqrt{2}"), parse(r"10^{1505}+\sqrt{3}"))
    assert same(parse(r"10^{1505}+\sqrt{8}"), parse(r"10^{1505}+2\sqrt{2}"))
    assert not same(parse(r"\frac{\pi}{10^{900}}"), parse(r"\frac{2\pi}{10^{900}}"))
    # e^(pi sqrt(163)) is within 10^-12 of this whole number, and famous for it
    assert not same(parse(r"e^{\pi\sqrt{163}}"), parse("262537412640768744"))


def test_ratios_are_constants_of_expressions_with_variables() -> None:
    assert ratio(parse("2x+2y"), parse("x+y")) == 2
    assert not proportional(parse("x+y"), parse("x-y"))
    assert not proportional(parse("x-x"), parse("y-y"))
    assert ratio(parse("6"), parse("3")) is None  # any two numbers have a ratio
    assert ratio(parse("f(2)-3"), parse("f(1)-5")) is None


def test_functions_nothing_is_known_of() -> None:
    assert same(parse("f(x+1)"), parse("f(1+x)"))
    assert not same(parse("f(x)"), parse("g(x)"))
    assert not same(parse("f(x,y)"), parse("f(y,x)"))
    assert not same(parse("f(0)"), parse("0"))


def test_work_is_bounded_by_counting_it() -> None:
    costly = parse(r"\sum_{k=1}^{299}\sum_{j=1}^{299} \sin(k j)")
    with pytest.raises(TooLarge, match="too much work"), budget():
        Evaluation({}).value(costly)


def test_a_budget_is_of_its_thread_and_ends_with_its_block() -> None:
    outcome: list[object] = []
    with budget(1):
        thread = threading.Thread(target=lambda: outcome.append(exact_value(parse("2+2"))))
        thread.start()
        thread.join()
        with pytest.raises(TooLarge):
            exact_value(parse("2+2"))
    assert exact_value(parse("2+2")) == 4
    assert outcome == [4]


def test_written_numbers() -> None:
    assert numeral("0.(3)") == Fraction(1, 3)
    assert numeral(r"1.2\overline{34}") == Fraction(1234 - 12, 990)
    with pytest.raises(OverflowError):
        numeral("1e99999")
    assert written_precision("0.333333") == Fraction(1, 10**6)
    assert written_precision(r"1.23456 \times 10^{3}") == Fraction(1, 100)
    assert written_precision("0.33333") is None
    assert written_precision("0.0000012") is None  # two significant digits
    assert written_precision("123456") is None
