"""Statistics of unequal slices and processes: pooled and divided once, not averaged as they come."""

from collections import defaultdict

import pytest
import torch

from killick.engines.trl.metrics import MetricSink
from killick.maths import Stat


class Processes:
    """Stands for accelerate: `gather` concatenates what every process would send. Counts the collectives."""

    def __init__(self, *others):
        self.others = others  # one function a process: what it sends, given what we send
        self.calls = 0

    def gather(self, mine):
        self.calls += 1
        return torch.cat([mine, *[other(mine) for other in self.others]])


def sink(*others):
    store = {"train": defaultdict(list), "eval": defaultdict(list)}
    processes = Processes(*others)
    return MetricSink(store, processes), store, processes


def stat(values, reduce="mean"):
    row = torch.tensor([values])
    return Stat.of(row, torch.ones_like(row, dtype=torch.bool), reduce)


def all_of(values):
    return {f"x_{reduce}": stat(values, reduce) for reduce in ("mean", "min", "max")}


def test_slices_of_unequal_size_are_pooled():
    """Means 2 and 8 over 1 and 3 tokens: (2 + 24) / 4 = 6.5, not 5; the least of all is 1, not the mean of 2 and 1."""
    ours, store, processes = sink()
    ours.add(all_of([2.0]), train=True)
    ours.add(all_of([1.0, 11.0, 12.0]), train=True)
    assert processes.calls == 0
    assert not store["train"]
    assert ours.flush(train=True) == {"x_max": 12.0, "x_mean": 6.5, "x_min": 1.0}
    assert processes.calls == 1


def test_processes_are_pooled():
    """The other process holds 5 tokens of sum 10, minimum −3, maximum 4: mean (4 + 10) / (2 + 5) = 2."""
    other = {"x_max": (4.0, 5.0), "x_mean": (10.0, 5.0), "x_min": (-3.0, 5.0)}
    ours, _, _ = sink(lambda mine: torch.tensor([[other[name] for name in sorted(other)]]))
    ours.add(all_of([1.0, 3.0]), train=True)
    assert ours.flush(train=True) == {"x_max": 4.0, "x_mean": 2.0, "x_min": -3.0}


def test_the_order_of_names_may_differ_between_processes():
    """Each process sorts; here the second one is a sink of its own, filled in the opposite order."""
    sent = []
    second, _, _ = sink(lambda mine: (sent.append(mine), mine)[1])
    second.add({"b": stat([4.0]), "a": stat([2.0])}, train=True)
    second.flush(train=True)
    first, _, _ = sink(lambda mine: sent[0])
    first.add({"a": stat([0.0])}, train=True)
    first.add({"b": stat([10.0])}, train=True)
    assert first.flush(train=True) == {"a": 1.0, "b": 7.0}


def test_a_flush_starts_anew_and_modes_are_apart():
    ours, _, processes = sink()
    ours.add({"x": stat([1.0])}, train=True)
    ours.add({"x": stat([5.0])}, train=False)
    assert ours.flush(train=True) == {"x": 1.0}
    assert ours.flush(train=True) == {}
    assert processes.calls == 1  # nothing kept, nothing sent: the final log call of the host finds an empty sink
    assert ours.flush(train=False) == {"x": 5.0}


def test_what_saw_no_token_is_left_out():
    ours, _, _ = sink()
    row = torch.tensor([[1.0, 2.0]])
    nothing = torch.zeros_like(row, dtype=torch.bool)
    ours.add({f"x_{r}": Stat.of(row, nothing, r) for r in ("mean", "min", "max")}, train=True)
    assert ours.flush(train=True) == {}
    ours.add({"x_mean": Stat.of(row, nothing), "y": stat([1.0])}, train=True)
    ours.add({"x_mean": stat([3.0]), "y": stat([2.0])}, train=True)
    assert ours.flush(train=True) == {"x_mean": 3.0, "y": 1.5}


def test_scalars_go_straight_to_the_host():
    ours, store, processes = sink()
    ours.add_scalar("group/all_wrong_frac", torch.tensor(0.25), train=False)
    assert store["eval"]["group/all_wrong_frac"] == [0.25]
    assert processes.calls == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_wide_and_narrow_values_leave_as_float32(dtype):
    ours, _, _ = sink()
    ours.add({"x": Stat.of(torch.tensor([[0.5, 1.0]], dtype=dtype), torch.tensor([[True, True]]))}, train=True)
    assert ours.flush(train=True) == {"x": 0.75}
