import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from killick.errors import RecordError
from killick.evaluate.records import REASONS, Record, iter_records, read_records
from killick.evaluate.writer import RecordWriter


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.jsonl"


def test_round_trip_of_odd_texts(path, make_record):
    texts = ["", "a\nb\r\n", "\u2028\x85", "\ud800 lone", "é漢🙂", '{"uid":"p0"}', "x" * 1_000_000, "\0"]
    records = [make_record(sample=n, text=text) for n, text in enumerate(texts)]
    with RecordWriter(path, "r0") as writer:
        writer.append(records)
    assert list(iter_records(path, "r0")) == records


def test_table_is_sorted_whatever_the_file_order(path, make_record):
    wrong = {"correct": False, "reason": "no_answer", "mode": None, "truncated": True, "tokens": 7}
    with RecordWriter(path, "r0") as writer:
        writer.append([make_record("p1", 1, **wrong), make_record("p0", 0)])
        writer.append([make_record("p1", 0, mode="b"), make_record("p0", 1)])
    table = read_records(path, 2)
    assert table.uids == ("p0", "p1")
    assert table.correct_QN.tolist() == [[True, True], [True, False]]
    assert table.num_correct_Q.tolist() == [2, 1]
    assert table.tokens_QN.tolist() == [[3, 3], [3, 7]]
    assert table.truncated_QN.tolist() == [[False, False], [False, True]]
    assert table.modes == ("a", "b")
    assert table.mode_QN.tolist() == [[0, 0], [1, -1]]
    assert REASONS[table.reason_QN[1, 1]] == "no_answer"


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_torn_last_line_is_dropped_and_written_again(path, make_record, cut):
    records = [make_record(sample=n) for n in range(3)]
    with RecordWriter(path, "r0") as writer:
        writer.append(records)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert list(iter_records(path)) == records[:2]
    with RecordWriter(path, "r0") as writer:
        assert writer.done == {("p0", 0), ("p0", 1)}
        writer.append(records[2:])
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[:20],
        lambda line: b"\0" * 10,
        lambda line: b"[1]",
        lambda line: line.replace(b'"tokens":3', b'"tokens":"3"'),
        lambda line: line.replace(b'"sample":1', b'"sample":true'),
        lambda line: line.replace(b'"text":', b'"txt":'),
        lambda line: line.replace(b'"correct":true', b'"correct":false'),
        lambda line: line.replace(b'"reason":"right"', b'"reason":"lucky"'),
        lambda line: b"\xff" + line,
        lambda line: line.replace(b'"tokens":3', b'"tokens":' + str(2**63).encode()),
        lambda line: line.replace(b'"tokens":3', b'"tokens":-1'),
        lambda line: line.replace(b'"sample":1', b'"sample":-1'),
        lambda line: b"[" * 100_000,
    ],
)
def test_corrupt_line_in_the_middle_names_file_line_and_remedy(path, make_record, damage):
    lines = [make_record(sample=n).line() for n in range(3)]
    lines[1] = damage(lines[1].rstrip()) + b"\n"
    path.write_bytes(b"".join(lines))
    for attempt in (lambda: list(iter_records(path)), lambda: RecordWriter(path, "r0").__enter__()):
        with pytest.raises(RecordError, match=r"records.jsonl, line 2 is corrupt.*Delete that line"):
            attempt()


def test_records_of_another_run_are_refused(path, make_record):
    with RecordWriter(path, "r0") as writer:
        writer.append([make_record()])
        with pytest.raises(RecordError, match="run r1"):
            writer.append([make_record(sample=1, run="r1")])
    with pytest.raises(RecordError, match=r"line 1: a record of run r0, expected r1"):
        RecordWriter(path, "r1").__enter__()


def test_duplicates_are_refused_in_file_and_batch(path, make_record):
    with RecordWriter(path, "r0") as writer:
        writer.append([make_record()])
        for batch in ([make_record()], [make_record(sample=1), make_record(sample=1)]):
            with pytest.raises(RecordError, match="refused"):
                writer.append(batch)
        assert writer.done == {("p0", 0)}
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(RecordError, match=r"line 2: sample 0 of problem 'p0' is already in line 1"):
        list(iter_records(path))


def test_unequal_sample_counts_name_the_problem(path, make_record):
    with RecordWriter(path, "r0") as writer:
        writer.append([make_record("p0", 0), make_record("p0", 1), make_record("p1", 0)])
    with pytest.raises(RecordError, match=r"'p1' has 1 of 2 samples.*resume"):
        read_records(path, 2)
    with pytest.raises(RecordError, match=r"'p0' has sample 1, but 1 are asked"):
        read_records(path, 1)


def test_missing_and_empty_files(path):
    with pytest.raises(RecordError, match="Cannot read"):
        list(iter_records(path))
    path.touch()
    with pytest.raises(RecordError, match="no records"):
        read_records(path, 1)


def test_two_writers_at_once_are_refused(path):
    pytest.importorskip("fcntl")
    with RecordWriter(path, "r0"), pytest.raises(RecordError, match="another process"):
        RecordWriter(path, "r0").__enter__()
    with RecordWriter(path, "r0"):  # the lock goes with the writer
        pass


def test_unwritable_place(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="Cannot write"):
        RecordWriter(tmp_path / "file" / "records.jsonl", "r0").__enter__()


FULL_DISK = """
import resource, sys
from pathlib import Path
from killick.errors import RecordError
from killick.evaluate.records import Record
from killick.evaluate.writer import RecordWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
def batch(start):
    return [Record("r0", "p0", start + n, 0, "x" * 30, True, "right", 3, False, None) for n in range(4)]
with RecordWriter(Path(sys.argv[1]), "r0") as writer:
    writer.append(batch(0))
    try:
        writer.append(batch(4))
    except RecordError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a file size limit")
def test_a_full_disk_keeps_every_earlier_batch_and_no_half_line(path):
    """The kernel refuses bytes beyond a limit (the same path as a full disk); the second batch crosses it."""
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True)
    assert "The 4 records before this batch are safe" in done.stdout
    assert len(list(iter_records(path))) == 4
    assert path.read_bytes().endswith(b"\n")


def test_a_hundred_thousand_records_are_read_in_seconds(path):
    """About 1.5 s on one core; the bound only catches a quadratic reader."""
    lines = [
        Record(
            "r0",
            f"p{n // 100}",
            n % 100,
            0,
            "3+4=7;7*5=35;",
            n % 3 == 0,
            "right" if n % 3 == 0 else "wrong",
            14,
            False,
            None,
        )
        for n in range(100_000)
    ]
    path.write_bytes(b"".join(record.line() for record in lines))
    start = time.perf_counter()
    table = read_records(path, 100)
    assert time.perf_counter() - start < 20
    assert table.correct_QN.shape == (1000, 100)
    assert np.sum(table.num_correct_Q) == 33_334


def test_lines_are_plain_json(path, make_record):
    with RecordWriter(path, "r0") as writer:
        writer.append([make_record(mode=None, correct=False, reason="wrong")])
    assert json.loads(path.read_text()) == {
        "run": "r0", "uid": "p0", "sample": 0, "seed": 3, "text": "ab", "correct": False, "reason": "wrong",
        "tokens": 3, "truncated": False, "mode": None,
    }  # fmt: skip
    assert os.path.getsize(path) < 200
