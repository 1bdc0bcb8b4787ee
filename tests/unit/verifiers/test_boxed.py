"""Where boxes are found, and which of them belong together."""

import pytest

from killick.verifiers.boxed import boxed_answer, closing, last_box


@pytest.mark.parametrize(
    ("text", "box"),
    [
        (r"\boxed{a} \boxed{b{c}}", "b{c}"),
        ("none", None),
        (r"\boxed{open", ""),
        (r"\boxed 5", ""),
        (r"\boxed{\}}", r"\}"),
        (r"\boxed {5}", "5"),
        (r"\boxed{\boxed{5}}", "5"),
    ],
)
def test_last_box(text: str, box: str | None) -> None:
    assert last_box(text) == box


def test_boxes_are_joined_only_when_they_belong_together() -> None:
    assert boxed_answer(r"\boxed{1}, \boxed{2}") == "1, 2"
    assert boxed_answer(r"\boxed{1} so \boxed{2}") == "2"
    assert boxed_answer("no box") is None
    assert boxed_answer(r"\boxed{1} \boxed{2") == ""
    assert boxed_answer(r"\boxed{a\boxed{5}}") == r"a\boxed{5}"


def test_closing_counts_braces_and_skips_escaped_ones() -> None:
    assert closing(r"a{b}\}c}d", 0) == 8
    assert closing("a{b}", 0) is None
