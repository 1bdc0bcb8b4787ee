"""Records survive odd text, a torn last line and a resume."""

import json
from types import SimpleNamespace

import pytest

from killick.engines.trl.journal import GROUPS, REPAIRS, Journal
from killick.errors import RecordError


def begun(folder, step, first=True, **settings):
    journal = Journal(folder, **settings)
    state = SimpleNamespace(is_world_process_zero=first, global_step=step)
    journal.on_train_begin(None, state, None)
    return journal


def lines(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


ODD = ["a\u2028b", "\x85", "\ud800", "\x00\r\n", "π"]


def test_odd_text_survives_a_resume(tmp_path):
    records = [{"step": n, "plan": text} for n, text in enumerate(ODD)]
    begun(tmp_path, 0).add_repairs(records)
    begun(tmp_path, 3).add_repairs(records[3:])
    assert lines(tmp_path / REPAIRS) == records


@pytest.mark.parametrize("tail", ['{"step": 1, "ui', '{"step": 0}', "x\n", '{"uid": 3}\n', "[]\n"])
def test_a_torn_or_foreign_line_is_dropped(tmp_path, tail):
    begun(tmp_path, 0).add_groups([{"step": 0}, {"step": 1}])
    with (tmp_path / GROUPS).open("a") as file:
        file.write(tail)
    begun(tmp_path, 1)
    assert lines(tmp_path / GROUPS) == [{"step": 0}]


def test_a_new_run_starts_anew(tmp_path):
    begun(tmp_path, 0).add_groups([{"step": 0}])
    begun(tmp_path, 0)
    assert (tmp_path / GROUPS).read_bytes() == b""


def test_the_limit_counts_what_was_kept_before(tmp_path):
    begun(tmp_path, 0, max_repairs=3).add_repairs([{"step": 0}, {"step": 1}])
    resumed = begun(tmp_path, 1, max_repairs=3)
    resumed.add_repairs([{"step": 1}] * 5)
    assert lines(tmp_path / REPAIRS) == [{"step": 0}, {"step": 1}, {"step": 1}]


def test_other_processes_write_nothing(tmp_path):
    begun(tmp_path, 0, first=False).add_groups([{"step": 0}])
    assert list(tmp_path.iterdir()) == []


def test_files_that_cannot_be_cut_back_are_named(tmp_path):
    begun(tmp_path, 0).add_groups([{"step": 0}])
    (tmp_path / "groups.part").mkdir()  # where the kept lines are written first
    with pytest.raises(RecordError, match=r"Cannot write .*groups\.jsonl"):
        begun(tmp_path, 1)
    with pytest.raises(RecordError, match="Cannot write"):
        begun(tmp_path / "groups.jsonl", 0)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    journal = begun(tmp_path, 0)
    (tmp_path / GROUPS).mkdir()
    with pytest.raises(RecordError, match=r"Cannot write .*groups\.jsonl"):
        journal.add_groups([{"step": 0}])
