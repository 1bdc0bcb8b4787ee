"""The files of an experiment: JSON, PNG and one page, all from the same numbers."""

import io
import json
import re
import sys

import pytest
from rich.console import Console

from killick.errors import ConfigError, RecordError
from killick.lab import anchors, repair
from killick.lab.output import check_drawing, panel_of, terminal_tables, write
from killick.report.types import Cell, Table


@pytest.fixture(scope="module")
def data():
    return repair.run(repair.RepairSettings(texts=4, length=8, plans=5))


def test_files(data, tmp_path):
    files = write(tmp_path, data)
    assert [file.name for file in files] == ["repair.json", "repair.png", "lab.html"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lab.html", "repair.json", "repair.png"]
    stored = json.loads(files[0].read_text("utf-8"))
    assert stored["settings"] == data["settings"]
    assert stored["rows"][3]["error_mean"] == pytest.approx(data["rows"][3]["error_mean"], rel=1e-6)
    picture = files[1].read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000
    again = write(tmp_path / "again", data)
    assert [a.read_bytes() for a in files] == [b.read_bytes() for b in again]


def test_page_holds_the_table_and_asks_for_nothing(data, tmp_path):
    page = write(tmp_path, data)[2].read_text("utf-8")
    shown = page.split("<script")[0]
    (table,) = [item for item in panel_of(data).items if isinstance(item, Table) and "corrupted" in item.heading]
    for cell in table.rows[5]:
        assert f">{cell.text if isinstance(cell, Cell) else cell}</t" in shown
    assert "default-src 'none'" in shown
    assert re.findall(r'(?:src|href)="(?!#)', shown) == []


def test_a_panel_for_every_experiment_in_the_folder(data, tmp_path):
    write(tmp_path, data)
    page = write(tmp_path, data | {"settings": data["settings"] | {"texts": 5}})[2].read_text("utf-8")
    assert page.count("<section") == 1
    (tmp_path / "anchors.json").write_text('{"experiment": "anchors"}')
    with pytest.raises(RecordError, match=r"anchors\.json is no result"):
        write(tmp_path, data)
    (tmp_path / "anchors.json").write_text("[")
    with pytest.raises(RecordError, match=r"anchors\.json"):
        write(tmp_path, data)


def test_terminal_tables_hold_the_panel_tables(data):
    panel = panel_of(data)
    tables = [item for item in panel.items if isinstance(item, Table)]
    shown = terminal_tables(panel)
    assert [table.row_count for table in shown] == [len(table.rows) for table in tables] == [5, 16]


def test_terminal_tables_are_shown_whole_in_a_log():
    # 140 columns is what `killick.cli.console` takes where there is no terminal; all of the widest table must be there.
    panel = panel_of(anchors.run(anchors.AnchorsSettings(branching=2, depth=1, correct=1, seeds=1)))
    console = Console(width=140, record=True, file=io.StringIO())
    for table in terminal_tables(panel):
        console.print(table)
    text = console.export_text()
    assert "…" not in text
    assert "moved" in text  # the last column
    assert all(line.endswith("│") for line in text.splitlines() if line.startswith("│"))


def test_matplotlib_is_asked_for_first(monkeypatch):
    check_drawing()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"killick\[lab\]"):
        check_drawing()
