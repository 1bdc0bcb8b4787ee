"""When a signal ends a run: after the step, in every process; the second one of the same process at once."""

import io
import signal
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from rich.console import Console
from transformers import TrainerControl, TrainerState

from killick.engines.trl.callbacks import SaveOnInterrupt

ARGS = SimpleNamespace(device=torch.device("cpu"))


def step(guard):
    control = TrainerControl()
    guard.on_step_end(ARGS, TrainerState(), control)
    return control.should_save, control.should_training_stop


@pytest.fixture
def guard():
    return SaveOnInterrupt(Console(file=io.StringIO()))


@pytest.fixture
def other(monkeypatch):
    """A second process; its vote is what the fixture holds."""
    votes = SimpleNamespace(other=0)
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "all_reduce", lambda tensor, op: tensor.clamp_(min=votes.other))
    return votes


def test_first_signal_ends_the_step_second_ends_the_run(guard):
    before = signal.getsignal(signal.SIGINT)
    with guard:
        assert step(guard) == (False, False)
        signal.raise_signal(signal.SIGINT)
        assert not guard.interrupted  # not before all processes have agreed
        assert step(guard) == (True, True)
        assert guard.interrupted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before


def test_own_signal_reaches_the_others(guard, other):
    assert step(guard) == (False, False)
    with guard:
        signal.raise_signal(signal.SIGTERM)
        assert step(guard) == (True, True)


def test_signal_to_another_process_is_not_our_first(guard, other):
    """torchrun passes Ctrl-C on one process after the other: ours may come while the checkpoint is being written."""
    other.other = 1
    with guard:
        assert step(guard) == (True, True)
        assert guard.interrupted
        signal.raise_signal(signal.SIGINT)  # does not raise
