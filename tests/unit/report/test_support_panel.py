"""Numbers of the support and pattern panels against counts taken from the records."""

import numpy as np

from killick.report import load_study
from killick.report.panels.patterns import PatternsPanel
from killick.report.panels.support import SupportPanel
from killick.report.types import Table


def tables(panel):
    return [item for item in panel.items if isinstance(item, Table)]


def test_lost_and_gained_are_means_over_seeds(study_dir):
    study = load_study(study_dir)
    table = tables(SupportPanel()(study))[0]
    base = study.base.evaluations("mixed")[0].table.num_correct_Q
    assert len(table.rows) == len(study.arms) - 1
    for arm, row in zip([arm for arm in study.arms if not arm.is_base], table.rows, strict=True):
        counts = [evaluation.table.num_correct_Q for evaluation in arm.evaluations("mixed")]
        lost = np.mean([((base > 0) & (own == 0)).sum() for own in counts])
        gained = np.mean([((base == 0) & (own > 0)).sum() for own in counts])
        assert [row[2].text, row[3].text] == [f"{lost:.1f}", f"{gained:.1f}"]
        assert row[1].detail == f"base {(base > 0).sum()} of {len(base)}"
        assert len(row[5].split(", ")) == len(counts)


def test_no_words_no_patterns(study_dir):
    assert PatternsPanel()(load_study(study_dir)) is None


def test_shares_are_of_all_completions_read(synthetic, tmp_path):
    texts = ("Case 1: x. Case 2: y.", "no idea")
    study = load_study(synthetic.write_study(tmp_path / "words", texts=texts, splits=("mixed",)))
    table = tables(PatternsPanel()(study))[0]
    column = table.columns.index("case_analysis")
    for arm, row in zip(study.arms, table.rows, strict=True):
        shares = []
        for evaluation in arm.evaluations("mixed"):
            records = evaluation.completions(list(evaluation.table.uids), evaluation.num_samples)
            shares.append(np.mean([record.text == texts[0] for own in records.values() for record in own]))
        assert row[column].text == f"{np.mean(shares):.3f}"
