import time

import pytest

from killick.patterns.labelled import labelled_texts
from killick.patterns.names import PATTERNS
from killick.patterns.rules import MAX_CHARS, classify, cleaned
from killick.patterns.table import RULES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", set()),
        ("In 5 cases of cola there are 120 bottles.", set()),
        ("Case 1: n is even. Case 2: n is odd.", {"case_analysis"}),
        ("**CASE 1:** $n$ is even.\n\n**Case 2:** it isn’t.", {"case_analysis"}),
        ("This is a contradiction.", {"contradiction"}),
        ("This is no contradiction.", set()),
        ("We proceed by induction on n.", {"induction"}),
        ("An induction cooker is used.", set()),
        ("Wait, that's wrong.", {"backtracking"}),
        ("They wait there for an hour.", set()),
        ("Suppose not. By induction we get a contradiction.", {"contradiction", "induction"}),
    ],
)
def test_words_in_their_place(text, expected):
    assert classify(text) == expected


def test_what_the_rules_read():
    assert cleaned("  It’s **NOT**\n\t$x$ ") == "it's not x"
    assert classify("x" * MAX_CHARS + " this is a contradiction.") == set()
    assert set(RULES) == set(PATTERNS)


def test_every_anchor_can_occur_in_cleaned_text():
    """An anchor with a capital, a dollar or two blanks would switch its rule off."""
    for rules in RULES.values():
        for rule in rules:
            for anchor in rule.anchors:
                assert cleaned(f"a{anchor}a") == f"a{anchor}a"


def test_short_texts_go_fast():
    texts = [one.text for one in labelled_texts()] * 20
    classify("")
    start = time.process_time()
    for text in texts:
        classify(text)
    assert len(texts) / (time.process_time() - start) >= 5_000


@pytest.mark.parametrize("tail", ["", " = 1 x ", ". "])
def test_no_text_made_of_anchors_takes_long(tail):
    """Every anchor of every rule, repeated to the full length: expressions start again and again."""
    anchors = {anchor for rules in RULES.values() for rule in rules for anchor in rule.anchors}
    for anchor in sorted(anchors):
        start = time.process_time()
        classify((anchor + tail) * MAX_CHARS)
        assert time.process_time() - start < 1.0, anchor


@pytest.mark.parametrize("text", ["\0" * 30_000, "\ud800" * 30_000, "(" * 10**6, "‮let ​x" * 9_000, "9" * 10**6])
def test_hostile_texts_show_nothing(text):
    start = time.process_time()
    assert classify(text) == set()
    assert time.process_time() - start < 1.0
