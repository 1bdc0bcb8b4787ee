"""The numbers of repairs and of recovery: what `summary.json` stores and the panels show.

A *repair* is one reference solution learnt token by token after its prompt failed. A prompt *fails* when every
completion of its group is wrong; it *recovers* when a group of a later step holds a right one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from killick.nano.roles import DECISIONS
from killick.report.journal import ROLES, GroupTable, RepairTable
from killick.report.ratios import Ratio, mean_ratio
from killick.report.study import Run

HIGH_LIFT = 1.5
QUANTITIES = ("lift", "salience", "p_base", "weight")


def repair_summary(run: Run) -> dict[str, Any] | None:
    """The repairs of one run in numbers; None when it has none.

    Returns:
        JSON-able. `num_repairs` counts recorded repairs. Means are over tokens: `lift_mean`, `salience_mean` (nats),
        `p_base_mean`, `weight_mean`; `lift_high_frac` is the share of tokens with lift > 1.5. `plan_fallback_frac` and
        `plan_chars_mean` are None when no plan was asked for. `decision_weight_frac` and `roles` are None unless the
        references are countdown chains, a token a character.
    """
    table = run.repairs
    if table is None:
        return None
    summary: dict[str, Any] = {
        "num_repairs": len(table),
        "num_prompts": len(set(table.uids)),
        "num_tokens": int(table.offset_M1[-1]),
    }
    summary |= {f"{name}_mean": mean_ratio([token_ratio(table, name)]) for name in QUANTITIES}
    summary |= {name: mean_ratio([ratio]) for name, ratio in share_ratios(table).items()}
    roles = None
    if table.role_R is not None:
        masks = {role: table.role_R == code for code, role in enumerate(ROLES)}
        roles = {role: _role(table, mask_R) for role, mask_R in masks.items() if mask_R.any()}
    return summary | {"roles": roles}


def _role(table: RepairTable, mask_R: np.ndarray) -> dict[str, Any]:
    means = {f"{name}_mean": mean_ratio([token_ratio(table, name, mask_R)]) for name in QUANTITIES}
    return {"num_tokens": int(mask_R.sum()), **means}


def token_ratio(table: RepairTable, quantity: str, mask_R: Bool[np.ndarray, " R"] | None = None) -> Ratio:
    """Mean of one of QUANTITIES over the tokens of the mask, or over all."""
    return Ratio(table.uids, *table.per_repair(getattr(table, f"{quantity}_R"), mask_R))


def share_ratios(table: RepairTable) -> dict[str, Ratio]:
    """The shares of a run's repairs, by the name they have in a summary."""
    high_R = np.where(np.isnan(table.lift_R), np.nan, table.lift_R > HIGH_LIFT)
    has_plan_M = np.isfinite(table.plan_chars_M)
    ratios = {
        "lift_high_frac": Ratio(table.uids, *table.per_repair(high_R)),
        "plan_fallback_frac": Ratio(table.uids, table.fallback_M, has_plan_M | table.fallback_M),
        "plan_chars_mean": Ratio(table.uids, np.nan_to_num(table.plan_chars_M), has_plan_M),
    }
    decides_R = decision_mask(table)
    weight_M, _ = table.per_repair(table.weight_R)
    decided_M = np.zeros(len(table)) if decides_R is None else table.per_repair(table.weight_R, decides_R)[0]
    ratios["decision_weight_frac"] = Ratio(table.uids, decided_M, weight_M * (decides_R is not None))
    return ratios


def decision_mask(table: RepairTable) -> Bool[np.ndarray, " R"] | None:
    """True on tokens that decide how a countdown chain goes on; None when the references are no such chains."""
    if table.role_R is None:
        return None
    return np.isin(table.role_R, [ROLES.index(role) for role in DECISIONS])


@dataclass(frozen=True)
class History:
    """What became of the prompts of one run, Q of them; a step is infinite when it never came.

    Attributes:
        uids: problems, sorted.
        failed_Q: step of the first group without a right completion.
        again_Q: first step after that one at which the prompt was drawn again.
        recovered_Q: first step after it whose group holds a right completion.
        visits_Q: groups after it.
    """

    uids: tuple[str, ...]
    failed_Q: Float[np.ndarray, " Q"]
    again_Q: Float[np.ndarray, " Q"]
    recovered_Q: Float[np.ndarray, " Q"]
    visits_Q: Float[np.ndarray, " Q"]

    def recovered(self, until: float = np.inf) -> Ratio:
        """Of the failed prompts drawn again up to a step, those recovered up to it."""
        return Ratio(self.uids, (self.recovered_Q <= until) & np.isfinite(self.recovered_Q), self._again(until))

    def _again(self, until: float) -> np.ndarray:
        again: np.ndarray = (self.again_Q <= until) & np.isfinite(self.again_Q)
        return again


def history(table: GroupTable) -> History:
    """The visits of a run, prompt by prompt. A second group at the step of the first failure is no later visit."""
    uids, owner_M = np.unique(np.array(table.uids, dtype=object), return_inverse=True)
    steps = {name: np.full(len(uids), np.inf) for name in ("failed", "again", "recovered")}
    failed_M = table.failed_M
    np.minimum.at(steps["failed"], owner_M[failed_M], table.step_M[failed_M])
    later_M = table.step_M > steps["failed"][owner_M]
    solved_M = later_M & ~failed_M
    np.minimum.at(steps["again"], owner_M[later_M], table.step_M[later_M])
    np.minimum.at(steps["recovered"], owner_M[solved_M], table.step_M[solved_M])
    visits_Q = np.bincount(owner_M[later_M], minlength=len(uids)).astype(float)
    return History(tuple(uids.tolist()), steps["failed"], steps["again"], steps["recovered"], visits_Q)


def failed_ratio(table: GroupTable, third: int | None = None) -> Ratio:
    """Share of groups without a right completion, of all or in one third (0, 1, 2) of the steps from first to last."""
    first = table.step_M.min()
    third_M = 3 * (table.step_M - first) // (table.step_M.max() - first + 1)
    counted_M = np.ones(len(table.uids), dtype=bool) if third is None else third_M == third
    return Ratio(table.uids, table.failed_M & counted_M, counted_M)


def recovery(run: Run) -> dict[str, Any] | None:
    """What became of the prompts that failed, in numbers; None when the run recorded no groups.

    Returns:
        JSON-able: counts of groups and prompts; shares of failed groups over all steps and over their first and last
        third; `num_failed_prompts` failed at least once, `num_seen_again` of those were drawn at a later step,
        `num_recovered` of those had a right completion at a later step; `recovered_frac` is the share of the last two,
        `later_visits_mean` the groups per prompt seen again. A share of nothing is None.
    """
    table = run.groups
    if table is None:
        return None
    found = history(table)
    again_Q = np.isfinite(found.again_Q)
    return {
        "num_groups": len(table.uids),
        "num_prompts": len(found.uids),
        "failed_frac": mean_ratio([failed_ratio(table)]),
        "failed_first_third_frac": mean_ratio([failed_ratio(table, 0)]),
        "failed_last_third_frac": mean_ratio([failed_ratio(table, 2)]),
        "num_failed_prompts": int(np.isfinite(found.failed_Q).sum()),
        "num_seen_again": int(again_Q.sum()),
        "num_recovered": int(np.isfinite(found.recovered_Q).sum()),
        "recovered_frac": mean_ratio([found.recovered()]),
        "later_visits_mean": mean_ratio([Ratio(found.uids, found.visits_Q, again_Q)]),
    }
