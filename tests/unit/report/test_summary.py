import io
import json

import pytest
from rich.console import Console

from killick.report import load_study, study_summary, summary_table
from killick.report.summary import shown_ks


@pytest.fixture(scope="module")
def study(study_dir):
    return load_study(study_dir)


@pytest.fixture(scope="module")
def summary(study):
    return study_summary(study)


def test_is_json_and_reproducible(study_dir, summary):
    text = json.dumps(summary, allow_nan=False, sort_keys=True)
    assert json.dumps(study_summary(load_study(study_dir)), allow_nan=False, sort_keys=True) == text


def test_pass_at_k_equals_the_estimators(study, summary):
    for (name, split), found in study.coverage.items():
        stored = summary["models"][name]["splits"][split]
        assert stored["num_runs"] == found.num_runs
        assert stored["interval"] == found.how
        for k, interval in found.at.items():
            assert stored["pass_at_k"][str(k)] == pytest.approx(vars(interval), abs=1e-6)


def test_differences_are_from_the_base_and_the_baseline(summary):
    split = summary["models"]["sage-0.3"]["splits"]["mixed"]
    assert set(split["differences"]) == {"base", "grpo-0.02"}
    assert set(summary["models"]["grpo-0.02"]["splits"]["mixed"]["differences"]) == {"base"}
    mine = split["pass_at_k"]["1"]["mean"]
    base = summary["models"]["base"]["splits"]["mixed"]["pass_at_k"]["1"]["mean"]
    assert split["differences"]["base"]["pass_at_k"]["1"]["mean"] == pytest.approx(mine - base, abs=1e-6)


def test_says_what_was_asked(summary):
    model = summary["models"]["sage-0.3"]
    assert model["sweep"] == {"trl.beta": 0.3}
    assert model["settings"]["trl"]["beta"] == 0.3
    assert model["versions"]["trl"] == "1.16.0"
    assert model["training"]["wall_s"] == 30 * 1.5
    split = model["splits"]["mixed"]
    assert (split["num_problems"], split["num_samples"]) == (12, 16)
    assert split["settings"]["sampling"]["temperature"] == 1.0


def test_base_has_no_training_numbers(summary):
    assert summary["models"]["base"]["training"] == {
        "failed_group_frac_mean": None,
        "failed_group_frac_last_10": None,
        "wall_s": None,
    }


def test_shown_ks_are_round_and_include_the_largest(study):
    assert shown_ks(study) == [1, 8, 16]


def test_table_shows_the_numbers_and_prints_labels_as_text(study_dir, tmp_path):
    study = load_study(study_dir)
    object.__setattr__(study.arms[0], "label", "[red]base[/red]")
    out = io.StringIO()
    Console(file=out, width=200).print(summary_table(study))
    text = out.getvalue()
    assert "[red]base[/red]" in text
    found = study.coverage["sage-0.3", "hard"].at[16]
    assert f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]" in text
