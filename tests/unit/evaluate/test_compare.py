import json
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from killick.errors import ConfigError, RecordError
from killick.evaluate.compare import compare, comparison_table


@pytest.fixture
def folders(tmp_path, write_evaluation):
    weak = write_evaluation(tmp_path / "weak", 0.2, fingerprint="f1", num_samples=16)
    strong = write_evaluation(tmp_path / "strong", 0.8, seed=1, fingerprint="f2", num_samples=16)
    return weak, strong


def test_numbers_and_paired_differences(folders):
    weak, strong = folders
    result = compare([weak.path, strong.path])
    assert result.ks == (1, 2, 4, 8, 16)
    assert result.runs[0].difference == ()
    first, second = weak.right.mean(), strong.right.mean()
    assert result.runs[0].pass_at[0].mean == pytest.approx(first)
    assert result.runs[1].pass_at[0].mean == pytest.approx(second)
    gap = result.runs[1].difference[0]
    assert gap.mean == pytest.approx(second - first)
    assert 0 < gap.low <= gap.mean <= gap.high
    assert json.loads(json.dumps(result.to_dict()))["runs"][1]["difference"][0]["mean"] == pytest.approx(gap.mean)
    assert compare([weak.path, strong.path]) == result  # reproducible
    other = compare([weak.path, strong.path], np.random.default_rng(5))
    assert other.runs[1].difference[0].mean == pytest.approx(gap.mean)


def test_table_shows_intervals_and_settings(folders):
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(comparison_table(compare([one.path for one in folders])))
    text = console.export_text()
    for part in ("pass@16", "weak", "strong", "Δ", "[+0.", "temperature 1.0", "5 problems × 16 samples"):
        assert part in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.6}, r"sampling.temperature: 1.0 against 0.6"),
        ({"num_samples": 8}, r"sampling.num_samples: 16 against 8"),
        ({"max_tokens": 9}, r"sampling.max_tokens: 8 against 9"),
        ({"stop": ("h",)}, r"sampling.stop: \[\] against \['h'\]"),
        ({"limit": 4}, r"num_problems: 5 against 4; problems: "),
    ],
)
def test_other_questions_are_refused_with_setting_and_both_values(
    tmp_path, folders, write_evaluation, changes, message
):
    other = write_evaluation(tmp_path / "other", 0.5, **{"num_samples": 16, **changes})
    with pytest.raises(RecordError, match=message):
        compare([folders[0].path, other.path])


def test_other_model_and_sampler_seed_are_what_may_differ(tmp_path, folders, write_evaluation):
    other = write_evaluation(tmp_path / "other", 0.5, num_samples=16, seed=1, fingerprint="f9")
    assert len(compare([folders[0].path, other.path]).runs) == 2


def test_unfinished_missing_and_single(tmp_path, folders):
    weak, strong = folders
    with pytest.raises(ConfigError, match="at least 2"):
        compare([weak.path])
    with pytest.raises(RecordError, match="Cannot read"):
        compare([weak.path, tmp_path / "absent"])
    records = strong.path / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(RecordError, match=r"'p4' has 15 of 16 samples.*not finished"):
        compare([weak.path, strong.path])
    records.write_bytes(b"".join(lines[:16]))
    with pytest.raises(RecordError, match="1 of 5 problems"):
        compare([weak.path, strong.path])


def test_reading_needs_no_tensor_library():
    code = (
        "import sys, killick.evaluate.compare, killick.evaluate.summary\n"
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "False"]
