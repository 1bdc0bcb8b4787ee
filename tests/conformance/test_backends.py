"""Every backend in the table keeps the protocol, as far as can be seen without a server or a GPU."""

import dataclasses
import inspect

import pytest

from killick.evaluate.backends import BACKENDS


@pytest.mark.parametrize("name", BACKENDS.names())
def test_backends_are_frozen_dataclasses_with_a_model(name):
    cls = BACKENDS.get(name)
    assert cls.__dataclass_params__.frozen
    assert "model" in {field.name for field in dataclasses.fields(cls)}
    for method in ("identity", "defining", "sample"):
        assert callable(getattr(cls, method))
    assert list(inspect.signature(cls.sample).parameters) == ["self", "rows", "settings", "done"]
    assert inspect.signature(cls.sample).parameters["done"].default == frozenset()


@pytest.mark.parametrize("name", BACKENDS.names())
def test_what_defines_the_numbers_names_the_backend_and_is_a_setting(name):
    cls = BACKENDS.get(name)
    settings = {"openai": {"base_url": "http://127.0.0.1:1/v1"}}.get(name, {})
    made = object.__new__(cls)  # vLLM need not be here
    for field in dataclasses.fields(cls):
        object.__setattr__(made, field.name, settings.get(field.name, field.default))
    defining = dict(made.defining())
    assert defining.pop("name") == name
    assert set(defining) <= {field.name for field in dataclasses.fields(cls)}
    assert isinstance(made.dtype, str)
