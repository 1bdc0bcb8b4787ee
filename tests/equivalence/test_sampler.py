"""Our sampler equals softmax sampling after Hugging Face's own temperature and top-p, and its noise is independent."""

import itertools

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import TemperatureLogitsWarper, TopPLogitsWarper

from killick.errors import DataError
from killick.evaluate import sample as sample_module
from killick.evaluate.noise import gumbel, row_keys
from killick.evaluate.sample import GumbelSampler
from killick.evaluate.settings import SamplingSettings

NUM_DRAWS = 100_000


def keys(num, seed=0, uid="p"):
    return row_keys([(seed, uid, n) for n in range(num)])


def asked(**changes):
    return SamplingSettings(**{"num_samples": 4, "max_tokens": 8, "seed": 0, **changes})


def draw(logits, row_keys_B, step=0, prompt_width=3, **changes):
    sampler = GumbelSampler(row_keys_B, prompt_width, asked(**changes))
    scores = logits.expand(len(row_keys_B), -1).clone()
    return sampler(torch.zeros(len(row_keys_B), prompt_width + step, dtype=torch.long), scores).argmax(-1).numpy()


def assert_chi_square(observed, expected):
    """Mean + 4 standard deviations of chi-square: for a right sampler exceeded less than once in 1,000."""
    kept = expected > 0
    assert observed[~kept].sum() == 0
    chi2, df = (((observed - expected) ** 2)[kept] / expected[kept]).sum(), kept.sum() - 1
    assert chi2 <= df + 4 * (2 * df) ** 0.5


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.4])
@pytest.mark.parametrize("step", [0, 5])
def test_frequencies_equal_the_softmax_after_hugging_face_warpers(temperature, top_p, step):
    logits = torch.tensor([[2.0, 1.0, 0.5, 0.0, -1.0, -2.5, -4.0, float("-inf")]])
    warped = TopPLogitsWarper(top_p)(None, TemperatureLogitsWarper(temperature)(None, logits))
    expected = warped.double().softmax(-1)[0].numpy() * NUM_DRAWS
    made = draw(logits, keys(NUM_DRAWS), step=step, temperature=temperature, top_p=top_p)
    assert_chi_square(np.bincount(made, minlength=8), expected)


def test_rare_tokens_come_at_their_rate():
    """300 tokens of 1e-5 each beside one of 0.997: 0.003 * 100,000 = 300 tail draws, standard deviation 17."""
    logits = torch.cat([torch.tensor([0.997]), torch.full((300,), 1e-5)]).log()[None]
    made = np.concatenate([draw(logits, part) for part in keys(NUM_DRAWS).split(20_000)])
    assert abs((made > 0).sum() - 300) < 4 * 17.3
    assert len(np.unique(made)) > 150  # 300 * (1 - exp(-1)) = 190 of them expected, standard deviation below 9


def test_noise_is_finer_than_a_24_bit_draw_where_rare_tokens_are_decided():
    """The 400 largest of 4 million: E < 1e-4 holds only 1,700 levels of 2^-24, where about 45 pairs would coincide."""
    largest = gumbel(keys(4000), 0, 1000).flatten().topk(400).values
    assert len(largest.unique()) >= 398


def test_gumbel_moments_and_range():
    noise = gumbel(keys(2000), 0, 500).double()
    assert noise.shape == (2000, 500)
    assert torch.isfinite(noise).all()
    assert noise.mean().item() == pytest.approx(0.57722, abs=0.005)  # Euler's constant; standard error 0.0013
    assert noise.var().item() == pytest.approx(1.64493, abs=0.02)  # pi^2 / 6


STREAMS = {
    "next sample": lambda base, seed: ((0, "p", n) for n in range(1, NUM_DRAWS + 1)),
    "next seed": lambda base, seed: ((1, "p", n) for n in range(NUM_DRAWS)),
    "next problem": lambda base, seed: ((0, "q", n) for n in range(NUM_DRAWS)),
}


@pytest.mark.parametrize("other", [*STREAMS, "next step", "next token"])
def test_neighbouring_streams_are_independent(other):
    """Joint counts of two draws in a 4 x 4 table against the product of the exact marginals."""
    logits = torch.tensor([[1.0, 0.5, 0.0, -0.5]])
    p = logits.double().softmax(-1)[0].numpy()
    first = draw(logits, keys(NUM_DRAWS))
    if other == "next step":
        second = draw(logits, keys(NUM_DRAWS), step=1)
    elif other == "next token":
        noise = gumbel(keys(NUM_DRAWS), 0, 8)
        first = (logits + noise[:, :4]).argmax(-1).numpy()
        second = (logits + noise[:, 4:]).argmax(-1).numpy()
    else:
        second = draw(logits, row_keys(list(STREAMS[other](0, 0))))
    joint = np.bincount(first * 4 + second, minlength=16)
    assert_chi_square(joint, np.outer(p, p).ravel() * NUM_DRAWS)


def test_correlation_across_many_streams_is_noise():
    """64 rows x 64 steps at 1,024 tokens: the largest of about 8 million correlations of independent noise."""
    rows = keys(64)
    for fixed in ("rows", "steps"):
        if fixed == "rows":
            values = gumbel(rows, 0, 4096).double()
        else:
            values = torch.cat([gumbel(rows[:1], step, 4096) for step in range(64)]).double()
        corr = torch.corrcoef(values).fill_diagonal_(0).abs()
        assert corr.max() < 6 / 4096**0.5


def test_a_row_does_not_depend_on_its_batch():
    many = keys(50)
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    whole = gumbel(many, 3, 17)
    assert torch.equal(gumbel(many[order], 3, 17), whole[order])
    assert torch.equal(gumbel(many[7:8], 3, 17)[0], whole[7])
    assert torch.equal(gumbel(many, 3, 9), whole[:, :9])  # nor on the padding of the vocabulary


def test_blocks_of_rows_change_nothing(monkeypatch):
    logits, ids = torch.randn(20, 30, generator=torch.Generator().manual_seed(0)), torch.zeros(20, 5, dtype=torch.long)
    sampler = GumbelSampler(keys(20), 3, asked(top_p=0.8))
    whole = sampler(ids, logits.clone())
    monkeypatch.setattr(sample_module, "_MAX_NOISE_ELEMENTS", 70)  # two rows a block
    assert torch.equal(sampler(ids, logits.clone()), whole)


def test_keys_are_distinct_and_signed():
    names = list(itertools.product(range(3), ["a", "b", "a1"], range(30)))
    made = row_keys(names)
    assert len(set(made.tolist())) == len(names)
    assert made.min() < 0 < made.max()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_unusable_logits_are_an_error(bad):
    with pytest.raises(DataError, match="NaN or infinite"):
        draw(torch.tensor([[0.0, bad]]), keys(2))
    with pytest.raises(DataError, match="NaN or infinite"):
        draw(torch.full((1, 2), float("-inf")), keys(2))


def test_noise_matches_an_independent_scalar_computation():
    """SplitMix64's mixing in plain Python integers, with unsigned wrap-around, for one (row, step, token)."""

    def mix(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    row = keys(5)[4:]
    state = mix((row.item() + 0x9E3779B97F4A7C15 * 3) % 2**64)
    noise = gumbel(row, 2, 6)[0].double().numpy()
    u = np.array([(mix((state + 0xD1B54A32D192ED03 * (v + 1)) % 2**64) >> 1) / 2**63 for v in range(6)])
    np.testing.assert_allclose(noise, -np.log(-np.log1p(-u)), rtol=1e-5)
