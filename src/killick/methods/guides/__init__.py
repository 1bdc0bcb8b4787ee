"""Guides: each turns the signals of a step into the factor q of the shaped anchor q·π_ref.

To add one: a file here and a line in the table.
"""

from killick.registry import Registry

GUIDES = Registry(
    "guide",
    entry_points="killick.guides",
    built_in={
        "branch": "killick.methods.guides.branch:BranchGuide",
        "token": "killick.methods.guides.surprisal:SurprisalGuide",
        "random": "killick.methods.guides.noise:NoiseGuide",
        "constant": "killick.methods.guides.constant:ConstantGuide",
    },
)
