"""A study: one recipe, several arms and seeds, run side by side in processes of one thread each, then reported.

A study folder holds `study.json`, `base/eval/SPLIT/`, `arms/NAME/seedK/` (run folders with `eval/SPLIT/`), and at the
end `summary.json` and `report.html`. Running the same command again finishes what is missing.
"""

from killick.study.definition import Arm, Study, check, load_study, shipped_studies
from killick.study.jobs import Job, check_failed, finish, plan, run

__all__ = [
    "Arm",
    "Job",
    "Study",
    "check",
    "check_failed",
    "finish",
    "load_study",
    "plan",
    "run",
    "shipped_studies",
]
