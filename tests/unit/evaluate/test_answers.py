"""maj@k through the tasks' own verifiers; expected majorities are counted by hand."""

import json

import numpy as np
import pytest

from killick.errors import ConfigError, DataError
from killick.evaluate.answers import AnswerCoder
from killick.evaluate.folder import EvaluationFolder, load
from killick.evaluate.majority import maj_at_ks
from killick.evaluate.records import Record
from killick.evaluate.settings import ModelIdentity, SamplingSettings, describe
from killick.evaluate.texts import visit
from killick.evaluate.writer import RecordWriter
from killick.tasks import TASKS
from killick.verifiers.judge import judge


def evaluation(folder, name, settings, texts_of):
    """A finished evaluation of one text a sample, judged by the task; `texts_of` gives the texts for a row."""
    task = TASKS.build(name, **settings)
    rows = task.rows("train", 2)
    texts = [texts_of(number, task.gold_completion(row)) for number, row in enumerate(rows)]
    sampling = SamplingSettings(num_samples=len(texts[0]), max_tokens=8, seed=3)
    spec = describe(name, task, "train", 2, sampling, ModelIdentity("tiny", "f0"))
    made = EvaluationFolder(folder)
    made.claim(spec, resume=True)
    with RecordWriter(made.records_file, spec.hash()) as writer:
        for row, samples in zip(rows, texts, strict=True):
            for n, text in enumerate(samples):
                verdict = judge(task.verifier, text, row.answer)
                writer.append(
                    [Record(spec.hash(), row.uid, n, 3, text, verdict.correct, verdict.reason, 3, False, None)]
                )
    return load(folder)


def majority(evaluation):
    """maj@N of both problems: with all samples there is one vote, so it is exact."""
    coder = AnswerCoder(evaluation)
    visit(evaluation, [coder])
    return maj_at_ks(coder.answer_QN, [coder.answer_QN.shape[1]], np.random.default_rng(0))[:, 0].tolist()


def problems(tmp_path, *answers, **extras):
    records = [{"problem": f"P{n}?", "answer": answer, **extras} for n, answer in enumerate(answers)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(file)


KNIGHTS = "Zoey is a knight, Mia is a knave"
# Two texts of a wrong answer W in different wordings, and one of another wrong answer V.
JUDGES = {
    "knights": (KNIGHTS, "Both are knaves.", r"\boxed{Mia: knave, Zoey: knave}", "Zoey is a knave, Mia is a knight"),
    "number": ("7", "#### 8", "so it is 8.0", "#### 9"),
    "latex": (r"\frac{1}{2}", r"\boxed{\sqrt{8}}", r"\boxed{2\sqrt{2}}", r"\boxed{3}"),
    "exact": ("red", "<answer>Blue</answer>", "The answer is **blue**.", r"\boxed{green}"),
    "choice": ("A", "The answer is a dog.", "Answer: B", r"\boxed{C}"),
    "python": ("red", "The answer is blue", r"\boxed{blue}", "green"),
}


def votes(number, gold, first, second, other):
    """Problem 0: two right, three W, one silent: W wins, 0. Problem 1: two right, W, V, two silent: right wins, 1.

    Problem 0 would be solved if two wordings of W were two answers with at most two votes each, and problem 1 would be
    tied if W and V were one answer.
    """
    return [gold, gold, first, second, first, ""] if number == 0 else [gold, gold, first, other, "", ""]


@pytest.mark.parametrize("name", JUDGES)
def test_the_majority_of_every_judge(tmp_path, name):
    gold, *wrong = JUDGES[name]
    settings = {"path": problems(tmp_path, gold, gold, options=["a cat", "a dog", "a cow"]), "judge": name}
    if name == "choice":
        settings["columns"] = {"choices": "options"}
    if name == "python":
        settings["function"] = "operator:eq"
    assert majority(evaluation(tmp_path / "eval", "jsonl", settings, lambda n, right: votes(n, right, *wrong))) == [
        0,
        1,
    ]


def test_the_majority_of_a_data_set_of_reasoning_gym(tmp_path):
    wrong = ("<answer>Wrong Word</answer>", r"\boxed{wrong  word}", "<answer>another</answer>")
    made = evaluation(
        tmp_path / "eval", "reasoning_gym", {"dataset": "spell_backward"}, lambda n, g: votes(n, g, *wrong)
    )
    assert majority(made) == [0, 1]


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("countdown", {}, "CountdownVerifier.*method answer_key"),
        ("reasoning_gym", {"dataset": "countdown"}, "several right answers"),
    ],
)
def test_many_right_answers_have_no_vote(tmp_path, name, settings, message):
    with pytest.raises(ConfigError, match=message):
        AnswerCoder(evaluation(tmp_path / "eval", name, settings, lambda n, gold: [gold, ""]))


def test_the_problems_are_read_only_where_the_keys_need_them(tmp_path):
    """A number means the same without its problem; a choice by text does not."""
    for name, settings, needed in (
        ("number", {}, False),
        ("choice", {"columns": {"choices": "options"}}, True),
    ):
        folder = tmp_path / name
        folder.mkdir()
        path = problems(folder, JUDGES[name][0], JUDGES[name][0], options=["a cat", "a dog", "a cow"])
        settings = {"path": path, "judge": name, **settings}
        made = evaluation(
            folder / "eval", "jsonl", settings, lambda n, gold, name=name: votes(n, gold, *JUDGES[name][1:])
        )
        (folder / "rows.jsonl").unlink()
        if needed:
            with pytest.raises(DataError):
                AnswerCoder(made)
        else:
            assert majority(made) == [0, 1]


def test_long_answers_that_differ_at_the_end_stay_apart(tmp_path):
    """Three right ones against 2 + 2 of 300 letters: one answer of four would win."""
    long = "x" * 300
    texts = lambda n, gold: [gold] * 3 + [f"<answer>{long}{end}</answer>" for end in "aabb"]  # noqa: E731
    settings = {"path": problems(tmp_path, "red", "red", other=1), "judge": "exact"}
    assert majority(evaluation(tmp_path / "eval", "jsonl", settings, texts)) == [1, 1]
