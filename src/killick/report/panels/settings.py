"""Every resolved setting of every arm, the ones that differ first."""

import json
from dataclasses import dataclass
from typing import Any

from killick.report.measured import flatten
from killick.report.study import Arm, Study
from killick.report.types import Cell, Panel, Table

SEED_KEYS = ("run.seed", "trl.seed", "trl.data_seed", "trl.output_dir", "run.output")


@dataclass(frozen=True)
class SettingsPanel:
    """Settings, evaluation settings and versions, side by side."""

    title: str = "Settings"
    order: int = 80

    def __call__(self, study: Study) -> Panel | None:
        """Tables of settings; None when no folder recorded any."""
        tables = [
            *_compare("Training settings", {arm.label: _resolved(arm) for arm in study.arms if _resolved(arm)}),
            *_compare("Evaluation settings", _specs(study)),
            *_compare("Versions", {arm.label: _versions(arm) for arm in study.arms if _versions(arm)}),
            *_compare("Study settings", {"value": flatten(study.settings)} if study.settings else {}),
        ]
        if not tables:
            return None
        note = (
            "Resolved settings as each run recorded them. Rows that differ between columns are marked and come first; "
            f"rows that merely tell seeds and output places apart ({', '.join(SEED_KEYS)}) show the first seed."
        )
        return Panel(self.title, tables, note)


def _resolved(arm: Arm) -> dict[str, Any]:
    """Settings of the arm's first run; a value that changes with the seed is shown once per value."""
    flats = [flatten(run.resolved) for run in arm.runs if run.resolved]
    if not flats:
        return {}
    keys = dict.fromkeys(key for flat in flats for key in flat)
    return {key: _merged([flat.get(key) for flat in flats], key) for key in keys}


def _merged(values: list[Any], key: str) -> Any:
    texts = list(dict.fromkeys(_text(value) for value in values))
    return values[0] if len(texts) == 1 or key in SEED_KEYS else " / ".join(texts)


def _versions(arm: Arm) -> dict[str, Any]:
    flats = [flatten(run.versions) for run in arm.runs if run.versions]
    keys = sorted({key for flat in flats for key in flat})
    return {key: _merged([flat.get(key) for flat in flats], key) for key in keys}


def _specs(study: Study) -> dict[str, dict[str, Any]]:
    return {
        f"{arm.label}, {split}": flatten(found[0].settings)
        for split in study.splits
        for arm in study.arms
        if (found := arm.evaluations(split))
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _compare(heading: str, columns: dict[str, dict[str, Any]]) -> list[Table]:
    """Differences as an open table, and everything else folded with its one common value."""
    if not columns:
        return []
    keys = sorted({key for settings in columns.values() for key in settings})
    texts = {key: [_text(flat[key]) if key in flat else "–" for flat in columns.values()] for key in keys}
    different = [key for key in keys if len(set(texts[key])) > 1]
    common = [key for key in keys if key not in different]
    tables = []
    if different:
        rows: list[list[Cell | str]] = [[key, *(Cell(text, mark=True) for text in texts[key])] for key in different]
        tables.append(Table(f"{heading}: what differs", ["setting", *columns], rows, numeric=False))
    if common:
        owner = "all columns alike" if len(columns) > 1 else next(iter(columns))
        same: list[list[Cell | str]] = [[key, texts[key][0]] for key in common]
        tables.append(Table(f"{heading}: common to all", ["setting", owner], same, folded=True, numeric=False))
    return tables
