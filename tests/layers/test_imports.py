"""Imports point one way: each layer alone, in a fresh process, looked through for names it must not know."""

import subprocess
import sys

import pytest

FORBIDDEN = {
    "killick": ["torch", "trl", "transformers", "numpy", "rich", "typer"],
    "killick.errors": ["torch"],
    "killick.registry": ["torch"],
    "killick.config": ["torch", "trl", "transformers", "rich", "typer"],
    "killick.maths": ["trl", "transformers", "killick.methods", "killick.engines", "killick.evaluate"],
    "killick.methods.sage": ["trl", "transformers", "verl", "killick.engines", "killick.evaluate", "killick.tasks"],
    "killick.methods.guides": ["torch", "trl", "transformers"],
    "killick.methods.repairs": ["torch", "trl", "transformers"],
    "killick.methods.failures": ["torch", "trl", "transformers"],
    "killick.methods.plan": ["torch", "trl", "transformers"],
    "killick.methods.sort": ["trl", "transformers", "verl", "killick.engines", "killick.evaluate", "killick.tasks"],
    "killick.verifiers": ["torch", "trl", "transformers", "math_verify", "sympy"],
    "killick.verifiers.countdown": ["torch", "trl", "transformers"],
    "killick.verifiers.number": ["torch", "trl", "transformers"],
    "killick.verifiers.latex": ["torch", "trl", "transformers", "sympy", "mpmath", "math_verify"],
    "killick.tasks": ["torch", "trl", "transformers", "killick.engines"],
    "killick.tasks.countdown": ["torch", "trl", "transformers", "killick.engines"],
    "killick.evaluate.estimators": ["torch", "trl", "transformers", "killick.engines"],
    "killick.evaluate.backends.openai": ["torch", "trl", "transformers", "killick.engines"],
    "killick.evaluate.compare": ["torch", "trl", "transformers", "killick.engines"],
    "killick.patterns.judge": ["torch", "numpy", "killick.evaluate"],
    "killick.patterns.labelled": ["torch", "numpy", "killick.evaluate"],
    "killick.patterns.rules": ["torch", "numpy", "killick.evaluate"],
    "killick.report.page": [
        "torch",
        "trl",
        "transformers",
        "killick.engines",
        "killick.cli",
        "killick.evaluate.sample",
    ],
    "killick.lab.anchors": ["trl", "transformers", "killick.engines", "killick.cli"],
    "killick.lab.repair": ["trl", "transformers", "killick.engines", "killick.cli"],
    "killick.cli": ["torch", "trl", "transformers", "plotly", "math_verify"],
    "killick.engines.trl.trainer": ["killick.cli", "killick.report", "killick.evaluate"],
}


def loaded(module: str, names: list[str]) -> list[str]:
    code = f"import sys, {module}; print([n for n in {names!r} if n in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return eval(out.stdout.strip().splitlines()[-1], {"__builtins__": {}})


@pytest.mark.parametrize("module", FORBIDDEN)
def test_layer(module):
    assert loaded(module, FORBIDDEN[module]) == []


def test_this_test_can_fail():
    assert loaded("killick.maths", ["torch"]) == ["torch"]
