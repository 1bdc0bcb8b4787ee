import importlib.util

import sympy
import torch

from killick.provenance import changed_versions, versions


def test_versions_of_what_is_installed():
    found = versions()
    assert (found["torch"], found["sympy"]) == (torch.__version__, sympy.__version__)
    assert {name for name, version in found.items() if version is None} <= {
        "peft", "vllm", "deepspeed", "liger-kernel",
    }  # fmt: skip
    assert (found["vllm"] is None) == (importlib.util.find_spec("vllm") is None)


def test_changed_versions_are_those_that_were_asked_about():
    now = versions()
    assert changed_versions(now) == []
    assert changed_versions({"torch": "0.1", "python": now["python"]}) == [("torch", "0.1", now["torch"])]
    # written before anybody asked about the others, or by somebody who asked about more
    assert changed_versions({}) == []
    assert changed_versions({"abacus": "3"}) == [("abacus", "3", None)]
