import json

import numpy as np
import pytest

from killick.evaluate.records import RecordTable
from killick.report import load_study
from killick.report.page import panels_of
from killick.report.panels.frontier import FrontierPanel
from killick.report.panels.modes import ModesPanel, distinct, pooled, with_mark
from killick.report.panels.samples import SamplesPanel
from killick.report.panels.settings import SettingsPanel
from killick.report.panels.training import over_seeds, smooth
from killick.report.study import Arm, Run, Study
from killick.report.types import Cell, Figure, Table


@pytest.fixture(scope="module")
def study(study_dir):
    return load_study(study_dir)


def _table(mode_QN, modes):
    mode_QN = np.array(mode_QN)
    shape = mode_QN.shape
    return RecordTable(
        run="r",
        uids=tuple(str(q) for q in range(shape[0])),
        correct_QN=mode_QN >= 0,
        tokens_QN=np.ones(shape, dtype=int),
        truncated_QN=np.zeros(shape, dtype=bool),
        reason_QN=np.zeros(shape, dtype=int),
        mode_QN=mode_QN,
        modes=modes,
    )


def test_distinct_modes_count_labels_per_problem():
    table = _table([[0, 0, 1, -1], [-1, -1, -1, -1], [2, 1, 0, 2]], ("a", "b", "c/"))
    assert distinct(table).tolist() == [2, 0, 3]
    assert with_mark(table, "/").tolist() == [0, 0, 1]


def test_no_mode_at_all_is_zero_not_an_error():
    table = _table([[-1, -1]], ())
    assert distinct(table).tolist() == [0]
    assert with_mark(table, "/").tolist() == [0]


def test_mode_shares_sum_to_one_and_the_rest_is_stacked(study):
    figure = ModesPanel(labels=3)(study).items[0]
    assert [trace["name"] for trace in figure.traces][-1] == "other (4 modes)"
    totals = np.sum([trace["x"] for trace in figure.traces], axis=0)
    assert totals == pytest.approx(np.ones(5))


def test_division_share_is_of_right_completions(study):
    table = next(item for item in ModesPanel()(study).items if isinstance(item, Table))
    counts = pooled(study.arms[0], "mixed")
    marked = counts["*+/"] + counts["+/-"]
    cell = table.rows[0][table.columns.index("right ones with division")]
    assert cell == Cell(f"{marked / counts.total():.4f}", f"{marked:,} of {counts.total():,}")


def test_smooth_is_a_centred_mean_cut_at_the_ends():
    values = np.array([1.0, 2.0, 6.0, 3.0])
    assert smooth(values, 1).tolist() == values.tolist()
    # window 3: (1+2)/2, (1+2+6)/3, (2+6+3)/3, (6+3)/2
    assert smooth(values, 3) == pytest.approx([1.5, 3.0, 11 / 3, 4.5])


def test_seeds_are_averaged_where_all_have_logged():
    logs = [
        [{"step": 1, "kl": 1.0}, {"step": 2, "kl": 2.0}, {"step": 3, "kl": 3.0}],
        [{"step": 1, "kl": 3.0}, {"step": 2, "kl": float("nan")}, {"step": 3, "kl": 5.0}],
        [{"step": 1}],  # never logged it: does not count as a seed here
    ]
    arm = Arm("a", "a", "m", {}, [Run(i, {}, {}, log, {}) for i, log in enumerate(logs)])
    steps, values = over_seeds(arm, "kl", 1)
    assert steps.tolist() == [1, 3]
    assert values.tolist() == [[1, 3], [3, 5]]


def test_frontier_follows_the_sweep_in_numeric_order(synthetic, tmp_path):
    folder = synthetic.write_study(tmp_path / "s", betas=(0.3, 0.02, 0.1), methods=("grpo",), splits=("mixed",))
    figure = FrontierPanel(k=8)(load_study(folder)).items[0]
    assert isinstance(figure, Figure)
    assert figure.traces[0]["text"] == ["0.02", "0.1", "0.3"]
    assert figure.heading == "Split mixed: pass@1 against pass@8"
    assert figure.traces[1]["name"] == "base"
    assert "trl.beta" in figure.caption


def test_frontier_interval_bars_end_at_the_interval(study):
    trace = FrontierPanel()(study).items[0].traces[0]
    found = study.coverage["grpo-0.02", "mixed"].at
    assert trace["x"][0] + trace["error_x"]["array"][0] == pytest.approx(found[1].high)
    assert trace["y"][0] - trace["error_y"]["arrayminus"][0] == pytest.approx(found[16].low)


def test_settings_mark_what_differs_and_fold_the_rest(study):
    tables = {table.heading: table for table in SettingsPanel()(study).items}
    differs = tables["Training settings: what differs"]
    names = [row[0] for row in differs.rows]
    assert "trl.beta" in names
    assert "method.anchor.gamma" in names
    assert "trl.learning_rate" not in names
    beta = differs.rows[names.index("trl.beta")]
    assert [cell.text for cell in beta[1:]] == ["0.02", "0.3", "0.02", "0.3"]
    gamma = differs.rows[names.index("method.anchor.gamma")]
    assert [cell.text for cell in gamma[1:]] == ["–", "–", "1.0", "1.0"]
    common = tables["Training settings: common to all"]
    assert common.folded
    assert ["trl.learning_rate", "0.0003"] in common.rows
    assert ["trl.seed", "0"] in common.rows
    assert ["trl", "1.16.0"] in tables["Versions: common to all"].rows


def test_a_setting_that_differs_between_seeds_shows_both():
    runs = [Run(s, {"trl": {"lr": value, "seed": s}}, {}, [], {}) for s, value in enumerate([0.1, 0.2])]
    made = SettingsPanel()(Study("s", "s", "study", [0, 1], {}, [Arm("a", "a", "m", {}, runs)]))
    assert ["trl.lr", "0.1 / 0.2"] in made.items[0].rows


def test_samples_are_evenly_spaced_and_cut(synthetic, tmp_path):
    synthetic.write_evaluation(tmp_path / "e", "mixed", seed=1, num_problems=12, texts=("x" * 50, "y" * 50))
    text = SamplesPanel(problems=3, completions=2, characters=10)(load_study(tmp_path / "e")).items[0]
    # the middles of three equal parts of twelve: 2, 6, 10
    assert [f"mixed-{q:03d}" in text for q in range(12)] == [q in (2, 6, 10) for q in range(12)]
    assert text.count("<pre>") == 3 * 2
    assert "… 40 more characters" in text


def test_the_table_of_a_suite(synthetic, tmp_path):
    synthetic.write_evaluation(tmp_path / "aime24-test", "test", seed=0)
    (tmp_path / "suite.json").write_text(json.dumps(synthetic.SUITE))
    table = dict(panels_of(load_study(tmp_path)))["suite"].items[0]
    assert table.columns == ["benchmark", "problems", "pass@1"]
    assert table.rows == [
        ["AIME 2024", "12", Cell("0.250", "0.125 to 0.500")],
        ["average in distribution, only 1 of 2 sets", "", Cell("0.250", "0.125 to 0.500", mark=True)],
    ]
    assert "temperature 0.3" in table.caption
    assert "Left out: AMC 2023." in table.caption


def test_two_suites_are_one_table_of_both_models(synthetic, tmp_path):
    other = {"pass_at": {"1": {"mean": 0.75, "low": 0.625, "high": 0.875}}}
    better = synthetic.SUITE | {"benchmarks": [synthetic.SUITE["benchmarks"][0] | other]}
    for name, report in (("a", synthetic.SUITE), ("b", better)):
        synthetic.write_evaluation(tmp_path / name / "aime24-test", "test", seed=0, name=f"model-{name}")
        (tmp_path / name / "suite.json").write_text(json.dumps(report))
    folders = [tmp_path / "a", tmp_path / "b"]
    (table,) = dict(panels_of(load_study(folders)))["suite"].items
    assert table.columns == ["model", "AIME 2024", "avg in, only 1 of 2 sets"]
    assert [(row[0].text, row[0].detail) for row in table.rows] == [("model-a", "pass@1"), ("model-b", "pass@1")]
    mean = Cell("0.250", "0.125 to 0.500", mark=True)
    assert [row[1:] for row in table.rows] == [
        [Cell("0.250", "0.125 to 0.500"), mean],
        [Cell("0.750", "0.625 to 0.875"), mean],
    ]
    (tmp_path / "b/suite.json").write_text(json.dumps(better | {"title": "Other"}))
    panel = dict(panels_of(load_study(folders)))["suite"]
    assert [table.heading for table in panel.items] == ["Suite: model", "Other: model"]
    assert "one table each" in panel.note
