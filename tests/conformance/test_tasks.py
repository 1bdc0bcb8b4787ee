"""Every registered task keeps the protocol: rows, golds that score 1, wrong golds that score 0, solution modes."""

import inspect
import json
from pathlib import Path

import pytest

from killick.errors import ConfigError, DataError
from killick.tasks import TASKS
from killick.tasks.types import Row

LIMIT = 16
BENCH = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "bench"


def build(name: str, folder: Path):
    """The task with its defaults, or with the local data it cannot do without."""
    if name == "gsm8k":
        if not BENCH.is_dir():
            pytest.skip("gsm8k needs the hub, or the shared data files beside this checkout")
        return TASKS.build(name, path=str(BENCH))
    component = TASKS.get(name)
    required = [p.name for p in inspect.signature(component).parameters.values() if p.default is p.empty]
    if required == ["path"]:
        file = folder / "data.jsonl"
        records = [{"problem": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(LIMIT)]
        file.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
        return TASKS.build(name, path=str(file))
    if required:
        pytest.skip(f"the task {name} needs {required}, which this test cannot make up")
    return TASKS.build(name)


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


def test_the_gold_of_another_problem_scores_0(task) -> None:
    """Compares with the first row whose answer differs, so a verifier that says yes to everything fails."""
    rows = task.rows(task.splits[-1], LIMIT)
    for row in rows:
        other = next((r for r in rows if r.answer != row.answer), None)
        assert other is not None, "all answers of the first rows are equal"
        assert not task.verifier(task.gold_completion(other), row.answer).correct, (row.uid, other.uid)


def test_reference_solutions_are_right(task) -> None:
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
