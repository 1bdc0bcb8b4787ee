"""Judges of completions. To add one: a file here and a line in the table."""

from killick.registry import Registry

VERIFIERS = Registry(
    "verifier",
    entry_points="killick.verifiers",
    built_in={
        "choice": "killick.verifiers.choice:ChoiceVerifier",
        "countdown": "killick.verifiers.countdown:CountdownVerifier",
        "exact": "killick.verifiers.exact:ExactVerifier",
        "integer": "killick.verifiers.integer:IntegerVerifier",
        "knights": "killick.verifiers.knights:KnightsVerifier",
        "latex": "killick.verifiers.latex:LatexVerifier",
        "number": "killick.verifiers.number:NumberVerifier",
        "python_function": "killick.verifiers.python_function:PythonFunctionVerifier",
        "reasoning_gym": "killick.verifiers.reasoning_gym:ReasoningGymVerifier",
    },
)
