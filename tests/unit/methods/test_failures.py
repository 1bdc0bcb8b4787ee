import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from killick.errors import ConfigError, DataError, RecordError
from killick.methods.failures import Failure, FailureBuffer


def filled(*entries, capacity=10):
    buffer = FailureBuffer(capacity)
    for uid, step in entries:
        buffer.push(uid, step)
    return buffer


def test_first_in_first_out():
    buffer = filled(("a", 1), ("b", 1), ("c", 2))
    assert buffer.take(2) == [Failure("a", 1), Failure("b", 1)]
    assert len(buffer) == 1
    assert buffer.take(1) == [Failure("c", 2)]
    assert len(buffer) == 0


def test_the_newest_failure_of_a_prompt_takes_the_place_of_the_old_one_at_the_end():
    buffer = filled(("a", 1), ("b", 1), ("a", 5))
    assert len(buffer) == 2
    assert buffer.take(2) == [("b", 1), ("a", 5)]
    assert buffer.num_dropped == 0


def test_a_prompt_that_was_taken_can_come_back():
    buffer = filled(("a", 1))
    buffer.take(1)
    buffer.push("a", 7)
    assert buffer.take(1) == [("a", 7)]


def test_a_full_buffer_drops_the_oldest_and_counts():
    buffer = filled(("a", 1), ("b", 2), ("c", 3), ("d", 4), capacity=2)
    assert buffer.num_dropped == 2
    assert buffer.take(2) == [("c", 3), ("d", 4)]


def test_a_repeated_failure_in_a_full_buffer_drops_nobody():
    buffer = filled(("a", 1), ("b", 2), ("a", 3), capacity=2)
    assert buffer.num_dropped == 0
    assert buffer.take(2) == [("b", 2), ("a", 3)]


@pytest.mark.parametrize("num", [3, -1])
def test_taking_more_than_wait_is_refused_and_takes_nothing(num):
    buffer = filled(("a", 1), ("b", 2))
    with pytest.raises(ValueError, match="2 wait"):
        buffer.take(num)
    assert buffer.take(2) == [("a", 1), ("b", 2)]
    assert buffer.take(0) == []


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_buffer_that_holds_nothing_is_refused(capacity):
    with pytest.raises(ConfigError, match="at least 1"):
        FailureBuffer(capacity)


@pytest.mark.parametrize("step", [-1, True])
def test_what_could_not_be_loaded_is_not_stored(step):
    buffer = FailureBuffer(2)
    with pytest.raises(DataError, match="step"):
        buffer.push("a", step)
    assert len(buffer) == 0


# Checkpoints -------------------------------------------------------------------------------------------------------


def through_json(buffer, capacity):
    other = FailureBuffer(capacity)
    other.load_state_dict(json.loads(json.dumps(buffer.state_dict())))
    return other


def test_a_saved_state_brings_back_order_and_count():
    buffer = filled(("a", 1), ("b", 2), ("c", 2), ("é\n", 3), ("b", 4), capacity=3)
    copy = through_json(buffer, 3)
    assert copy.num_dropped == buffer.num_dropped == 1
    assert copy.take(3) == buffer.take(3) == [("c", 2), ("é\n", 3), ("b", 4)]


def test_a_saved_state_is_not_tied_to_the_buffer():
    buffer = filled(("a", 1))
    state = buffer.state_dict()
    buffer.push("b", 2)
    assert state == {"entries": [["a", 1]], "num_dropped": 0}


def test_loading_replaces_what_was_there():
    buffer = filled(("x", 1), ("y", 1))
    buffer.load_state_dict(filled(("a", 3)).state_dict())
    assert buffer.take(len(buffer)) == [("a", 3)]


def test_a_state_of_a_larger_buffer_keeps_the_newest_and_counts():
    buffer = filled(("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), capacity=4)  # "a" is dropped here
    copy = through_json(buffer, 2)
    assert copy.num_dropped == 3
    assert copy.take(2) == [("d", 4), ("e", 5)]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (None, "NoneType"),
        ([], "list"),
        ({}, "found \\[\\]"),
        ({"entries": []}, "entries and num_dropped"),
        ({"entries": [], "num_dropped": 0, "more": 1}, "more"),
        ({"entries": {"a": 1}, "num_dropped": 0}, "must be a list, found dict"),
        ({"entries": [], "num_dropped": -1}, "-1"),
        ({"entries": [], "num_dropped": 1.0}, "1.0"),
        ({"entries": [], "num_dropped": True}, "True"),
        ({"entries": ["ab"], "num_dropped": 0}, "'ab'"),
        ({"entries": [["a"]], "num_dropped": 0}, "\\['a'\\]"),
        ({"entries": [["a", 1, 2]], "num_dropped": 0}, "2\\]"),
        ({"entries": [[7, 1]], "num_dropped": 0}, "\\[7, 1\\]"),
        ({"entries": [[["a"], 1]], "num_dropped": 0}, "uid"),
        ({"entries": [["a", "1"]], "num_dropped": 0}, "'1'"),
        ({"entries": [["a", None]], "num_dropped": 0}, "None"),
        ({"entries": [["a", -1]], "num_dropped": 0}, "-1"),
        ({"entries": [["a", 1], ["a", 2]], "num_dropped": 0}, "twice"),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(state, reason):
    buffer = filled(("kept", 9))
    with pytest.raises(RecordError, match=f"damaged: .*{reason}"):
        buffer.load_state_dict(state)
    assert buffer.state_dict() == {"entries": [["kept", 9]], "num_dropped": 0}


def test_the_message_about_a_damaged_state_stays_short():
    with pytest.raises(RecordError) as caught:
        FailureBuffer(2).load_state_dict({"entries": [["a" * 10_000]], "num_dropped": 0})
    assert len(str(caught.value)) < 300


# Against a list that is searched -----------------------------------------------------------------------------------


class Model(RuleBasedStateMachine):
    """Random pushes, takes and checkpoints against the plainest implementation: a list of pairs, oldest first."""

    def __init__(self):
        super().__init__()
        self.capacity, self.step, self.dropped, self.line = 4, 0, 0, []
        self.buffer = FailureBuffer(self.capacity)

    def shorten(self):
        self.dropped += max(len(self.line) - self.capacity, 0)
        self.line = self.line[-self.capacity :]

    @rule(uid=st.sampled_from("abcdefg"))
    def push(self, uid):
        self.step += 1
        self.buffer.push(uid, self.step)
        self.line = [pair for pair in self.line if pair[0] != uid] + [(uid, self.step)]
        self.shorten()

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def take(self, data):
        num = data.draw(st.integers(0, len(self.line)))
        assert self.buffer.take(num) == self.line[:num]
        self.line = self.line[num:]

    @rule(capacity=st.integers(1, 6))
    def resume(self, capacity):
        self.buffer, self.capacity = through_json(self.buffer, capacity), capacity
        self.shorten()

    @invariant()
    def agrees(self):
        assert self.buffer.state_dict() == {"entries": [list(pair) for pair in self.line], "num_dropped": self.dropped}
        assert len(self.buffer) == len(self.line) <= self.capacity


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=25)


@given(st.lists(st.sampled_from("abcde"), max_size=30), st.integers(1, 5))
def test_nothing_is_lost_uncounted(uids, capacity):
    """Every push is waiting, was replaced by a later one of its prompt, or was dropped."""
    buffer, replaced = FailureBuffer(capacity), 0
    for step, uid in enumerate(uids):
        replaced += any(waiting == uid for waiting, _ in buffer.state_dict()["entries"])
        buffer.push(uid, step)
    assert len(uids) == len(buffer) + replaced + buffer.num_dropped
