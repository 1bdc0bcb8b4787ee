"""The reference solutions of a data set, found by uid, as the token ids SORT scores in two contexts.

Both scores must be of the same ids, so a reference is encoded once, behind its ordinary prompt (see `turns`). Nothing
is cut: a row whose reference cannot be used whole is counted and left out. Ids are not kept but made again when asked
for, which takes about a millisecond; long reference solutions of a large data set would fill the memory.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from killick.engines.trl.turns import Prompt, Refusal, TurnEncoder
from killick.errors import DataError

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)
Accepts = Callable[[list[dict[str, Any]]], list[bool]]
"""Rows -> whether the task's verifier accepts each one's reference."""
_BATCH = 1000  # rows encoded in one call
_FATES = ("usable", "repeated", "missing", "control_tokens", "unfit", "too_long", "rejected")


@dataclass(frozen=True)
class Reference:
    """A verified solution of one problem.

    Attributes:
        uid: of its row, see `uid_of`.
        prompt: chat messages or a plain text, without a plan.
        text: the solution.
        token_ids: the turn that follows the prompt, end-of-turn token included; the same in every context.
        plan: from the plan column, or None.
    """

    uid: str
    prompt: Prompt
    text: str
    token_ids: tuple[int, ...]
    plan: str | None


def uid_of(row: Mapping[str, Any]) -> str:
    """The row's `uid`; where it has none, 16 hex digits of a hash of its prompt."""
    uid = row.get("uid")
    return _digest(row["prompt"])[:16] if uid is None or uid == "" else str(uid)


def _digest(value: Any) -> str:
    try:
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    except TypeError as error:  # an image in a message, say
        raise DataError(
            f"A prompt holds something that is not text ({error}), by which it cannot be told from others. Give every "
            "row a uid, keep images in a column of their own, or train without repairs."
        ) from error


class References:
    """Usable references of a data set by uid; made by `build`.

    Attributes:
        counts: rows by what became of them; they sum to the rows of the data set. "usable"; "repeated" (the uid,
            prompt and reference of an earlier row); "missing" (no text); "control_tokens" (holds a special token, or
            text unknown to the tokenizer); "unfit" (the chat template rewrites it); "too_long"; "rejected" (the
            verifier does not accept it).
    """

    def __init__(self, dataset: "Dataset", encoder: TurnEncoder, column: str, plan_column: str | None) -> None:
        self.counts: dict[str, int] = dict.fromkeys(_FATES, 0)
        self._dataset, self._encoder, self._column, self._plan_column = dataset, encoder, column, plan_column
        self._rows: dict[str, int] = {}  # uid -> row of a usable reference
        self._seen: dict[str, str] = {}  # uid -> digest of prompt, reference and plan
        self._unfit = ""  # the first reason
        self._planless = 0  # usable references without a plan

    @classmethod
    def build(
        cls,
        dataset: "Dataset",
        encoder: TurnEncoder,
        *,
        column: str = "solution",
        plan_column: str | None,
        max_tokens: int | None,
        accepts: Accepts | None,
        guided: Callable[[Prompt, str], Prompt] | None = None,
    ) -> "References":
        """Go through a data set once and keep the rows whose reference can be used whole.

        Args:
            dataset: with columns `prompt`, `column` and, if wanted, `uid` and `plan_column`.
            encoder: with the settings of the trainer.
            column: the reference texts.
            plan_column: plans to use instead of generated ones, or None.
            max_tokens: longest reference, end-of-turn token included; None for no limit.
            accepts: which references the task's verifier accepts; None leaves that unchecked. Asked only about rows
                that are usable otherwise, many at once.
            guided: puts a plan into a prompt, DataError where it cannot: such a row is "unfit". None without plans.

        Raises:
            DataError: a streamed data set, a column is missing, no row is usable, or rows of one uid differ.
        """
        if not hasattr(dataset, "__len__"):
            raise DataError(
                f"SORT finds reference solutions by uid, but a {type(dataset).__name__} can only be read in order. "
                "Load the training data without streaming."
            )
        absent = [name for name in ("prompt", column, plan_column) if name and name not in dataset.column_names]
        if absent:
            raise DataError(
                f"SORT needs the column {absent[0]!r} in the training data; found: {', '.join(dataset.column_names)}. "
                "Name the column that holds it, or choose a task with reference solutions."
            )
        references = cls(dataset, encoder, column, plan_column)
        for start in range(0, len(dataset), _BATCH):
            columns = dataset[start : start + _BATCH]
            rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
            references._add(start, rows, max_tokens, accepts, guided)
        references._report()
        return references

    def get(self, uid: str) -> Reference | None:
        """The reference of a problem, or None if it has no usable one."""
        index = self._rows.get(uid)
        if index is None:
            return None
        row = self._dataset[index]
        text = self._text(row)
        assert text is not None, "only rows with a text are usable"
        return Reference(uid, row["prompt"], text, self._encoder.encode(row["prompt"], text), self._plan(row))

    def example(self) -> Reference:
        """The first usable reference, for checks before training."""
        reference = self.get(next(iter(self._rows)))
        assert reference is not None, "build refuses a data set without usable rows"
        return reference

    def __len__(self) -> int:
        """How many problems have a usable reference."""
        return len(self._rows)

    # ---- one pass over the rows -----------------------------------------------------------------------------------

    def _add(
        self,
        start: int,
        rows: list[dict[str, Any]],
        max_tokens: int | None,
        accepts: Accepts | None,
        guided: Callable[[Prompt, str], Prompt] | None,
    ) -> None:
        texts = [self._text(row) for row in rows]
        fresh = [n for n, text in enumerate(texts) if self._is_fresh(rows[n], text)]
        turns = self._encoder.encode_all([rows[n]["prompt"] for n in fresh], [texts[n] or "" for n in fresh])
        fitting = []
        for n, encoded in zip(fresh, turns, strict=True):
            turn = encoded if guided is None else _unguided(guided, rows[n]["prompt"]) or encoded
            if isinstance(turn, Refusal):
                self.counts[turn.kind] += 1
                self._unfit = self._unfit or (turn.reason if turn.kind == "unfit" else "")
            elif max_tokens is not None and len(turn) > max_tokens:
                self.counts["too_long"] += 1
            else:
                fitting.append(n)
        verdicts = accepts([rows[n] for n in fitting]) if accepts and fitting else [True] * len(fitting)
        for n, accepted in zip(fitting, verdicts, strict=True):
            self.counts["usable" if accepted else "rejected"] += 1
            if accepted:
                self._rows[uid_of(rows[n])] = start + n
                self._planless += self._plan(rows[n]) is None

    def _is_fresh(self, row: Mapping[str, Any], text: str | None) -> bool:
        """Whether a row has a text and is not a copy of an earlier row; counts it if not."""
        if text is None:
            self.counts["missing"] += 1
            return False
        uid, digest = uid_of(row), _digest([row["prompt"], text, self._plan(row)])
        if uid not in self._seen:
            self._seen[uid] = digest
            return True
        if self._seen[uid] != digest:
            raise DataError(
                f"Two rows of the training data have the uid {uid!r} but differ in prompt, reference or plan, so a "
                "failed problem could be given the wrong reference. Give every problem its own uid, or drop one row."
            )
        self.counts["repeated"] += 1
        return False

    def _report(self) -> None:
        """Say what was left out, or that nothing is left."""
        total, usable = sum(self.counts.values()), self.counts["usable"]
        rest = ", ".join(f"{name} {self.counts[name]}" for name in _FATES[1:] if self.counts[name]) or "no rows"
        why = f" First unfit one: {self._unfit}" if self._unfit else ""
        if not usable:
            raise DataError(
                f"None of the {total} rows has a usable reference in column {self._column!r} ({rest}). SORT learns "
                "from references alone: give it verified solutions without special tokens that fit the length limit, "
                f"or train without it.{why}"
            )
        if usable < total:
            logger.warning("%d of %d rows have a usable reference; not used: %s.%s", usable, total, rest, why)
        if self._plan_column and self._planless:
            logger.warning("%d of %d references have no plan in column %r", self._planless, usable, self._plan_column)

    def _text(self, row: Mapping[str, Any]) -> str | None:
        """The reference, or None. White space around a chat turn means nothing, and line breaks there would merge."""
        text = row[self._column]
        if not isinstance(text, str) or not text.strip():
            return None
        return text if isinstance(row["prompt"], str) else text.strip()

    def _plan(self, row: Mapping[str, Any]) -> str | None:
        """The plan of the data set; one that spells a special token could forge a turn and counts as none."""
        plan = row[self._plan_column] if self._plan_column else None
        usable = isinstance(plan, str) and plan.strip() and self._encoder.control_token(plan) is None
        return plan.strip() if plan is not None and usable else None


def _unguided(guided: Callable[[Prompt, str], Prompt], prompt: Prompt) -> Refusal | None:
    """Why a prompt cannot take a plan; found now, since it would end the training once its group fails."""
    try:
        guided(prompt, "1")
    except DataError as error:
        return Refusal("unfit", str(error))
    return None
