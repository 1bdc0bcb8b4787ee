"""The labelled texts, and the numbers `docs/patterns.md` states about the rules."""

import json
import math
import os
import re
from pathlib import Path

import pytest

from killick.errors import ConfigError
from killick.patterns.labelled import Agreement, Labelled, agreement, labelled_texts
from killick.patterns.names import PATTERNS
from killick.patterns.rules import classify

DOCS = Path(__file__).resolve().parents[3] / "docs" / "patterns.md"
REAL = Path(__file__).with_name("reference_labels.json")


def test_enough_texts_of_every_kind():
    texts = labelled_texts()
    assert len(texts) >= 300
    assert len({one.text for one in texts}) == len(texts)
    assert all(one.labels <= set(PATTERNS) for one in texts)
    for half in ("development", "held_out"):
        own = labelled_texts(half)
        assert sum(not one.labels for one in own) >= 15
        for name in PATTERNS:
            assert sum(name in one.labels for one in own) >= 7
    assert len(labelled_texts("development")) + len(labelled_texts("held_out")) == len(texts)
    with pytest.raises(ConfigError, match="no half 'test'"):
        labelled_texts("test")


def test_agreement_counts():
    texts = [Labelled("a", frozenset({"induction"}), "held_out"), Labelled("b", frozenset(), "held_out")]
    found = agreement(texts, lambda text: {"induction"})
    assert found["induction"] == Agreement(num_labelled=1, num_found=2, num_both=1)
    assert (found["induction"].precision, found["induction"].recall) == (0.5, 1.0)
    assert math.isnan(found["substitution"].precision)


def documented(heading):
    """Rows of the table below a heading: pattern -> the numbers in it."""
    section = DOCS.read_text("utf-8").split(f"### {heading}\n")[1].split("\n#")[0]
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", section, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}


def numbers(found):
    return [str(found.num_labelled), str(found.num_found), f"{found.precision:.2f}", f"{found.recall:.2f}"]


def test_the_documented_numbers_are_those_of_the_rules():
    halves = [agreement(labelled_texts(half), classify) for half in ("development", "held_out")]
    expected = {name: numbers(halves[0][name]) + numbers(halves[1][name]) for name in PATTERNS}
    assert documented("On the texts written for it") == expected


def test_the_documented_numbers_on_real_solutions():
    """Set KILLICK_BENCHMARKS to a folder with the files the labels name, in the local schema."""
    if "KILLICK_BENCHMARKS" not in os.environ:
        pytest.skip("KILLICK_BENCHMARKS names no folder of benchmarks")
    for sample in json.loads(REAL.read_text("utf-8")):
        files = [Path(os.environ["KILLICK_BENCHMARKS"]) / name for name in sample["files"]]
        rows = [json.loads(line) for file in files for line in file.read_text("utf-8").strip().split("\n")]
        text = {row["id"]: row["solution"] for row in rows}
        texts = [Labelled(text[uid], frozenset(labels), "held_out") for uid, labels in sample["labels"].items()]
        found = agreement(texts, classify).values()
        sums = [sum(getattr(one, key) for one in found) for key in ("num_labelled", "num_found", "num_both")]
        cells = " | ".join(map(str, [len(texts), *sums]))
        assert f"| {sample['name']} | {cells} |" in DOCS.read_text("utf-8")
