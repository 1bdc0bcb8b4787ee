"""What a training run wrote about its groups and repairs (`groups.jsonl`, `repairs.jsonl`), as arrays.

Axes: M records in file order; R reference tokens of all repairs, end to end. Texts stay on disk until a panel asks for
a few of them.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from killick.errors import RecordError
from killick.nano.roles import Role, roles_of
from killick.report.files import Line, object_at, objects

GROUPS_FILE, REPAIRS_FILE = "groups.jsonl", "repairs.jsonl"
FALLBACKS = ("empty", "truncated", "too_long")
ROLES = ("operand", "operator", "forced", "result", "separator", "end of turn")
_PROBABILITIES = ("p_base", "p_plan", "weight")
_MOST = 2**53  # counts stay exact as floats
_MAX_P = 1.001  # a log-softmax in low precision may end a little above 0


@dataclass(frozen=True)
class Repair:
    """The texts of one repair.

    Attributes:
        problem: last turn of the prompt.
        plan: as written, used or not; None when there is none.
        fallback: why the plan was not used, or None.
        tokens: of the reference; the last ends the turn.
    """

    problem: str
    plan: str | None
    fallback: str | None
    tokens: list[str]


@dataclass(frozen=True)
class RepairTable:
    """All repairs of a run.

    Attributes:
        path: the file.
        start_M: first byte of each record.
        step_M: optimiser steps finished when it was made.
        failed_at_M: likewise when the group failed.
        uids: problems.
        plan_chars_M: length of the plan, NaN where there is none.
        fallback_M: a plan was asked for and is not used.
        offset_M1: tokens of repair m are `offset_M1[m]` to `offset_M1[m + 1]` of the arrays below.
        p_base_R: probability of the reference token.
        p_plan_R: the same with the plan in the prompt.
        weight_R: factor on its -log p_base.
        role_R: index into ROLES; None unless every reference is a chain of countdown steps, a token a character.
    """

    path: Path
    start_M: Int[np.ndarray, " M"]
    step_M: Int[np.ndarray, " M"]
    failed_at_M: Int[np.ndarray, " M"]
    uids: tuple[str, ...]
    plan_chars_M: Float[np.ndarray, " M"]
    fallback_M: Bool[np.ndarray, " M"]
    offset_M1: Int[np.ndarray, " M+1"]
    p_base_R: Float[np.ndarray, " R"]
    p_plan_R: Float[np.ndarray, " R"]
    weight_R: Float[np.ndarray, " R"]
    role_R: Int[np.ndarray, " R"] | None

    def __len__(self) -> int:
        return len(self.uids)

    @cached_property
    def salience_R(self) -> Float[np.ndarray, " R"]:  # noqa: N802
        """Salience: log p_plan - log p_base, nats; NaN where a probability is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return _finite(np.log(self.p_plan_R) - np.log(self.p_base_R))

    @cached_property
    def lift_R(self) -> Float[np.ndarray, " R"]:  # noqa: N802
        """Lift: weight / p_base, 1 for DFT; NaN where p_base is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return _finite(self.weight_R / self.p_base_R)

    def per_repair(
        self, values_R: Float[np.ndarray, " R"], mask_R: Bool[np.ndarray, " R"] | None = None
    ) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
        """Sum over the tokens of each repair, and how many were summed: those of the mask that are not NaN."""
        counted_R = np.isfinite(values_R) if mask_R is None else np.isfinite(values_R) & mask_R
        owner_R = np.repeat(np.arange(len(self)), np.diff(self.offset_M1))[counted_R]
        sums = np.bincount(owner_R, weights=values_R[counted_R], minlength=len(self))
        return sums, np.bincount(owner_R, minlength=len(self)).astype(float)

    def repair(self, index: int) -> Repair:
        """The texts of one repair, read from disk."""
        row = object_at(self.path, int(self.start_M[index]))
        return Repair(row["problem"], row["plan"], row["fallback"], row["tokens"])


@dataclass(frozen=True)
class GroupTable:
    """All training groups of a run: what became of each visit to a prompt.

    Attributes:
        step_M: optimiser steps finished when its rollouts were made.
        uids: problems.
        num_right_M: right completions of the group.
        num_rows_M: completions of the group.
    """

    step_M: Int[np.ndarray, " M"]
    uids: tuple[str, ...]
    num_right_M: Int[np.ndarray, " M"]
    num_rows_M: Int[np.ndarray, " M"]

    @property
    def failed_M(self) -> Bool[np.ndarray, " M"]:  # noqa: N802
        """True where no completion is right."""
        return np.asarray(self.num_right_M == 0)


def read_groups(path: Path) -> GroupTable | None:
    """All groups; None when the file is missing or holds none.

    Raises:
        RecordError: unreadable or damaged; names the line. A torn last line is left out.
    """
    uids: list[str] = []
    columns: dict[str, list[int]] = {"step": [], "num_right": [], "num_rows": []}
    for line in objects(path) if path.is_file() else ():
        where = f"{path}, line {line.number},"
        uids.append(_text(line.row, "uid", where))
        for name, column in columns.items():
            column.append(_count(line.row, name, where))
        if columns["num_right"][-1] > columns["num_rows"][-1]:
            raise _damaged(where, f"{columns['num_right'][-1]} right of {columns['num_rows'][-1]} rows")
    if not uids:
        return None
    step, right, rows = (np.array(column, dtype=np.int64) for column in columns.values())
    return GroupTable(step, tuple(uids), right, rows)


def read_repairs(path: Path) -> RepairTable | None:
    """All repairs; None when the file is missing or holds none.

    Raises:
        RecordError: unreadable or damaged; names the line. A torn last line is left out.
    """
    reader = _RepairReader(path)
    for line in objects(path) if path.is_file() else ():
        reader.add(line)
    return reader.table()


@dataclass
class _RepairReader:
    """Takes lines, gives the table."""

    path: Path
    lines: list[Line] = field(default_factory=list)  # with the texts taken out
    plan_chars: list[float] = field(default_factory=list)
    num_tokens: list[int] = field(default_factory=list)
    p: dict[str, "array[float]"] = field(default_factory=lambda: {name: array("f") for name in _PROBABILITIES})
    roles: list[np.ndarray] | None = field(default_factory=list)
    known: dict[str, np.ndarray | None] = field(default_factory=dict)  # a reference returns when its prompt does

    def add(self, line: Line) -> None:
        """Check one record and keep its numbers."""
        row, where = line.row, f"{self.path}, line {line.number},"
        plan, fallback = (_text(row, name, where, optional=True) for name in ("plan", "fallback"))
        if fallback not in (None, *FALLBACKS):
            raise _damaged(where, f"fallback {fallback[:40]!r}; allowed are null, {', '.join(FALLBACKS)}")
        _text(row, "problem", where)
        self.plan_chars.append(np.nan if plan is None else len(plan))
        kept = {"uid": _text(row, "uid", where), "fallback": fallback is not None}
        kept |= {name: _count(row, name, where) for name in ("step", "failed_at")}
        self.lines.append(line._replace(row=kept))
        tokens = row.get("tokens")
        if not isinstance(tokens, list) or set(map(type, tokens)) != {str}:
            raise _damaged(where, "no list of texts under tokens")
        self.num_tokens.append(len(tokens))
        for name, numbers in self.p.items():
            numbers.extend(_floats(row, name, len(tokens), where))
        if self.roles is not None:
            roles = self._roles(tokens)
            if roles is None:
                self.roles = None
            else:
                self.roles.append(roles)

    def _roles(self, tokens: list[str]) -> np.ndarray | None:
        text = "".join(tokens[:-1])
        if set(map(len, tokens[:-1])) != {1}:
            return None
        if text not in self.known:
            roles = roles_of(text)
            self.known[text] = None if roles is None else _codes(roles)
        return self.known[text]

    def table(self) -> RepairTable | None:
        """The arrays of all lines.

        Raises:
            RecordError: a probability or weight out of range.
        """
        if not self.lines:
            return None
        rows = [line.row for line in self.lines]
        offset_M1 = np.concatenate([[0], np.cumsum(self.num_tokens)])
        p_base_R, p_plan_R, weight_R = (self._checked(name, offset_M1) for name in _PROBABILITIES)
        return RepairTable(
            path=self.path,
            start_M=np.array([line.start for line in self.lines]),
            step_M=np.array([row["step"] for row in rows]),
            failed_at_M=np.array([row["failed_at"] for row in rows]),
            uids=tuple(row["uid"] for row in rows),
            plan_chars_M=np.array(self.plan_chars, dtype=float),
            fallback_M=np.array([row["fallback"] for row in rows]),
            offset_M1=offset_M1,
            p_base_R=p_base_R,
            p_plan_R=p_plan_R,
            weight_R=weight_R,
            role_R=None if self.roles is None else np.concatenate(self.roles),
        )

    def _checked(self, name: str, offset_M1: np.ndarray) -> np.ndarray:
        values_R = np.array(self.p[name], dtype=np.float32)
        most = np.inf if name == "weight" else _MAX_P
        wrong = np.flatnonzero(~((values_R >= 0) & (values_R <= most) & np.isfinite(values_R)))
        if wrong.size:
            line = self.lines[int(np.searchsorted(offset_M1, wrong[0], side="right")) - 1]
            raise _damaged(f"{self.path}, line {line.number},", f"{name} {values_R[wrong[0]]}")
        return values_R if name == "weight" else values_R.clip(max=1.0)


def _codes(roles: list[Role]) -> np.ndarray:
    return np.array([ROLES.index(role) for role in (*roles, ROLES[-1])], dtype=np.int8)


def _floats(row: dict[str, Any], name: str, length: int, where: str) -> Iterable[float]:
    values = row.get(name)
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float}:
        raise _damaged(where, f"no list of numbers under {name}")
    if len(values) != length:
        raise _damaged(where, f"{len(values)} numbers under {name} for {length} tokens")
    try:
        return [float(value) for value in values]
    except OverflowError as error:
        raise _damaged(where, f"a number beyond all measure under {name}") from error


def _text(row: dict[str, Any], name: str, where: str, optional: bool = False) -> Any:
    value = row.get(name, 0)
    if not (isinstance(value, str) or (optional and value is None)):
        raise _damaged(where, f"no text under {name}")
    return value


def _count(row: dict[str, Any], name: str, where: str) -> int:
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST:
        raise _damaged(where, f"no whole number from 0 under {name}")
    return value


def _damaged(where: str, found: str) -> RecordError:
    return RecordError(f"{where} is damaged: {found}. Remove the line or run again.")


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.nan)
