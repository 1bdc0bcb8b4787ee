"""A few problems with a few completions of every arm, exactly as the model wrote them."""

from dataclasses import dataclass

from killick.evaluate.records import Record
from killick.report.evaluation import Evaluation
from killick.report.markup import Markup, element, join
from killick.report.study import Study
from killick.report.types import Panel


@dataclass(frozen=True)
class SamplesPanel:
    """Completions side by side, so that numbers can be checked against what was written.

    Attributes:
        problems: shown per split, evenly spaced over the sorted problems, so that nobody picked them.
        completions: shown per problem and arm, the first ones drawn.
        characters: kept of each completion.
    """

    title: str = "Samples"
    order: int = 70
    problems: int = 4
    completions: int = 3
    characters: int = 1500

    def __call__(self, study: Study) -> Panel | None:
        """One folded block a split and problem; None without evaluations."""
        if not study.splits:
            return None
        items = [self._split(study, split) for split in study.splits]
        note = (
            f"The first {self.completions} completions of {self.problems} evenly spaced problems per split, from the "
            "first seed of each arm. Text is shown as written; nothing in it is interpreted."
        )
        return Panel(self.title, items, note)

    def _split(self, study: Study, split: str) -> Markup:
        firsts = [(arm, arm.evaluations(split)[0]) for arm in study.arms if arm.evaluations(split)]
        uids = firsts[0][1].table.uids
        chosen = [uids[(2 * i + 1) * len(uids) // (2 * self.problems)] for i in range(self.problems)]
        chosen = list(dict.fromkeys(chosen))
        found = [(arm.label, ev, ev.completions(chosen, self.completions)) for arm, ev in firsts]
        blocks = []
        for uid in chosen:
            arms = [self._arm(label, _rate(ev, uid), records[uid]) for label, ev, records in found]
            summary = element("summary", "Problem ", element("code", uid))
            blocks.append(element("details", summary, element("div", *arms, class_="arms")))
        return join(element("h3", f"Split {split}"), *blocks)

    def _arm(self, label: str, rate: str, records: list[Record]) -> Markup:
        return element("div", element("h4", f"{label}: {rate}"), *(self._completion(record) for record in records))

    def _completion(self, record: Record) -> Markup:
        text = record.text
        cut = len(text) - self.characters
        shown = text if cut <= 0 else text[: self.characters] + f"\n… {cut:,} more characters"
        mode = record.mode
        facts = f"{record.reason} · {record.tokens} tokens" + (" · truncated" if record.truncated else "")
        return element(
            "figure",
            element("figcaption", facts + (f" · mode {mode}" if mode is not None else "")),
            element("pre", shown),
            class_="completion right" if record.correct else "completion",
        )


def _rate(evaluation: Evaluation, uid: str) -> str:
    table = evaluation.table
    if uid not in table.uids:
        return "not evaluated"
    row = table.correct_QN[table.uids.index(uid)]
    return f"{int(row.sum())} of {row.size} right"
