import re
import time

import pytest

from killick.patterns.labelled import labelled_texts
from killick.patterns.names import PATTERNS
from killick.patterns.rules import MAX_CHARS, RULES, classify, cleaned


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
        ("This is usually proved by induction, but we need only n = 3.", set()),
        ("Wait, let me check. 2 + 2 = 4. Yes.", {"verification"}),
        ("Wait, is that allowed? Yes.", set()),
        ("The clerk double-checks every form.", set()),
        ("3 * 5 = 15. No. 7 * 3 = 21, no. 8 * 3 = 24.", {"guess_and_check"}),
        ("3 * 5 = 15. No. 8 * 3 = 24.", set()),
        ("I should set t = 1 in f(s, t).", {"substitution"}),
        ("Let O be the center, so OM = 12.", set()),
        ("Let h be the height, so 3h = 12.", {"constraint_setup"}),
        ("If n is 3, it fails.\n- If n is 4, it works.", {"case_analysis"}),
    ],
)
def test_words_in_their_place(text, expected):
    assert classify(text) == expected


def test_what_the_rules_read():
    assert cleaned("  It’s **NOT**\n\t$x$ ") == "it's not x"
    assert cleaned("### Step 4: Verify\n\n- \\(a\\)  =\n3\n2. Done") == "verify\na =\n3\ndone"
    assert classify("x" * MAX_CHARS + " this is a contradiction.") == set()
    assert set(RULES) == set(PATTERNS)


def test_every_anchor_can_occur_in_cleaned_text():
    """An anchor with a capital, a dollar or two blanks would switch its rule off."""
    for rules in RULES.values():
        for rule in rules:
            for anchor in rule.anchors:
                assert cleaned(f"a{anchor}a") == f"a{anchor}a"


def seconds(text):
    start = time.process_time()
    classify(text)
    return time.process_time() - start


def test_short_texts_go_fast():
    texts = [one.text for one in labelled_texts()] * 5
    classify("")
    start = time.process_time()
    for text in texts:
        classify(text)
    assert sum(map(len, texts)) / (time.process_time() - start) >= 400_000  # characters a second


@pytest.mark.parametrize("tail", ["", " = 1 x ", ". "])
def test_no_text_made_of_anchors_takes_long(tail):
    """The anchors of a rule, repeated to the full length: expressions start again and again."""
    for one in (one for rules in RULES.values() for one in rules):
        text = "".join(anchor + tail for anchor in one.anchors)
        assert seconds(text * (MAX_CHARS // len(text) + 1)) < 1.0, text


def test_no_text_made_of_the_words_of_a_rule_takes_long():
    """The words of its expressions in their order, again and again: gaps are filled and nearly match."""
    for one in (one for rules in RULES.values() for one in rules):
        words = " ".join(re.findall("[a-z]{2,}", " ".join(one.expressions))) + " n = 1 "
        assert seconds(words * (MAX_CHARS // len(words) + 1)) < 1.0, words


@pytest.mark.parametrize("text", ["\0" * 30_000, "\ud800" * 30_000, "(" * 10**6, "‮let ​x" * 9_000, "9" * 10**6])
def test_hostile_texts_show_nothing(text):
    assert classify(text) == set()
    assert seconds(text) < 1.0
