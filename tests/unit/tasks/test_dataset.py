"""Tasks over published data: hub records become the local schema, local files are read, golds are written."""

import json
import random
from pathlib import Path

import pytest

from killick.errors import ConfigError, DataError
from killick.tasks import TASKS
from killick.tasks.dataset import DataSetTask, boxed
from killick.tasks.reading import Place
from killick.verifiers.choice import choice_gold

BENCH = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "bench"
PUBLISHED = [name for name in TASKS.names() if issubclass(TASKS.get(name), DataSetTask)]


def place(name: str, split: str = "test", index: int = 0) -> Place:
    source = TASKS.get(name).sources[split].hub
    return Place(source, source.configs[0], index)


# Rows as the hub has them (columns as documented there; texts are ours) -> what the local schema must hold.
HUB = [
    (
        "aime24", "test", 3,
        {"id": 63, "problem": "P", "solution": "S", "answer": "073", "year": "2024",
         "url": "https://artofproblemsolving.com/wiki/index.php/2024_AIME_II_Problems/Problem_4"},
        {"id": "aime24-II-4", "problem": "P", "answer": "73", "meta": {"year": 2024, "paper": "II", "number": 4}},
    ),
    (
        "aime25", "test", 17, {"id": "17", "problem": "P", "answer": "82"},
        {"id": "aime25-II-3", "problem": "P", "answer": "82", "meta": {"year": 2025, "paper": "II", "number": 3}},
    ),
    (
        "amc23", "test", 0, {"id": 0, "answer": 27.0, "url": "u", "question": "P"},
        {"problem": "P", "answer": "27", "meta": {"url": "u"}},
    ),
    (
        "amc83", "test", 0, {"id": 0, "problem": "P", "answer": -1.5, "url": "u"},
        {"problem": "P", "answer": "-1.5", "meta": {"url": "u"}},
    ),
    (
        "math500", "test", 0,
        {"problem": "P", "solution": "S", "answer": "x", "subject": "Algebra", "level": 3,
         "unique_id": "test/algebra/2584.json"},
        {"id": "math/test/algebra/2584.json", "problem": "P", "answer": "x", "solution": "S",
         "meta": {"subject": "Algebra", "level": 3}},
    ),
    (
        "math_train", "train", 7,
        {"problem": "P", "level": "Level 5", "type": "Algebra", "solution": r"so \boxed{1} and \boxed{\frac{1}{2}}"},
        {"id": "hendrycks_math/train/algebra/7", "problem": "P", "answer": r"\frac{1}{2}",
         "solution": r"so \boxed{1} and \boxed{\frac{1}{2}}", "meta": {"subject": "Algebra", "level": 5}},
    ),
    ("math_train", "train", 7, {"problem": "P", "level": "Level ?", "type": "Algebra", "solution": "no box"}, None),
    ("minerva", "test", 0, {"question": "P", "answer": "41.8"}, {"problem": "P", "answer": "41.8", "meta": {}}),
    (
        "olympiadbench", "test", 0,
        {"id": 1612, "question": "P", "solution": ["S", "T"], "final_answer": ["$2$"], "is_multiple_answer": False,
         "unit": None, "answer_type": "Numerical", "subfield": "Algebra"},
        {"id": "olympiadbench-1612", "problem": "P", "answer": "$2$", "solution": "S",
         "meta": {"subfield": "Algebra", "answer_type": "Numerical", "multiple": False, "unit": None}},
    ),
    (
        "gsm8k", "test", 2, {"question": "P", "answer": "S\n#### 1,024"},
        {"id": "gsm8k-test-2", "problem": "P", "answer": "1024", "solution": "S\n#### 1,024"},
    ),
    (
        "mmlu_pro", "test", 0,
        {"question_id": 70, "question": "P", "options": ["a", "b", "c"], "answer": "C", "answer_index": 2,
         "cot_content": "", "category": "business", "src": "x"},
        {"id": "mmlu-pro-70", "problem": "P", "answer": "C", "choices": ["a", "b", "c"],
         "meta": {"category": "business", "src": "x"}},
    ),
    (
        "arc_challenge", "test", 0,
        {"id": "NY_1", "question": "P", "choices": {"text": ["a", "b", "c"], "label": ["1", "2", "3"]},
         "answerKey": "2"},
        {"id": "arc-c-NY_1", "problem": "P", "answer": "B", "choices": ["a", "b", "c"]},
    ),
    (
        "gpqa_diamond", "test", 0,
        {"Record ID": "rec1", "Question": " P ", "Correct Answer": " r ", "Incorrect Answer 1": "x",
         "Incorrect Answer 2": "y", "Incorrect Answer 3": "z", "High-level domain": "Physics", "Subdomain": "Optics"},
        {"id": "gpqa-diamond-rec1", "problem": "P", "answer": "A", "choices": ["r", "x", "y", "z"],
         "meta": {"domain": "Physics", "subdomain": "Optics"}},
    ),
    (
        "knights_and_knaves", "test", 0,
        {"quiz": "P", "names": ["Zoey", "Mia"], "solution": [True, False], "index": 5, "cot_head": "H",
         "cot_repeat_steps": ["one", "two"], "cot_foot": "F",
         "solution_text_format": "(1) Zoey is a knight\n(2) Mia is a knave"},
        {"id": "kk-test-2ppl-5", "problem": "P", "answer": "Zoey is a knight, Mia is a knave",
         "solution": "H one two F\n(1) Zoey is a knight\n(2) Mia is a knave",
         "meta": {"people": 2, "names": ["Zoey", "Mia"], "roles": ["knight", "knave"]}},
    ),
    (
        "dapo17k", "train", 0, {"prompt": "P", "solution": "34", "data_source": "math_dapo"},
        {"problem": "P", "answer": "34", "meta": {}},
    ),
    (
        "openr1_math", "train", 0,
        {"problem": "P", "solution": "S", "answer": "x", "problem_type": "Algebra", "generations": ["long"]},
        {"problem": "P", "answer": "x", "solution": "S", "meta": {"problem_type": "Algebra"}},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "split", "index", "record", "local"), HUB, ids=lambda value: str(value)[:20])
def test_hub_records_become_the_local_schema(name: str, split: str, index: int, record: dict, local: dict) -> None:
    assert TASKS.build(name).from_hub(record, place(name, split, index)) == local


def test_every_published_task_has_a_hub_record_above() -> None:
    assert {case[0] for case in HUB} == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_revisions_are_commits(name: str) -> None:
    for source in TASKS.get(name).sources.values():
        assert len(source.hub.revision) == 40
        int(source.hub.revision, 16)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_missing_column_is_named(name: str) -> None:
    split = TASKS.get(name).splits[0]
    with pytest.raises(DataError, match="has no column"):
        TASKS.build(name).from_hub({"something": "else"}, place(name, split))


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        ("2", r"\boxed{2}"),
        ("$\\frac12$", r"\boxed{\frac12}"),
        ("$1$,$2$", r"\boxed{1,2}"),
        (r"\$5", r"\boxed{\$5}"),
        ("$f(x)=x$, where $x$ is odd", r"\boxed{f(x)=x\text{, where }x\text{ is odd}}"),
        (r"x_{0} \cos (\omega t)+$ $\dot{x}_{0}", r"\boxed{x_{0} \cos (\omega t)+ \dot{x}_{0}}"),
        ("even", r"\boxed{even}"),
    ],
)
def test_golds_are_written_as_a_model_would(answer: str, written: str) -> None:
    assert boxed(answer) == f"The final answer is {written}."


def write(folder: Path, name: str, *records: dict) -> str:
    (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return str(folder)


CHOICE = {"id": "q", "problem": "P?", "answer": "B", "solution": "", "choices": ["one", "two", "three", "four"]}


def test_choices_are_shown_and_carried(tmp_path: Path) -> None:
    row = TASKS.build("mmlu_pro", path=write(tmp_path, "mmlu_pro", CHOICE)).rows("test")[0]
    assert row.prompt[-1]["content"].startswith("P?\n\nA. one\nB. two\nC. three\nD. four\n\nReason")
    assert choice_gold(row.answer) == ("B", ("one", "two", "three", "four"))
    assert (row.meta["letter"], row.meta["choices"]) == ("B", ["one", "two", "three", "four"])
    assert row.problem == "P?\none\ntwo\nthree\nfour"
    assert row.solution is None


@pytest.mark.parametrize("seed", range(8))
def test_the_gold_letter_follows_a_shuffle(tmp_path: Path, seed: int) -> None:
    task = TASKS.build("mmlu_pro", path=write(tmp_path, "mmlu_pro", CHOICE), shuffle_seed=seed)
    gold = choice_gold(task.rows("test")[0].answer)
    expected = ["one", "two", "three", "four"]
    random.Random(f"{seed}/q").shuffle(expected)
    assert list(gold.choices) == expected
    assert gold.choices["ABCD".index(gold.letter)] == "two"
    assert task.verifier("The answer is two", task.rows("test")[0].answer).correct


def test_shuffles_differ_from_problem_to_problem_and_not_from_call_to_call(tmp_path: Path) -> None:
    records = [{**CHOICE, "id": f"q{n}", "answer": "A"} for n in range(40)]
    task = TASKS.build("gpqa_diamond", path=write(tmp_path, "gpqa_diamond", *records))
    letters = [row.meta["letter"] for row in task.rows("test")]
    assert set(letters) == set("ABCD")  # (3/4)^40 = 1e-5 would leave one out
    assert letters == [row.meta["letter"] for row in task.rows("test")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"choices": None}, "not a list of texts"),
        ({"choices": ["one", ""]}, "not a list of texts"),
        ({"choices": ["one"], "answer": "A"}, "2 to 10"),
        ({"choices": ["x"] * 11}, "2 to 10"),
        ({"answer": "E"}, "must be a letter"),
        ({"answer": "b"}, "must be a letter"),
        ({"id": None}, "the id"),
    ],
)
def test_unusable_choices(tmp_path: Path, change: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TASKS.build("mmlu_pro", path=write(tmp_path, "mmlu_pro", {**CHOICE, **change})).rows("test")


def test_local_rows_carry_solution_and_meta(tmp_path: Path) -> None:
    record = {"id": "a", "problem": "P", "answer": "1", "solution": r"\boxed{1}", "meta": {"level": 3}}
    row = TASKS.build("math500", path=write(tmp_path, "math500", record)).rows("test")[0]
    assert (row.uid, row.answer, row.solution, row.meta) == ("a", "1", r"\boxed{1}", {"level": 3})
    assert row.prompt[-1]["content"] == "P\n\nReason step by step and put the final answer within \\boxed{}."


def test_wrong_use(tmp_path: Path) -> None:
    record = {"id": "a", "problem": "P", "answer": "1", "solution": ""}
    folder = write(tmp_path, "math500", record, record)
    with pytest.raises(DataError, match="'a' occurs twice"):
        TASKS.build("math500", path=folder).rows("test")
    with pytest.raises(ConfigError, match="no split 'train'"):
        TASKS.build("math500", path=folder).rows("train")
    with pytest.raises(DataError, match=r"no file .*aime24\.jsonl"):
        TASKS.build("aime24", path=folder).rows("test")
    with pytest.raises(DataError, match="Give the folder"):
        TASKS.build("aime24", path=folder + "/math500.jsonl").rows("test")
    with pytest.raises(ConfigError, match="at least 1"):
        TASKS.build("math500", path=folder).rows("test", 0)


def test_large_training_sets_leave_unreadable_golds_out_and_say_so(tmp_path: Path, caplog) -> None:
    records = [{"id": str(n), "problem": f"P{n}", "answer": answer, "solution": ""} for n, answer in enumerate(" 1 2")]
    task = TASKS.build("openr1_math", path=write(tmp_path, "openr1_math", *records))
    assert [row.answer for row in task.rows("train")] == ["1", "2"]
    assert "2 rows have a gold that cannot be read" in caplog.text
    assert [row.answer for row in task.rows("train", 1)] == ["1"]
    with pytest.raises(DataError, match="never be matched"):
        TASKS.build("math_train", path=write(tmp_path, "math_train", *records)).rows("train")


@pytest.mark.parametrize(
    ("name", "split", "num"),
    [
        ("aime24", "test", 30), ("aime25", "test", 30), ("amc23", "test", 40), ("amc83", "test", 83),
        ("math500", "test", 500), ("minerva", "test", 272), ("olympiadbench", "test", 675),
        ("mmlu_pro", "test", 1000), ("arc_challenge", "test", 1172),
        ("knights_and_knaves", "test", 700), ("knights_and_knaves", "train", 1200),
    ],
)  # fmt: skip
def test_shared_files_are_read_whole(name: str, split: str, num: int) -> None:
    if not BENCH.is_dir():
        pytest.skip("the shared data files are not beside this checkout")
    rows = TASKS.build(name, path=str(BENCH)).rows(split)
    assert len(rows) == num
    assert all(row.problem for row in rows)
