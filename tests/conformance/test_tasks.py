"""Every registered task keeps the protocol: rows, golds that score 1, wrong golds that score 0, solution modes."""

import json
from pathlib import Path

import pytest

from killick.errors import ConfigError, DataError
from killick.tasks import TASKS
from killick.tasks.choices import ChoiceTask
from killick.tasks.dataset import DataSetTask
from killick.tasks.types import Row
from killick.tasks.validate import validate

LIMIT = 16
UNPUBLISHED = {"gpqa_diamond", "dapo17k", "openr1_math"}  # tasks without a file among the shared data
BENCH = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "bench"


def build(name: str, folder: Path):
    """The task with its defaults, on shared data if there are any, else on problems made up here in its schema."""
    component = TASKS.get(name)
    if not issubclass(component, DataSetTask):
        return (
            TASKS.build("jsonl", path=made_up(folder / "data.jsonl", False)) if name == "jsonl" else TASKS.build(name)
        )
    files = [source.file for source in component.sources.values()]
    if all((BENCH / f"{file}.jsonl").is_file() for file in files):
        return TASKS.build(name, path=str(BENCH))
    if name not in UNPUBLISHED:
        pytest.skip(f"{name} needs the hub, or the shared data files beside this checkout")
    for file in files:
        made_up(folder / f"{file}.jsonl", issubclass(component, ChoiceTask))
    return TASKS.build(name, path=str(folder))


def made_up(file: Path, choices: bool) -> str:
    """A file in the schema of local data; with choices, the right one is moved about."""
    records = []
    for n in range(LIMIT):
        record = {"id": f"{file.stem}-{n}", "problem": f"What is {n} + {n}?", "answer": str(2 * n), "solution": ""}
        if choices:
            options = [str(2 * n + shift) for shift in range(1, 4)]
            options.insert(n % 4, str(2 * n))
            record |= {"answer": "ABCD"[n % 4], "choices": options}
        records.append(json.dumps(record))
    file.write_text("\n".join(records), encoding="utf-8")
    return str(file)


@pytest.fixture(params=TASKS.names())
def task(request: pytest.FixtureRequest, tmp_path: Path):
    return build(request.param, tmp_path)


def test_rows_have_the_promised_shape(task) -> None:
    assert task.splits
    for split in task.splits:
        rows = task.rows(split, LIMIT)
        assert 0 < len(rows) <= LIMIT
        assert rows == task.rows(split, LIMIT), "the same every time"
        assert rows[:5] == task.rows(split, 5), "a limit takes the first"
        assert len({row.uid for row in rows}) == len(rows)
        for row in rows:
            assert isinstance(row, Row)
            assert row.uid
            assert row.answer
            assert row.prompt[-1]["role"] == "user"
            assert all(set(turn) == {"role", "content"} and turn["content"] for turn in row.prompt)
            assert row.solution is None or row.solution.strip()
            json.dumps(row.meta)


def test_every_gold_scores_1(task) -> None:
    for split in task.splits:
        for row in task.rows(split, LIMIT):
            task.verifier.check_gold(row.answer)
            verdict = task.verifier(task.gold_completion(row), row.answer)
            assert verdict.correct, (row.uid, task.gold_completion(row), row.answer, verdict)


def test_a_wrong_gold_scores_0(task) -> None:
    """A verifier that says yes to everything fails here."""
    for split in task.splits:
        found = validate(task, split, task.rows(split, LIMIT))
        assert found.num_wrong > 0
        assert found.accepted == []
        assert found.rejected == []


def test_reference_solutions_are_right(task) -> None:
    if type(task) is TASKS.get("olympiadbench"):
        pytest.skip("its solutions are prose that does not box the answer")
    for split in task.splits:
        for row in task.rows(split, LIMIT):
            if row.solution is not None:
                assert task.verifier(row.solution, row.answer).correct, row.uid


def test_splits_share_no_problem(task) -> None:
    asked = [{json.dumps(row.prompt) for row in task.rows(split, 200)} for split in task.splits]
    for index, one in enumerate(asked):
        for two in asked[index + 1 :]:
            assert not one & two


def test_modes_are_labels_or_none_and_never_raise(task) -> None:
    for text in ("", "nonsense \ud800 \x00", task.gold_completion(task.rows(task.splits[0], 1)[0])):
        mode = task.mode(text)
        assert mode is None or isinstance(mode, str)


def test_unknown_splits_name_the_allowed_ones(task) -> None:
    with pytest.raises((ConfigError, DataError), match=task.splits[0]):
        task.rows("no-such-split", 1)


def test_settings_are_refused_by_name(task) -> None:
    name = next(n for n in TASKS.names() if TASKS.get(n) is type(task))
    with pytest.raises(ConfigError, match="no setting 'no_such_setting'"):
        TASKS.build(name, no_such_setting=1)
