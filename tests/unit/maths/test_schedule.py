import math

import pytest

from killick.errors import ConfigError
from killick.maths import cosine_cycles


def test_each_cycle_starts_at_the_decayed_upper_value():
    for cycle in range(8):
        assert cosine_cycles(100 * cycle, 800, 0.3, 0.1) == 0.3 * 0.9**cycle


def test_inside_a_cycle_it_is_half_a_cosine():
    assert cosine_cycles(50, 800, 0.3, 0.1) == pytest.approx(0.2)  # halfway
    assert cosine_cycles(25, 800, 0.3, 0.1) == pytest.approx(0.2 + 0.1 * math.cos(math.pi / 4))
    assert cosine_cycles(99, 800, 0.3, 0.1) == pytest.approx(0.1, abs=1e-4)
    assert cosine_cycles(150, 800, 0.3, 0.1) == pytest.approx((0.27 + 0.1) / 2)


def test_the_end_of_the_run_is_the_lower_value_for_good():
    assert cosine_cycles(800, 800, 0.3, 0.1) == cosine_cycles(5000, 800, 0.3, 0.1) == 0.1


def test_a_decayed_upper_value_stops_at_the_lower_one():
    # 1·½² < 0.3: from the third cycle on there is nothing left to do.
    values = [cosine_cycles(step, 80, 1.0, 0.3, decay=0.5) for step in range(20, 81)]
    assert values == [0.3] * 61


def test_equal_bounds_are_constant():
    assert {cosine_cycles(step, 17, 0.2, 0.2) for step in range(20)} == {0.2}


def test_fewer_steps_than_cycles():
    # Three steps over eight parts: steps 0, 1, 2 fall into parts 0, 2 (8/3 = 2.67) and 5 (5.33).
    assert cosine_cycles(0, 3, 1.0, 0.0) == 1.0
    assert cosine_cycles(1, 3, 1.0, 0.0) == pytest.approx(0.81 * 0.5 * (1 + math.cos(math.pi * 2 / 3)))


@pytest.mark.parametrize(
    "bad", [{"step": -1}, {"total": 0}, {"cycles": 0}, {"decay": 0.0}, {"decay": 1.1}, {"upper": 0.05}]
)
def test_arguments_out_of_range(bad):
    with pytest.raises(ConfigError, match="schedule needs"):
        cosine_cycles(**({"step": 0, "total": 8, "upper": 0.3, "lower": 0.1} | bad))
