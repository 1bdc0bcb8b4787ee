"""Repairs: which tokens of the reference solutions were learnt, and how strongly."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from killick.evaluate.estimators import Interval
from killick.report.journal import ROLES, RepairTable
from killick.report.markup import Markup, number, plot_text
from killick.report.multiples import Bins, Curve, Multiple, multiples, plot_heading
from killick.report.palette import arm_styles
from killick.report.ratios import HOW, mean_ratio, ratio_interval
from killick.report.repairs import HIGH_LIFT, QUANTITIES, decision_mask, share_ratios, token_ratio
from killick.report.study import Arm, Study
from killick.report.token_view import token_view
from killick.report.types import Cell, Figure, Panel, Table

# Quantity -> heading, and the value a bar starts from: the one without a plan, that is DFT, where there is one.
BARS = {
    "lift": ("lift ω / p_base (line: DFT)", 1.0),
    "salience": ("salience (nats)", 0.0),
    "p_base": ("p_base", 0.0),
    "weight": ("weight ω", 0.0),
}
SIDES = ("decisions", "routine")


class Repaired(NamedTuple):
    """An arm with the tables of its runs that have repairs."""

    arm: Arm
    tables: list[RepairTable]


@dataclass(frozen=True)
class RepairsPanel:
    """Reference solutions token by token, decisions against routine, and weights over training.

    Attributes:
        shown: repairs shown of each arm, from its first seed that has any.
    """

    title: str = "Repairs"
    order: int = 44
    shown: int = 8

    def __call__(self, study: Study) -> Panel | None:
        """Tokens, figures and a table; None when no run has repairs."""
        found = [Repaired(arm, tables) for arm in study.arms if (tables := _tables(arm))]
        if not found:
            return None
        view = token_view([(repaired.arm.label, repaired.tables[0]) for repaired in found], self.shown)
        items: list[Figure | Table | Markup] = [_table(study, found), view]
        chains = [Repaired(arm, tables) for arm, tables in found if all(t.role_R is not None for t in tables)]
        if chains:
            items += [_bars(study, chains), _roles(study, chains)]
        note = (
            "A prompt whose completions all failed is repaired by learning its reference solution, each token with a "
            "weight ω. p_base is the probability of the token, p_plan the same with the plan in the prompt; salience "
            "is log p_plan − log p_base, lift is ω / p_base: for SORT exp(salience / 2), for DFT 1. Point at a token "
            f"for its numbers. Of each arm {self.shown} repairs are shown: half spread evenly over training, half with "
            "the highest mean lift among other prompts. Numbers are of the repairs a run recorded."
        )
        return Panel(self.title, [*items, _over_training(study, found)], note)


def _tables(arm: Arm) -> list[RepairTable]:
    return [run.repairs for run in arm.runs if run.repairs is not None]


def _table(study: Study, found: list[Repaired]) -> Table:
    styles = arm_styles(study)
    rows: list[list[Cell | str]] = []
    for arm, tables in found:
        shares = [share_ratios(table) for table in tables]
        intervals = [ratio_interval([token_ratio(table, name) for table in tables]) for name in ("weight", "lift")]
        names = ("lift_high_frac", "decision_weight_frac", "plan_fallback_frac")
        intervals += [ratio_interval([share[name] for share in shares]) for name in names]
        prompts = [len(set(table.uids)) for table in tables]
        rows.append(
            [
                Cell(arm.label, colour=styles[arm.name].colour),
                number(sum(map(len, tables)) / len(tables), 1),
                number(sum(prompts) / len(prompts), 1),
                *map(_interval, intervals),
                str(len(tables)),
            ]
        )
    columns = ["model", "repairs per run", "distinct prompts per run", "mean weight", "mean lift"]
    columns += [f"tokens with lift > {HIGH_LIFT}", "weight on decisions", "plans not used", "runs"]
    caption = (
        f"Means are over tokens; {HOW}. Weight on decisions: share of the weight that falls on tokens that decide how "
        "a countdown chain goes on; known only where every token is a character of such a chain."
    )
    return Table("Repairs of each arm", columns, rows, caption=caption)


def _interval(interval: Interval | None) -> Cell:
    if interval is None:
        return Cell("–")
    return Cell(number(interval.mean), f"{number(interval.low)} to {number(interval.high)}")


def _sides(table: RepairTable) -> list[np.ndarray]:
    """Masks of decisions and of all other tokens."""
    decides_R = decision_mask(table)
    assert decides_R is not None, "only tables of chains are asked for their sides"
    return [decides_R, ~decides_R]


def _bars(study: Study, chains: list[Repaired]) -> Figure:
    styles = arm_styles(study)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"barmode": "group", "annotations": [], "shapes": []}
    layout["legend"] = {"orientation": "h", "x": 0, "y": 1.14, "yanchor": "bottom"}
    for place, (quantity, (heading, base)) in enumerate(BARS.items()):
        axis = "" if place == 0 else str(place + 1)
        left, right = place / len(BARS) + 0.03 * (place > 0), (place + 1) / len(BARS) - 0.02
        layout[f"xaxis{axis}"] = {"domain": [left, right], "anchor": f"y{axis}"}
        layout[f"yaxis{axis}"] = {"domain": [0, 0.98], "anchor": f"x{axis}"}
        layout["annotations"].append(plot_heading(heading, left, 1.0))
        line = {"color": "#8a8a8a", "width": 1, "dash": "dot"}
        layout["shapes"].append(
            {"type": "line", "xref": f"x{axis} domain", "yref": f"y{axis}", "x0": 0, "x1": 1, "y0": base, "y1": base}
            | {"line": line}
        )
        for arm, tables in chains:
            found = [
                ratio_interval([token_ratio(table, quantity, _sides(table)[side]) for table in tables])
                for side in range(len(SIDES))
            ]
            bars = [(name, interval) for name, interval in zip(SIDES, found, strict=True) if interval is not None]
            shared = {"xaxis": f"x{axis}", "yaxis": f"y{axis}", "showlegend": place == 0}
            traces.append(_bar(arm, bars, base, styles[arm.name].colour) | shared)
    caption = (
        "Decisions: operators, and digits of operands where the values at hand leave a choice. Routine: digits of "
        "operands that are forced, results, separators, end of turn. Bars of lift start at 1, the lift of DFT; the "
        f"mean over tokens is drawn; {HOW}."
    )
    return Figure("Decisions against routine", traces, layout, height=380, caption=caption, min_width=760)


def _bar(arm: Arm, bars: list[tuple[str, Interval]], base: float, colour: str) -> dict[str, Any]:
    name = plot_text(arm.label)
    return {
        "type": "bar",
        "name": name,
        "legendgroup": arm.name,
        "offsetgroup": arm.name,
        "x": [side for side, _ in bars],
        "y": [interval.mean - base for _, interval in bars],
        "base": base,
        "customdata": [[i.mean, i.low, i.high] for _, i in bars],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [i.high - i.mean for _, i in bars],
            "arrayminus": [i.mean - i.low for _, i in bars],
            "color": "#8a8a8a",  # seen on white and on dark
            "thickness": 1.5,
            "width": 3,
        },
        "marker": {"color": colour},
        "hovertemplate": (
            "%{x}: %{customdata[0]:.3f}<br>interval %{customdata[1]:.3f} to %{customdata[2]:.3f}"
            f"<extra>{name}</extra>"
        ),
    }


def _roles(study: Study, chains: list[Repaired]) -> Table:
    styles = arm_styles(study)
    rows: list[list[Cell | str]] = []
    for arm, tables in chains:
        for code, role in enumerate(ROLES):
            masks = [(table, np.asarray(table.role_R == code)) for table in tables]
            means = [mean_ratio([token_ratio(table, name, mask_R) for table, mask_R in masks]) for name in QUANTITIES]
            num = sum(int(mask_R.sum()) for _, mask_R in masks)
            cells = [role, f"{num:,}", *(number(mean) for mean in means)]
            rows.append([Cell(arm.label, colour=styles[arm.name].colour), *cells])
    columns = ["model", "role of the token", "tokens", *(f"mean {name}" for name in QUANTITIES)]
    return Table(
        "Roles of tokens", columns, rows, caption="Salience in nats; means over tokens, then seeds.", folded=True
    )


def _over_training(study: Study, found: list[Repaired]) -> Figure:
    bins = Bins.over([table.step_M for _, tables in found for table in tables])
    plots = [
        Multiple("weight ω, mean over tokens", _curves(bins, lambda table: token_ratio(table, "weight"))),
        Multiple("lift ω / p_base, mean over tokens", _curves(bins, lambda table: token_ratio(table, "lift"))),
        Multiple("plans not used", _curves(bins, lambda table: share_ratios(table)["plan_fallback_frac"])),
        Multiple(
            "length of the plan (characters)", _curves(bins, lambda table: share_ratios(table)["plan_chars_mean"])
        ),
    ]
    caption = "Means in equal bins of steps; bands run from the lowest to the highest seed."
    return multiples(study, "Repairs over training", plots, caption)


def _curves(bins: Bins, ratio: Any) -> Any:
    def curve(arm: Arm) -> Curve:
        tables = _tables(arm)
        ratios = [ratio(table) for table in tables]
        return bins.curve([bins.ratio(t.step_M, r.num, r.den) for t, r in zip(tables, ratios, strict=True)])

    return curve
