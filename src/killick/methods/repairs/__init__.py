"""Repair rules: each weighs the tokens of the reference solution of a prompt whose completions all failed.

To add one: a file here and a line in the table.
"""

from killick.registry import Registry

REPAIRS = Registry(
    "repair rule",
    entry_points="killick.repairs",
    built_in={
        "geometric": "killick.methods.repairs.geometric:GeometricRepair",
        "dft": "killick.methods.repairs.dft:DftRepair",
        "nll": "killick.methods.repairs.nll:NllRepair",
    },
)
