"""Random numbers addressed by (row key, step, token) instead of drawn from a shared state.

`argmax(log p + Gumbel noise)` is an exact draw from p. Because the noise of a row is a pure function of its key, a
sample is the same in any batch, in any order and after any interruption.
"""

import hashlib

import torch
from jaxtyping import Float, Int
from torch import Tensor

_STEP = 0x9E3779B97F4A7C15
_TOKEN = 0xD1B54A32D192ED03
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB


def row_keys(names: list[tuple[int, str, int]]) -> Int[Tensor, " B"]:
    """One 64-bit key per (seed, problem uid, sample); int64, on the CPU."""
    digests = (
        hashlib.blake2b(f"{seed}\0{uid}\0{sample}".encode(), digest_size=8).digest() for seed, uid, sample in names
    )
    return torch.tensor([int.from_bytes(d, "little", signed=True) for d in digests], dtype=torch.int64)


def gumbel(keys_B: Int[Tensor, " B"], step: int, num_tokens: int) -> Float[Tensor, "B V"]:
    """Independent standard Gumbel numbers for one decoding step.

    Args:
        keys_B: row keys, int64.
        step: completion position, from 0.
        num_tokens: size of the vocabulary, V.

    Returns:
        float32 on the device of the keys. Computed as -log(E), E = -log1p(-u): u near 0 keeps its relative
        precision, so even tokens of probability 1e-9 are drawn at the right rate.

    Source: mixing function of SplitMix64 (Steele, Lea, Flood 2014), applied once to (key, step), once to the token.
    """
    state_B = _mix(keys_B + _signed(_STEP * (step + 1)))
    token_V = torch.arange(1, num_tokens + 1, device=keys_B.device, dtype=torch.int64) * _signed(_TOKEN)
    bits_BV = _mix(state_B[:, None] + token_V)
    u_BV = _shift(bits_BV, 1).to(torch.float32).mul_(2.0**-63)
    # u = 1 would make E infinite and could lose the only allowed token; u = 0 would give infinite noise.
    u_BV.clamp_(min=2.0**-64, max=1.0 - 2.0**-24)
    return u_BV.neg_().log1p_().neg_().log_().neg_()


def _mix(z: Tensor) -> Tensor:
    z = (z ^ _shift(z, 30)).mul_(_signed(_MIX_1))
    z = (z ^ _shift(z, 27)).mul_(_signed(_MIX_2))
    return z ^ _shift(z, 31)


def _shift(z: Tensor, bits: int) -> Tensor:
    """Logical right shift; torch shifts int64 arithmetically, so the copied sign bits are cleared."""
    return (z >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    """The same 64 bits read as a signed integer (torch has no uint64 arithmetic)."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value
