import math

import pytest
import torch

from killick.maths import forward_exact, k1, k2, k3, k3_ratio, reward_to_go

NAN, INF = float("nan"), float("inf")
ONE = torch.ones(1, 3, dtype=torch.bool)


def test_three_tokens_by_hand():
    # π = ½ throughout; π_ref = ½, ¼, 1, hence u = 1, ½, 2.
    logp, logp_ref = torch.full((1, 3), 0.5).log(), torch.tensor([[0.5, 0.25, 1.0]]).log()
    ln2 = math.log(2)
    assert k1(logp, logp_ref, ONE)[0].tolist() == pytest.approx([0.0, ln2, -ln2])
    assert k2(logp, logp_ref, ONE)[0].tolist() == pytest.approx([0.0, ln2**2 / 2, ln2**2 / 2])
    # u − 1 − ln u
    assert k3(logp, logp_ref, ONE)[0].tolist() == pytest.approx([0.0, ln2 - 0.5, 1.0 - ln2])
    # ρ = ½/¼ = 2
    doubled = k3_ratio(logp, torch.full((1, 3), 0.25).log(), logp_ref, ONE)
    assert doubled[0].tolist() == pytest.approx([0.0, 2 * ln2 - 1.0, 2.0 - 2 * ln2])


def test_k3_is_exact_near_the_anchor():
    # u − 1 − ln u → d²/2 for a small log-ratio d; the subtraction in float32 would leave nothing of 5e-9.
    value = k3(torch.zeros(1, 1), torch.full((1, 1), 1e-4), ONE[:, :1])
    assert value.item() == pytest.approx(5e-9, rel=0.02)


def test_one_ratio_is_differentiated_and_the_old_policy_is_not():
    logp, logp_ref = torch.tensor([[-1.0]], requires_grad=True), torch.tensor([[-2.0]])
    old = torch.tensor([[-1.0]], requires_grad=True)
    k3_ratio(logp, old, logp_ref, ONE[:, :1]).sum().backward()
    # ρ·(log π − log π_ref) = 1·1, where plain k3 would give 1 − u = 1 − e⁻¹.
    assert logp.grad.item() == pytest.approx(1.0)
    assert old.grad is None


@pytest.mark.parametrize("estimator", [k1, k2, k3, lambda p, r, m: k3_ratio(p, p.detach(), r, m)])
@pytest.mark.parametrize("hole", [NAN, INF, -INF])
def test_masked_positions_cannot_poison_values_or_gradients(estimator, hole):
    mask = torch.tensor([[True, False, True]])
    clean = torch.tensor([[-1.0, -1.0, -2.0]], requires_grad=True)
    dirty = torch.tensor([[-1.0, hole, -2.0]], requires_grad=True)
    logp_ref = torch.tensor([[-1.5, hole, -1.0]])
    expected = estimator(clean, torch.tensor([[-1.5, -9.0, -1.0]]), mask)
    expected.sum().backward()
    result = estimator(dirty, logp_ref, mask)
    result.sum().backward()
    assert result[0, 1].item() == 0.0
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(dirty.grad, clean.grad)
    assert dirty.grad[0, 1].item() == 0.0


@pytest.mark.parametrize("estimator", [k1, k2, k3])
def test_bfloat16_is_computed_in_float32(estimator):
    logp = torch.tensor([[-1.0, -3.0, -0.5]], dtype=torch.bfloat16)
    logp_ref = torch.tensor([[-1.25, -2.0, -0.75]], dtype=torch.bfloat16)
    result = estimator(logp, logp_ref, ONE)
    assert result.dtype == torch.float32
    assert torch.equal(result, estimator(logp.float(), logp_ref.float(), ONE))


def logits(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_forward_exact_by_hand():
    now, ref = torch.tensor([[[0.5, 0.5]]]).log(), torch.tensor([[[0.25, 0.75]]]).log()
    expected = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    assert forward_exact(now, ref, ONE[:, :1]).item() == pytest.approx(expected)


def test_forward_exact_has_the_derived_gradient_in_logits():
    now, ref = logits(0, 2, 5, 7).requires_grad_(), logits(1, 2, 5, 7).requires_grad_()
    mask = torch.rand(2, 5, generator=torch.Generator().manual_seed(2)) < 0.6
    forward_exact(now, ref, mask, chunk=2).sum().backward()
    # ∂KL(π_ref‖π)/∂logits = π − π_ref
    torch.testing.assert_close(now.grad, (now.softmax(-1) - ref.softmax(-1)).detach() * mask.unsqueeze(-1))
    assert ref.grad is None


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_chunks_do_not_change_the_result(chunk):
    now, ref, mask = logits(0, 2, 5, 7), logits(1, 2, 5, 7), torch.ones(2, 5, dtype=torch.bool)
    expected = (ref.softmax(-1) * (ref.log_softmax(-1) - now.log_softmax(-1))).sum(-1)
    torch.testing.assert_close(forward_exact(now, ref, mask, chunk=chunk), expected)


def test_forward_exact_survives_excluded_tokens_and_masked_nan():
    now, ref = logits(0, 1, 2, 3), logits(1, 1, 2, 3)
    now[0, 1], ref[0, 1] = NAN, NAN
    now[0, 0, 2] = ref[0, 0, 2] = -INF
    now.requires_grad_()
    mask = torch.tensor([[True, False]])
    result = forward_exact(now, ref, mask)
    result.sum().backward()
    pair_now, pair_ref = now.detach()[:, :1, :2], ref[:, :1, :2]
    torch.testing.assert_close(result[:, :1], forward_exact(pair_now, pair_ref, mask[:, :1]))
    assert result[0, 1].item() == 0.0
    assert now.grad.isfinite().all()
    assert now.grad[0, 1].eq(0).all()


def test_forward_exact_is_infinite_where_the_policy_excludes_an_allowed_token():
    now = torch.tensor([[[0.0, -INF]]])
    assert forward_exact(now, torch.zeros(1, 1, 2), ONE[:, :1]).item() == INF


def test_reward_to_go_skips_masked_tokens():
    values = torch.tensor([[1.0, NAN, 2.0, 4.0, 100.0]])
    mask = torch.tensor([[True, False, True, True, False]])
    assert reward_to_go(values, mask).tolist() == [[7.0, 0.0, 6.0, 4.0, 0.0]]


def test_reward_to_go_is_accumulated_in_float32():
    ones = torch.ones(1, 1024, dtype=torch.bfloat16)
    assert reward_to_go(ones, ones.bool())[0, 0].item() == 1024.0


@pytest.mark.parametrize("estimator", [k1, k2, k3, lambda p, r, m: k3_ratio(p, r.detach() - 0.3, r, m)])
def test_gradcheck(estimator):
    logp = logits(3, 2, 4).requires_grad_()
    logp_ref, mask = logits(4, 2, 4), torch.rand(2, 4, generator=torch.Generator().manual_seed(5)) < 0.7
    assert torch.autograd.gradcheck(lambda x: estimator(x, logp_ref, mask), (logp,))


def test_gradcheck_of_the_exact_forward_kl_and_of_the_return_to_go():
    mask = torch.tensor([[True, False, True], [True, True, False]])
    ref = logits(7, 2, 3, 4)
    assert torch.autograd.gradcheck(
        lambda x: forward_exact(x, ref, mask, chunk=2), (logits(6, 2, 3, 4).requires_grad_(),)
    )
    assert torch.autograd.gradcheck(lambda x: reward_to_go(x, mask), (logits(8, 2, 3).requires_grad_(),))
