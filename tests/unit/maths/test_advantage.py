import pytest
import torch

from killick.maths import centred, standardised

NAN = float("nan")


def test_one_right_of_four():
    reward_PG = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    assert centred(reward_PG).tolist() == [[0.75, -0.25, -0.25, -0.25]]
    # Variance (0.75² + 3·0.25²)/3 = 0.25, hence std 0.5, to which 1e-4 is added.
    expected = [0.75 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001]
    assert standardised(reward_PG)[0].tolist() == pytest.approx(expected)


def test_the_std_is_unbiased():
    # Two members at ±½: unbiased std 0.7071, population std 0.5.
    assert standardised(torch.tensor([[1.0, 0.0]]))[0, 0].item() == pytest.approx(0.5 / (0.5**0.5 + 1e-4))


def test_unscorable_members_are_left_out_and_get_nothing():
    with_nan = torch.tensor([[1.0, NAN, 0.0, 0.0]])
    without = torch.tensor([[1.0, 0.0, 0.0]])
    for rule in (centred, standardised):
        result = rule(with_nan)
        assert result[0, 1].item() == 0.0
        torch.testing.assert_close(result[:, [0, 2, 3]], rule(without))


def test_groups_without_signal_give_zero():
    for group in ([0.0] * 4, [1.0] * 4, [NAN] * 4, [1.0, NAN, NAN, NAN]):
        for rule in (centred, standardised):
            assert rule(torch.tensor([group])).tolist() == [[0.0] * 4]


def test_groups_do_not_mix():
    reward_PG = torch.tensor([[1.0, 0.0], [5.0, 5.0]])
    assert centred(reward_PG).tolist() == [[0.5, -0.5], [0.0, 0.0]]


def test_half_precision():
    assert standardised(torch.tensor([[1.0, 0.0]], dtype=torch.bfloat16)).dtype == torch.float32
