"""The page as a browser would read it: offline, deterministic, hostile text inert."""

import base64
import dataclasses
import hashlib
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from killick.errors import ContractError, RecordError
from killick.report import load_study, write_report
from killick.report.page import _inline, prose, render

HOSTILE = (
    "</pre></script><script>alert(1)</script>",
    "<img src=http://example.invalid/x.png onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "<style>@import url(http://example.invalid)</style>\u202e<!-- ",
)


class Reader(HTMLParser):
    """Elements with their attributes, and the text of scripts and styles."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.raw, self.text = [], [], []
        self._inside = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._inside = tag if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.raw.append((self._inside, self.elements[-1][1], data))
        else:
            self.text.append(data)


def _without_plotly(text):
    from plotly.offline import get_plotlyjs

    return text.replace(_inline("plotly.js", get_plotlyjs()), "")


def test_sections_in_reading_order(page):
    shown = [attributes["id"] for tag, attributes in Reader(page).elements if tag == "section"]
    assert shown[:4] == ["summary", "coverage", "support", "frontier"]
    assert shown[4:] == ["training", "modes", "reasons", "samples", "settings"]
    links = [attributes["href"] for tag, attributes in Reader(page).elements if tag == "a"]
    assert links == [f"#{name}" for name in shown]


def test_nothing_is_loaded_from_anywhere(page):
    reader = Reader(page)
    for tag, attributes in reader.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form", "img", "video", "audio"}
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
        assert "srcset" not in attributes
    ours = _without_plotly(page)
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttpRequest|sendBeacon|import\(", ours)


def test_policy_forbids_requests_and_allows_exactly_our_scripts(page):
    reader = Reader(page)
    policy = next(a["content"] for t, a in reader.elements if t == "meta" and "http-equiv" in a)
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives["default-src"] == "'none'"
    assert "connect-src" not in directives  # falls back to default-src
    runnable = [code for tag, a, code in reader.raw if tag == "script" and a.get("type") != "application/json"]
    hashes = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in runnable]
    assert directives["script-src"] == " ".join(f"'sha256-{value}'" for value in hashes)
    assert len(runnable) == 2


def test_plotly_is_embedded_once(page):
    from plotly.offline import get_plotlyjs

    assert page.count(_inline("plotly.js", get_plotlyjs())) == 1
    assert len(page.encode()) < 6_000_000


def test_hostile_text_is_inert_everywhere(synthetic, tmp_path):
    folder = synthetic.write_study(
        tmp_path / "s",
        betas=(0.02,),
        methods=("grpo",),
        splits=("mixed",),
        title=HOSTILE[1],
        texts=HOSTILE,
        modes=HOSTILE,
    )
    index = json.loads((folder / "study.json").read_text())
    index["arms"][0]["label"] = HOSTILE[0]
    index["settings"] = {HOSTILE[2]: HOSTILE[3]}
    (folder / "study.json").write_text(json.dumps(index))
    text = write_report(folder).read_text(encoding="utf-8")
    reader = Reader(text)
    scripts = [attributes for tag, attributes in reader.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "figures"}, {}, {}]
    assert {tag for tag, _ in reader.elements}.isdisjoint({"img", "svg", "iframe"})
    assert [tag for tag, _ in reader.elements].count("style") == 1
    assert not [a for _, a in reader.elements if any(name.startswith("on") for name in a)]
    # and yet the reader sees every character of it
    shown = "".join(reader.text)
    for hostile in HOSTILE:
        assert hostile in shown


def test_same_inputs_same_bytes(study_dir, page, tmp_path):
    assert render(load_study(study_dir)) == page
    moved = tmp_path / "elsewhere"
    shutil.copytree(study_dir, moved)
    # another folder, another process, another hash seed
    script = "import sys, pathlib; from killick.report import write_report; write_report(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(moved)], check=True, env={"PYTHONHASHSEED": "123"})
    assert (moved / "report.html").read_text(encoding="utf-8") == page


def test_reading_needs_neither_torch_nor_trl(study_dir, tmp_path):
    script = (
        "import sys, pathlib; from killick.report import *; p = pathlib.Path(sys.argv[1]); "
        "study_summary(load_study(p)); write_report(p, pathlib.Path(sys.argv[2])); "
        "print(sorted({'torch', 'trl', 'transformers', 'datasets'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", script, str(study_dir), str(tmp_path / "r.html")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == "[]"


def test_table_cells_equal_the_estimators(study_dir, page):
    study = load_study(study_dir)
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    for arm in study.arms:
        at = study.coverage[arm.name, "mixed"].at
        cells = "".join(
            f"<td>{at[k].mean:.3f}<small>{at[k].low:.3f} to {at[k].high:.3f}</small></td>" for k in (1, 8, 16)
        )
        assert any(f"</span>{arm.label}</th>{cells}" in row for row in rows)


def test_figures_hold_the_estimates(study_dir, page):
    study = load_study(study_dir)
    figures = json.loads(next(code for _, a, code in Reader(page).raw if a.get("id") == "figures"))
    figure = figures["coverage-1"]
    lines = {trace["name"]: trace for trace in figure["data"] if trace["mode"] == "lines+markers"}
    found = study.coverage["sage-0.02", "mixed"].at
    assert lines["SAGE β=0.02"]["x"] == list(found)
    assert lines["SAGE β=0.02"]["y"] == pytest.approx([interval.mean for interval in found.values()], abs=1e-6)


def test_settings_stand_beside_every_figure_and_table_of_estimates(page):
    captions = re.findall(r'<p class="caption">(.*?)</p>', page)
    # per split: 3 tables, coverage, support twice, frontier, modes twice, verdicts
    assert len(captions) == 2 * (3 + 1 + 2 + 1 + 2 + 1)
    for caption in captions:
        assert "problems × 16 samples each" in caption
        assert "temperature 1.0" in caption
        assert "training seeds 0, 1" in caption
        assert "bootstrap" in caption


def test_missing_data_omits_a_panel_and_is_said(synthetic, tmp_path):
    folder = synthetic.write_study(
        tmp_path / "s", betas=(0.02,), methods=("grpo",), splits=("mixed",), modes=(), num_samples=1
    )
    for seed in (0, 1):
        (folder / f"arms/grpo-0.02/seed{seed}/train_log.jsonl").unlink()
    shutil.rmtree(folder / "arms/grpo-0.02/seed1/eval")
    text = write_report(folder).read_text(encoding="utf-8")
    shown = [attributes["id"] for tag, attributes in Reader(text).elements if tag == "section"]
    # no log: no training; no mode labels: no modes; one sample: nothing but pass@1, so no frontier
    assert shown == ["summary", "coverage", "support", "reasons", "samples", "settings"]
    assert "arms/grpo-0.02/seed1 has no finished evaluation" in text


def test_a_study_without_any_result_is_still_a_page(synthetic, tmp_path):
    folder = synthetic.write_study(tmp_path / "s", betas=(0.02,), methods=("grpo",), splits=("mixed",))
    shutil.rmtree(folder / "arms")
    shutil.rmtree(folder / "base")
    text = write_report(folder).read_text(encoding="utf-8")
    assert len(text) < 30_000  # no figure, so no plotting library either
    assert "script-src 'none'" in text
    assert "Incomplete" in text


def test_default_place_and_given_place(synthetic, tmp_path):
    synthetic.write_evaluation(tmp_path / "a", "mixed", seed=1)
    synthetic.write_evaluation(tmp_path / "b", "mixed", seed=2)
    assert write_report([tmp_path / "a", tmp_path / "b"]) == tmp_path / "a" / "comparison.html"
    assert write_report(tmp_path / "b", tmp_path / "new/dir/r.html").is_file()


def test_code_that_would_close_its_element_is_refused():
    with pytest.raises(ContractError, match="cannot be embedded"):
        _inline("x.js", "a = '</SCRIPT>'")
    assert _inline("x.js", "a\r\nb\rc") == "a\nb\nc"  # browsers hash after the same normalisation


def test_prose_sets_code_and_escapes():
    assert prose("a `<b>` c") == "a <code>&lt;b&gt;</code> c"


def test_places_that_are_no_file_are_refused(synthetic, tmp_path):
    synthetic.write_evaluation(tmp_path / "a", "mixed", seed=1)
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="is a folder; the report is one file"):
        write_report(tmp_path / "a", tmp_path)
    for place in (tmp_path / "file" / "r.html", tmp_path / ("r" * 300), tmp_path / "a\0b" / "r.html"):
        with pytest.raises(RecordError, match="Cannot write"):
            write_report(tmp_path / "a", place)


def test_half_a_character_does_not_stop_the_page(synthetic, tmp_path):
    synthetic.write_evaluation(tmp_path / "a", "mixed", seed=1)
    study = dataclasses.replace(load_study(tmp_path / "a"), title="half \ud800 title")
    page = write_report(tmp_path / "a", study=study).read_text(encoding="utf-8")
    assert "<h1>half ? title</h1>" in page
