"""Stored records -> one HTML page and one summary. Reads files, never samples; imports neither torch nor trl.

`load_study` reads folders, `write_report` writes the page, `study_summary` and `summary_table` give the numbers.
"""

from killick.report.load import load_study
from killick.report.page import write_report
from killick.report.study import Study
from killick.report.summary import study_summary, summary_table

__all__ = ["Study", "load_study", "study_summary", "summary_table", "write_report"]
