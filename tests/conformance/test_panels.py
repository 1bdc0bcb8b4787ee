"""Every registered panel keeps the protocol, on every kind of folder and when its data is missing."""

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from killick.report import load_study
from killick.report.markup import Markup, finite
from killick.report.panels import PANELS
from killick.report.study import Arm, Run, Study
from killick.report.types import Cell, Figure, Panel, Table

_PATH = Path(__file__).parents[1] / "unit" / "report" / "synthetic.py"
_SPEC = importlib.util.spec_from_file_location("killick_test_synthetic", _PATH)
synthetic = importlib.util.module_from_spec(_SPEC)
sys.modules.setdefault("killick_test_synthetic", synthetic)
_SPEC.loader.exec_module(synthetic)

HOSTILE = "<img src=x onerror=alert(1)></script>"


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    root = tmp_path_factory.mktemp("panels")
    texts = (f"{HOSTILE} Case 1: x = 1. Case 2: x = 2.", HOSTILE)
    folder = synthetic.write_study(root / "study", modes=(HOSTILE, "+*/"), texts=texts)
    for seed in (0, 1):
        synthetic.write_journal(folder / f"arms/grpo-0.02/seed{seed}", seed=seed, rule=None)
        synthetic.write_journal(folder / f"arms/grpo-0.3/seed{seed}", seed=seed, rule="dft")
        synthetic.write_journal(folder / f"arms/sage-0.02/seed{seed}", seed=seed, rule="sort")
        synthetic.write_journal(folder / f"arms/sage-0.3/seed{seed}", seed=seed, rule="sort", hostile=HOSTILE)
    index = json.loads((folder / "study.json").read_text())
    for arm in index["arms"]:
        arm["label"] = f"{arm['label']} {HOSTILE}"
    (folder / "study.json").write_text(json.dumps(index))
    suites = {HOSTILE: synthetic.SUITE | {"title": HOSTILE}}
    return {
        "study": dataclasses.replace(load_study(folder), suites=suites),
        "run": load_study(folder / "arms/sage-0.3/seed0"),
        "evaluations": dataclasses.replace(
            load_study([folder / "base/eval/mixed", folder / "arms/sage-0.3/seed0/eval/mixed"]), suites=suites
        ),
    }


@pytest.fixture(params=PANELS.names())
def panel(request):
    return PANELS.build(request.param)


def test_is_a_frozen_dataclass_with_title_and_order(panel):
    assert dataclasses.is_dataclass(panel)
    assert panel.__dataclass_params__.frozen
    assert panel.title
    assert isinstance(panel.order, int)


def test_orders_are_distinct():
    orders = [PANELS.build(name).order for name in PANELS.names()]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize("kind", ["study", "run", "evaluations"])
def test_makes_well_formed_items(panel, studies, kind):
    made = panel(studies[kind])
    if made is None:
        # A run alone has nothing to compare, and evaluations have no training. Anything else must be shown.
        training = {("TrainingPanel", "evaluations"), ("RepairsPanel", "evaluations"), ("RecoveryPanel", "evaluations")}
        alone = {(f"{name}Panel", "run") for name in ("Frontier", "Support", "Suite")}
        assert (type(panel).__name__, kind) in alone | training
        return
    assert isinstance(made, Panel)
    assert made.title
    assert made.items
    for item in made.items:
        assert isinstance(item, Figure | Table | Markup)
        if isinstance(item, Table):
            assert item.rows
            assert {len(row) for row in item.rows} == {len(item.columns)}
            assert all(isinstance(cell, str | Cell) for row in item.rows for cell in row)


def test_figures_are_valid_plotly_and_hold_no_raw_markup(panel, studies):
    from plotly.graph_objects import Figure as PlotlyFigure

    made = panel(studies["study"])
    for item in made.items:
        if not isinstance(item, Figure):
            continue
        data = finite(item.traces)
        PlotlyFigure(data=data, layout=item.layout)  # raises on unknown properties or values
        shown = [text for trace in data for text in _texts(trace)]
        shown += list(_texts(finite(item.layout)))
        # Plotly reads a small HTML dialect; our own <br> and <extra> in hover templates are the only tags allowed.
        tags = [t.replace("<br>", "").replace("<extra>", "").replace("</extra>", "") for t in shown]
        assert not [text for text in tags if "<" in text]


def test_nothing_to_show_gives_none(panel):
    run = Run(seed=0, resolved={}, versions={}, log=[], evaluations={})
    empty = Study("s", "s", "study", [0], {}, [Arm("a", "a", "m", {}, [run])])
    assert panel(empty) is None


def test_same_study_same_panel(panel, studies):
    first, second = panel(studies["study"]), panel(studies["study"])
    assert finite([dataclasses.asdict(first)]) == finite([dataclasses.asdict(second)])


def _texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        # legendgroup and the like are keys, never drawn
        for key, inner in value.items():
            if key != "legendgroup":
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
