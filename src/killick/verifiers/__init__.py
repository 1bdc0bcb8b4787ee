"""Judges of completions. To add one: a file here and a line in the table."""

from killick.registry import Registry

VERIFIERS = Registry(
    "verifier",
    entry_points="killick.verifiers",
    built_in={
        "countdown": "killick.verifiers.countdown:CountdownVerifier",
        "latex": "killick.verifiers.latex:LatexVerifier",
        "number": "killick.verifiers.number:NumberVerifier",
    },
)
