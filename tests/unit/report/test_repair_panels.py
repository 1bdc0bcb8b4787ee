"""The panels of repairs and recovery: what is shown, what stands beside it, and that its text is inert."""

import json
import re
import time

import numpy as np
import pytest

from killick.errors import RecordError
from killick.report import load_study, write_report
from killick.report.journal import read_repairs
from killick.report.multiples import Bins
from killick.report.page import render
from killick.report.panels.recovery import RecoveryPanel
from killick.report.panels.repairs import RepairsPanel
from killick.report.panels.training import TrainingPanel, over_seeds
from killick.report.study import Arm, Run, Study
from killick.report.token_view import chosen, token_view
from killick.report.types import Figure, Table

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\"'><style>"


def one_arm(*runs, name="a"):
    arm = Arm(name, name, "m", {}, list(runs))
    return Study("s", "s", "study", list(range(len(runs))), {}, [arm])


def run_of(folder, seed=0, log=()):
    return Run(seed, {}, {}, list(log), {}, folder)


def table_of(synthetic, folder, lifts, uids=None):
    """Repairs at steps 0, 1, 2 ... of two tokens, the first with the given lift (p_base 0.01), the second with 1."""
    rows = [
        synthetic.repair_row(step, uids[step] if uids else f"u{step}", ["x", "y"], [0.01, 0.5], [0.01 * lift**2, 0.5])
        for step, lift in enumerate(lifts)
    ]
    return read_repairs(synthetic.write_rows(folder / "repairs.jsonl", rows))


def test_half_of_the_choice_is_spread_over_training_half_lifts_most(synthetic, tmp_path):
    lifts = [1.0] * 12
    lifts[3], lifts[8], lifts[11] = 3.0, 5.0, 2.0
    # middles of two equal parts of twelve: 3 and 9; then the highest lifts among other prompts: 8 and 11
    assert chosen(table_of(synthetic, tmp_path, lifts), 4) == [3, 9, 8, 11]
    uids = [f"u{i}" for i in range(12)]
    uids[8] = "u9"  # the prompt is shown already
    assert chosen(table_of(synthetic, tmp_path, lifts, uids), 3) == [3, 9, 11]
    assert chosen(table_of(synthetic, tmp_path, [1.0]), 8) == [0]


def test_cards_know_their_place_in_every_order(synthetic, tmp_path):
    rows = [
        # mean lifts 2.0, 1.5, 1.75; highest 3, 2, 2.5 -> by mean and by highest: 0, 2, 1; steps 9, 4, 6
        synthetic.repair_row(9, "a", ["x", "y"], [0.1, 0.5], [0.9, 0.5]),
        synthetic.repair_row(4, "b", ["x", "y"], [0.1, 0.5], [0.4, 0.5]),
        synthetic.repair_row(6, "c", ["x", "y"], [0.1, 0.5], [0.625, 0.5]),
    ]
    table = read_repairs(synthetic.write_rows(tmp_path / "repairs.jsonl", rows))
    view = token_view([("arm", table)], 3)
    found = re.findall(r'style="--by-step:(\d);--by-mean:(\d);--by-max:(\d)"><figcaption>step (\d)', view)
    assert {step: places for *places, step in found} == {
        "9": ["2", "0", "0"],
        "4": ["0", "2", "2"],
        "6": ["1", "1", "1"],
    }


def test_a_token_shows_its_numbers_and_colours(synthetic, tmp_path):
    # sqrt(0.04 * 0.64) = 0.16; salience log 16 = 2.77 of 3 nats, then log(1/9) = -2.197 of 3
    row = synthetic.repair_row(1, "a", ["x", "\n"], [0.04, 0.9], [0.64, 0.1], fallback="too_long")
    view = token_view([("arm", read_repairs(synthetic.write_rows(tmp_path / "r.jsonl", [row])))], 1)
    numbers = "p_base 0.04 · p_plan 0.64\nsalience +2.77 nats\nweight 0.16 · lift 4.00"
    assert f'<span class="token" style="--s:0.92;--w:0.16" title="{numbers}">x</span>' in view
    assert (
        '--s:-0.73;--w:0.30" title="p_base 0.9 · p_plan 0.1\nsalience −2.20 nats\nweight 0.3 · lift 0.33">↵\n<' in view
    )
    assert "-4*20+\n(not used: it was too long)" in view
    assert "lift 2.17 on average, 4.00 at most · weight 0.23 on average" in view


def test_long_texts_are_cut(synthetic, tmp_path):
    row = synthetic.repair_row(1, "u" * 100, ["t" * 90] * 500, [0.5] * 500, [0.5] * 500, plan="p" * 9000)
    view = token_view([("arm", read_repairs(synthetic.write_rows(tmp_path / "r.jsonl", [row])))], 1)
    for said in ("… 100 more tokens", "… 50 more characters", "… 7,500 more characters", "… 20 more characters"):
        assert said in view
    assert view.count('class="token"') == 400 + 10  # with the legend


def test_hostile_text_stays_text(synthetic, tmp_path):
    synthetic.write_run(tmp_path / "r", seed=0, beta=0.02, method="sort")
    rows = [
        synthetic.repair_row(
            step,
            HOSTILE,
            [HOSTILE, "\ud800", ""],
            [0.5] * 3,
            [0.6] * 3,
            problem=HOSTILE,
            plan=HOSTILE,
            fallback="empty",
        )
        for step in range(3)
    ]
    synthetic.write_rows(tmp_path / "r/repairs.jsonl", rows)
    synthetic.write_rows(tmp_path / "r/groups.jsonl", [{"step": 0, "uid": HOSTILE, "num_right": 0, "num_rows": 8}])
    page = write_report(tmp_path / "r").read_text(encoding="utf-8")
    section = page[page.index('<section id="repairs">') : page.index('<section id="recovery">')]
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in section
    assert not re.search(r"<(script|img|style)", section)
    assert set(re.findall(r"<(\w+)", section)) <= {
        "section", "h2", "h3", "p", "div", "table", "thead", "tbody", "tr", "th", "td", "small", "span", "input",
        "label", "details", "summary", "figure", "figcaption", "b", "pre",
    }  # fmt: skip
    assert page.count("<script") == 3  # the figures, plotly, ours


def test_bars_hold_the_means_of_decisions_and_routine(synthetic, tmp_path):
    # 3+4=7: decisions are the 3 and the +, with lifts 2 and 4; all else has lift 1 but the end of turn, 0.5.
    row = synthetic.repair_row(
        1, "a", [*"3+4=7", "<eos>"], [0.1, 0.05, 0.5, 0.5, 0.5, 0.8], [0.4, 0.8, 0.5, 0.5, 0.5, 0.2]
    )
    synthetic.write_rows(tmp_path / "repairs.jsonl", [row])
    study = one_arm(run_of(tmp_path))
    panel = RepairsPanel()(study)
    bars = next(item for item in panel.items if isinstance(item, Figure) and item.heading.startswith("Decisions"))
    lift, salience, p_base, weight = bars.traces
    assert lift["x"] == ["decisions", "routine"]
    assert lift["base"] == 1.0
    assert lift["y"] == pytest.approx([3.0 - 1, 3.5 / 4 - 1])
    assert salience["y"] == pytest.approx([np.log(4 * 16) / 2, np.log(0.25) / 4])
    assert p_base["y"] == pytest.approx([0.075, 2.3 / 4])
    assert weight["y"] == pytest.approx([0.2, 1.9 / 4])
    table = panel.items[0]
    shown = dict(zip(table.columns, table.rows[0], strict=True))
    assert shown["weight on decisions"].text == f"{0.4 / 2.3:.3f}"
    assert shown["tokens with lift > 1.5"].text == f"{2 / 6:.3f}"


def test_other_references_have_no_bars(synthetic, tmp_path):
    table_of(synthetic, tmp_path, [2.0, 1.0])
    panel = RepairsPanel()(one_arm(run_of(tmp_path)))
    assert [i.heading for i in panel.items if isinstance(i, Figure | Table)] == [
        "Repairs of each arm",
        "Repairs over training",
    ]
    assert {trace["yaxis"] for trace in panel.items[-1].traces} == {"y", "y2", "y3", "y4"}


def test_repairs_over_training_are_binned_by_step(synthetic, tmp_path):
    # 40 steps in 20 bins of two; tokens of lift 3 and 1, then 1 and 1
    table_of(synthetic, tmp_path, [3.0, 1.0] * 20)
    figure = RepairsPanel()(one_arm(run_of(tmp_path))).items[-1]
    (lift,) = [trace for trace in figure.traces if trace["yaxis"] == "y2"]
    assert lift["x"].tolist() == [0.5 + 2 * i for i in range(20)]
    assert lift["y"] == pytest.approx([1.5] * 20)


def test_bins_are_never_narrower_than_a_step():
    bins = Bins.over([np.array([3, 5]), np.array([4])])
    assert bins.centres.tolist() == [3, 4, 5]
    found = bins.ratio(np.array([3, 5, 5]), np.array([1, 2, 4]), np.array([2, 2, 2]))
    assert found.tolist()[::2] == [0.5, 1.5]
    assert np.isnan(found[1])
    # only bins in which every seed has a number, and only seeds that have any
    nothing = np.full(3, np.nan)
    steps, values = bins.curve([found, np.array([np.nan, 1.0, 2.0]), nothing])
    assert (steps.tolist(), values.tolist()) == ([5], [[1.5], [2.0]])
    assert bins.curve([nothing]).steps.size == 0


def test_recovery_shows_every_arm_with_groups(synthetic, tmp_path):
    keys = ("step", "uid", "num_right")
    groups = [(0, "a", 0), (1, "b", 0), (2, "a", 1), (3, "b", 0)]
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    synthetic.write_rows(
        tmp_path / "x/groups.jsonl", [dict(zip(keys, g, strict=True)) | {"num_rows": 4} for g in groups]
    )
    study = one_arm(run_of(tmp_path / "x", 0), run_of(tmp_path / "y", 1))
    arms, seeds, curves = RecoveryPanel()(study).items
    shown = dict(zip(arms.columns, arms.rows[0], strict=True))
    # thirds of steps 0..3: {0, 1}, {2}, {3}
    assert shown["failed groups, first third"].text == "1.000"
    assert shown["failed groups, last third"].text == "1.000"
    assert shown["recovered of those seen again"].text == "0.500"
    assert shown["runs"] == "1"  # the other seed recorded nothing
    assert seeds.rows[0][1:] == ["0", "4", "2", "2", "2", "1", "1.000", "1.000", "0.500"]
    failed, recovered = curves.traces
    assert failed["y"].tolist() == [1, 1, 0, 1]
    # no prompt is seen again before step 2; the curve ends at the number of the table
    assert (recovered["x"].tolist(), recovered["y"].tolist()) == ([2, 3], [1.0, 0.5])


def test_damage_is_named_when_the_page_is_made(synthetic, tmp_path):
    synthetic.write_run(tmp_path / "r", seed=0, beta=0.02, method="sort")
    (tmp_path / "r/repairs.jsonl").write_text("{}\n")
    with pytest.raises(RecordError, match=r"repairs\.jsonl, line 1, is damaged"):
        write_report(tmp_path / "r")


def test_curves_of_repairs_are_shown_when_logged(tmp_path):
    log = [{"step": step, "sort/buffer_num": step, "sort/lift_mean": 1.5} for step in range(5)]
    figure = TrainingPanel()(one_arm(run_of(tmp_path, log=log))).items[0]
    headings = [annotation["text"] for annotation in figure.layout["annotations"]]
    assert headings == ["failed prompts waiting for repair", "lift ω / p_base, mean"]


def test_numbers_logged_at_other_steps_by_every_seed_are_binned(tmp_path):
    even = [{"step": step, "sort/loss": 1.0} for step in range(0, 40, 2)]
    odd = [{"step": step, "sort/loss": 3.0} for step in range(1, 40, 2)]
    study = one_arm(run_of(tmp_path, 0, even), run_of(tmp_path, 1, odd))
    steps, values = over_seeds(study.arms[0], "sort/loss", 5)
    # 20 bins of two steps, each with one step of either seed
    assert steps.tolist() == [0.5 + 2 * i for i in range(20)]
    assert values.tolist() == [[1.0] * 20, [3.0] * 20]


def test_many_repairs_are_read_and_shown_in_seconds(synthetic, tmp_path):
    synthetic.write_run(tmp_path / "r", seed=0, beta=0.02, method="sort")
    rng = np.random.default_rng(0)
    tokens = [*"7-3=4;5*4=20;20+2=22", "<eos>"]
    p = np.round(rng.uniform(0.01, 1, (100, 2, len(tokens))), 4).tolist()
    rows = [
        json.dumps(synthetic.repair_row(i // 20, f"u{i}", tokens, *p[i % 100], problem=f"problem {i}"))
        for i in range(20_000)
    ]
    (tmp_path / "r/repairs.jsonl").write_text("\n".join(rows) + "\n")
    started = time.process_time()  # other work on the machine does not count
    page = render(load_study(tmp_path / "r"))
    assert time.process_time() - started < 20  # 1.5 s where it was written
    from plotly.offline import get_plotlyjs

    assert len(page) - len(get_plotlyjs()) < 200_000
    assert len(set(re.findall(r"problem \d+", page))) == 8
