"""Sections of the report. To add one: a file here and a line in the table."""

from killick.registry import Registry

PANELS = Registry(
    "panel",
    entry_points="killick.panels",
    built_in={
        "coverage": "killick.report.panels.coverage:CoveragePanel",
        "frontier": "killick.report.panels.frontier:FrontierPanel",
        "modes": "killick.report.panels.modes:ModesPanel",
        "patterns": "killick.report.panels.patterns:PatternsPanel",
        "reasons": "killick.report.panels.reasons:ReasonsPanel",
        "recovery": "killick.report.panels.recovery:RecoveryPanel",
        "repairs": "killick.report.panels.repairs:RepairsPanel",
        "samples": "killick.report.panels.samples:SamplesPanel",
        "settings": "killick.report.panels.settings:SettingsPanel",
        "summary": "killick.report.panels.summary:SummaryPanel",
        "suite": "killick.report.panels.suite:SuitePanel",
        "support": "killick.report.panels.support:SupportPanel",
        "training": "killick.report.panels.training:TrainingPanel",
    },
)
