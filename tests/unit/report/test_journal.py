import json

import numpy as np
import pytest

from killick.errors import RecordError
from killick.report.journal import ROLES, read_groups, read_repairs

GROUP = {"step": 3, "uid": "a", "num_right": 0, "num_rows": 8}


@pytest.fixture
def row(synthetic):
    return synthetic.repair_row(4, "a", ["3", "+", "4", "<eos>"], [0.04, 0.9, 0.5, 1.0], [0.64, 0.9, 0.125, 1.0])


def test_repairs_as_arrays(synthetic, tmp_path, row):
    other = synthetic.repair_row(7, "é\u2028", ["x"], [0.25], [0.25], plan=None, fallback="empty")
    path = synthetic.write_rows(tmp_path / "repairs.jsonl", [row, other])
    table = read_repairs(path)
    assert (len(table), table.uids, table.offset_M1.tolist()) == (2, ("a", "é\u2028"), [0, 4, 5])
    assert (table.step_M.tolist(), table.failed_at_M.tolist()) == ([4, 7], [2, 5])
    # weight sqrt(0.04 * 0.64) = 0.16, four times p_base; log(0.64 / 0.04) = log 16; sqrt(0.5 * 0.125) = 0.25
    assert table.weight_R == pytest.approx([0.16, 0.9, 0.25, 1.0, 0.25])
    assert table.lift_R == pytest.approx([4.0, 1.0, 0.5, 1.0, 1.0])
    assert table.salience_R == pytest.approx([np.log(16), 0.0, np.log(0.25), 0.0, 0.0], abs=1e-6)
    sums, counts = table.per_repair(table.lift_R)
    assert sums == pytest.approx([6.5, 1.0])
    assert counts.tolist() == [4, 1]
    assert table.plan_chars_M[0] == len("-4*20+")
    assert np.isnan(table.plan_chars_M[1])
    assert table.fallback_M.tolist() == [False, True]
    assert table.role_R is None  # "3+4" is no chain
    assert table.repair(1).tokens == ["x"]
    assert (table.repair(0).plan, table.repair(1).fallback) == ("-4*20+", "empty")


def test_roles_need_every_reference_to_be_a_chain_in_characters(synthetic, tmp_path):
    def table(*tokens):
        rows = [synthetic.repair_row(0, "a", t, [0.5] * len(t), [0.5] * len(t)) for t in tokens]
        return read_repairs(synthetic.write_rows(tmp_path / "repairs.jsonl", rows))

    chain = [*"3+4=7", "<eos>"]
    names = [ROLES[code] for code in table(chain).role_R]
    assert names == ["operand", "operator", "forced", "separator", "result", "end of turn"]
    assert table(chain, ["3+", "4=7", "<eos>"]).role_R is None
    assert table(chain, ["<eos>"]).role_R is None
    assert table(["x", "<eos>"], chain).role_R is None


def test_probabilities_of_zero_have_no_salience(synthetic, tmp_path):
    row = synthetic.repair_row(0, "a", ["x", "y", "z"], [0.0, 0.5, 1.0005], [0.5, 0.0, 1.0])
    table = read_repairs(synthetic.write_rows(tmp_path / "repairs.jsonl", [row]))
    assert np.isnan(table.salience_R).tolist() == [True, True, False]
    assert np.isnan(table.lift_R).tolist() == [True, False, False]
    assert table.p_base_R[2] == 1.0  # low precision above 1 is cut
    sums, counts = table.per_repair(table.salience_R)
    assert (sums.tolist(), counts.tolist()) == ([0.0], [1.0])


def test_missing_empty_and_unfinished_files(synthetic, tmp_path, row):
    assert read_repairs(tmp_path / "repairs.jsonl") is None
    assert read_groups(tmp_path / "groups.jsonl") is None
    path = synthetic.write_rows(tmp_path / "repairs.jsonl", [])
    assert read_repairs(path) is None
    path.write_bytes(json.dumps(row).encode() + b"\n\n" + '{"step": 5, "uid": "é'.encode()[:-1])
    assert len(read_repairs(path)) == 1


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"step": -1}, "whole number from 0 under step"),
        ({"step": True}, "whole number from 0 under step"),
        ({"failed_at": 1.5}, "whole number from 0 under failed_at"),
        ({"uid": None}, "no text under uid"),
        ({"plan": 3}, "no text under plan"),
        ({"fallback": "bored"}, "fallback 'bored'; allowed are null, empty, truncated, too_long"),
        ({"fallback": ["empty"]}, "no text under fallback"),
        ({"tokens": []}, "no list of texts under tokens"),
        ({"tokens": ["a", "b", "c", 1]}, "no list of texts under tokens"),
        ({"p_base": [0.5]}, "1 numbers under p_base for 4 tokens"),
        ({"p_plan": [0.5, 0.5, 0.5, "1"]}, "no list of numbers under p_plan"),
        ({"p_plan": [0.5, 0.5, 0.5, True]}, "no list of numbers under p_plan"),
        ({"weight": [0.5, 0.5, 0.5, 10**400]}, "beyond all measure under weight"),
        ({"weight": [0.5, 0.5, 0.5, float("nan")]}, "weight nan"),
        ({"weight": [0.5, 0.5, 0.5, -0.5]}, "weight -0.5"),
        ({"p_base": [0.5, 0.5, 0.5, 1.5]}, "p_base 1.5"),
    ],
)
def test_a_damaged_repair_is_named(synthetic, tmp_path, row, change, found):
    path = synthetic.write_rows(tmp_path / "repairs.jsonl", [row, row | change, row])
    with pytest.raises(RecordError, match=rf"repairs\.jsonl, line 2, is damaged: .*{found}"):
        read_repairs(path)


@pytest.mark.parametrize("key", ["step", "uid", "failed_at", "problem", "plan", "fallback", "tokens", "p_base"])
def test_a_missing_field_is_named(synthetic, tmp_path, row, key):
    path = synthetic.write_rows(tmp_path / "repairs.jsonl", [row, {k: v for k, v in row.items() if k != key}])
    with pytest.raises(RecordError, match=rf"line 2, is damaged: no .* under {key}"):
        read_repairs(path)


def test_lines_that_are_no_objects(tmp_path):
    path = tmp_path / "groups.jsonl"
    good = json.dumps(GROUP).encode() + b"\n"
    for bad, found in ((b"{", "is not JSON"), (b"[1]", "holds a list"), (b"\xff\xfe", "is not JSON")):
        path.write_bytes(good + bad + b"\n")
        with pytest.raises(RecordError, match=rf"groups\.jsonl, line 2, {found}"):
            read_groups(path)


def test_groups(synthetic, tmp_path):
    path = synthetic.write_rows(tmp_path / "groups.jsonl", [GROUP, GROUP | {"step": 4, "num_right": 8}])
    table = read_groups(path)
    assert (table.step_M.tolist(), table.num_right_M.tolist(), table.num_rows_M.tolist()) == ([3, 4], [0, 8], [8, 8])
    for change, found in (({"num_right": 9}, "9 right of 8 rows"), ({"num_rows": None}, "under num_rows")):
        synthetic.write_rows(path, [GROUP, GROUP | change])
        with pytest.raises(RecordError, match=f"line 2, is damaged: .*{found}"):
            read_groups(path)
