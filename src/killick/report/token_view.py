"""Repairs as people read them: the reference solution with every token coloured by what the repair made of it.

Order and colour are switched by style rules alone (`page.css`): the page runs no script for it, and every text here
was written by a model or a data set and is escaped.
"""

from collections.abc import Sequence

import numpy as np

from killick.report.journal import FALLBACKS, Repair, RepairTable
from killick.report.markup import Markup, element, number, signed

FULL_SALIENCE = 3.0  # nats at which a colour is full: a lift of 4.5, or 1 / 4.5
MAX_TOKENS = 400
MAX_TOKEN_CHARS = 40
MAX_CHARS = 1500
_REASONS = dict(zip(FALLBACKS, ("it was empty", "it did not end in time", "it was too long"), strict=True))

# One set of switches for the whole section; the ids are the ones of page.css.
CONTROLS = Markup(
    '<span>Order by</span><input type="radio" name="repair-order" id="repair-by-step" checked>'
    '<label for="repair-by-step">step</label>'
    '<input type="radio" name="repair-order" id="repair-by-mean"><label for="repair-by-mean">mean lift</label>'
    '<input type="radio" name="repair-order" id="repair-by-max"><label for="repair-by-max">highest lift</label>'
    '<span>Colour by</span><input type="radio" name="repair-colour" id="repair-salience" checked>'
    '<label for="repair-salience">salience</label>'
    '<input type="radio" name="repair-colour" id="repair-weight"><label for="repair-weight">weight ω</label>'
)


def chosen(table: RepairTable, count: int) -> list[int]:
    """Which repairs to show: half of them spread evenly over training, then those of highest mean lift.

    Spread: the middles of equal parts of the repairs in order of their step. Highest: other prompts only, one each.
    """
    order = np.argsort(table.step_M, kind="stable")
    spread = count - count // 2
    found = list(dict.fromkeys(int(order[(2 * i + 1) * len(order) // (2 * spread)]) for i in range(spread)))
    uids = {table.uids[index] for index in found}
    for index in np.argsort(-_mean_lift(table), kind="stable"):
        if len(found) >= count:
            break
        if table.uids[index] not in uids:
            found.append(int(index))
            uids.add(table.uids[index])
    return found


def token_view(arms: Sequence[tuple[str, RepairTable]], count: int) -> Markup:
    """Up to `count` repairs of each (label, table), with switches and a legend; the first arm with plans is open."""
    planned = [place for place, (_, table) in enumerate(arms) if np.isfinite(table.plan_chars_M).any()]
    shown = planned[0] if planned else 0
    blocks = [
        element(
            "details",
            element("summary", label),
            _cards(table, chosen(table, count)),
            class_="arm",
            open="" if place == shown else None,
        )
        for place, (label, table) in enumerate(arms)
    ]
    return element("div", CONTROLS, _legend(), *blocks, class_="repairs-view")


def _mean_lift(table: RepairTable) -> np.ndarray:
    sums_M, counts_M = table.per_repair(table.lift_R)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums_M / counts_M)


def _legend() -> Markup:
    salience = [_token(signed(x * FULL_SALIENCE, 1), x, 0.0, None) for x in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    weight = [_token(f"{w:.1f}", 0.0, w, None) for w in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return element(
        "p",
        element("span", "salience, nats: blue, the plan makes it less likely; orange, more: ", *salience, class_="s"),
        element("span", "weight ω: ", *weight, class_="w"),
        class_="legend",
    )


def _cards(table: RepairTable, indices: list[int]) -> Markup:
    lift = [table.lift_R[table.offset_M1[i] : table.offset_M1[i + 1]] for i in indices]
    mean = [float(np.nanmean(row)) if np.isfinite(row).any() else 0.0 for row in lift]
    most = [float(np.nanmax(row)) if np.isfinite(row).any() else 0.0 for row in lift]
    places = [
        _places([int(table.step_M[i]) for i in indices]),
        _places([-x for x in mean]),
        _places([-x for x in most]),
    ]
    cards = [
        _card(
            table,
            index,
            (mean[i], most[i]),
            f"--by-step:{places[0][i]};--by-mean:{places[1][i]};--by-max:{places[2][i]}",
        )
        for i, index in enumerate(indices)
    ]
    return element("div", *cards, class_="cards")


def _places(keys: Sequence[float]) -> list[int]:
    """Place of each key in ascending order; equal keys keep theirs."""
    places = [0] * len(keys)
    for place, index in enumerate(sorted(range(len(keys)), key=lambda i: keys[i])):
        places[index] = place
    return places


def _card(table: RepairTable, index: int, lift: tuple[float, float], style: str) -> Markup:
    repair = table.repair(index)
    start, end = int(table.offset_M1[index]), int(table.offset_M1[index + 1])
    weight = float(table.weight_R[start:end].mean())
    facts = (
        f"step {table.step_M[index]}, failed at {table.failed_at_M[index]} · {_cut(table.uids[index], 80)} · "
        f"lift {number(lift[0], 2)} on average, {number(lift[1], 2)} at most · weight {number(weight, 2)} on average"
    )
    shown = min(end - start, MAX_TOKENS)
    tokens = [_numbered(table, start + i, repair.tokens[i]) for i in range(shown)]
    rest = f" … {end - start - shown:,} more tokens" if end - start > shown else ""
    return element(
        "figure",
        element("figcaption", facts),
        element("div", element("b", "Problem"), element("pre", _cut(repair.problem, MAX_CHARS))),
        element("div", element("b", "Plan"), element("pre", _plan(repair))),
        element("div", element("b", "Reference"), element("pre", *tokens, rest)),
        class_="repair",
        style=style,
    )


def _plan(repair: Repair) -> str:
    if repair.plan is None:
        return f"(none: {_REASONS[repair.fallback]})" if repair.fallback else "(none asked for)"
    unused = f"\n(not used: {_REASONS[repair.fallback]})" if repair.fallback else ""
    return _cut(repair.plan, MAX_CHARS) + unused


def _numbered(table: RepairTable, place: int, text: str) -> Markup:
    salience, weight = float(table.salience_R[place]), float(table.weight_R[place])
    title = (
        f"p_base {table.p_base_R[place]:.3g} · p_plan {table.p_plan_R[place]:.3g}\n"
        f"salience {signed(salience, 2)} nats\nweight {weight:.3g} · lift {number(float(table.lift_R[place]), 2)}"
    )
    colour = 0.0 if np.isnan(salience) else min(max(salience / FULL_SALIENCE, -1.0), 1.0)
    return _token(_visible(text), colour, min(weight, 1.0), title)


def _token(text: str, salience: float, weight: float, title: str | None) -> Markup:
    return element("span", text, class_="token", style=f"--s:{salience:.2f};--w:{weight:.2f}", title=title)


def _visible(token: str) -> str:
    """A token without width would have no colour to see and no place to point at."""
    return _cut(token, MAX_TOKEN_CHARS).replace("\n", "↵\n") or "∅"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + f"… {len(text) - limit:,} more characters"
