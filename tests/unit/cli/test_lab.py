"""`killick lab`: help, wrong use, and one small run of each experiment as a user starts it."""

import json

import pytest

from killick.cli import run

NAMES = ["anchors", "support", "repair", "shrinkage"]
SMALL = {
    "anchors": ["--branching", "2", "--depth", "1", "--correct", "1", "--seeds", "1"],
    "support": ["--branching", "3", "--depth", "1", "--correct", "1", "--points", "2"],
    "repair": ["--texts", "4", "--length", "8", "--plans", "5"],
    "shrinkage": ["--depth", "1", "--correct", "2", "--group", "2", "--steps", "3", "--trees", "1", "--seeds", "2"],
}


@pytest.mark.parametrize("name", NAMES)
def test_help_has_an_example(name, capsys):
    assert run(["lab", name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Example" in text
    assert f"killick lab {name}" in text.replace("\n", " ")
    assert "--seed" in text
    assert "--out" in text


@pytest.mark.parametrize("name", NAMES)
def test_runs_and_says_what_it_wrote(name, capsys, tmp_path):
    assert run(["lab", name, *SMALL[name], "--seed", "3", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    files = [tmp_path / f"{name}.json", tmp_path / f"{name}.png", tmp_path / "lab.html"]
    assert [line for line in captured.err.splitlines() if line.startswith("Written")] == [
        f"Written: {f}" for f in files
    ]
    assert all(file.stat().st_size > 1000 for file in files)
    assert json.loads(files[0].read_text("utf-8"))["settings"]["seed"] == 3
    assert "┃" in captured.out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["anchors", "--beta", "0"], "beta = 0.0 is out of range"),
        (["anchors", "--depth", "20"], "depth = 20"),
        (["anchors", "--gamma", "-1"], "gamma must be >= 0"),
        (["anchors", "--alpha", "-1"], "alpha must satisfy"),
        (["anchors", "--branching", "two"], "valid integer"),
        (["support", "--mass", "0.5"], "Choose a smaller mass"),
        (["repair", "--certainty", "2"], "certainty = 2.0"),
        (["shrinkage", "--advantage", "none"], "Known: centred, standardised"),
        (["shrinkage", "--group", "1"], "group = 1"),
        (["repair", "--out", "{file}/x"], "Cannot write to"),
    ],
)
def test_wrong_use(argv, message, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert (
        run(
            [
                "lab",
                *(a.format(file=tmp_path / "file") for a in argv),
                *([] if "--out" in argv else ["--out", str(tmp_path / "out")]),
            ]
        )
        == 2
    )
    captured = capsys.readouterr()
    text = " ".join((captured.err + captured.out).split())
    assert message in text
    assert "Traceback" not in text
