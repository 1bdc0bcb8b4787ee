"""Pure functions on tensors: the formulas of the methods, and nothing that knows a trainer.

Axes. P prompts, G completions per prompt, B rows (P·G or a slice of it), T completion positions (right-padded),
R reference-text positions (right-padded), V vocabulary, Y the answers of an enumerated problem. A bare name is one
number per completion token, [B, T]; every other shape is in the name: `reward_PG`, `logits_BTV`, `weight_BR`, `logp_Y`.

Words. `logp`, `logp_old`, `logp_ref`: log-probability of the taken token under the current, the sampling and the
anchor policy, nats. `logp_base_BR`, `logp_plan_BR`: of a token of a reference text under the current policy, without
and with a plan in the prompt. `mask`: bool, True = the token counts. `q`, `log_q`: guide factor > 0 and its logarithm.
`weight`: detached factor on −logp.

Conventions. Every result is 0 where masked, whatever the inputs hold there (−inf and NaN included), and so is every
gradient. Half-precision inputs are computed and summed in float32; float64 stays float64.
"""

from killick.maths.advantage import centred, standardised
from killick.maths.anchor import closed_form_logp, generalised_kl, shaped_anchor, support_threshold
from killick.maths.kl import forward_exact, k1, k2, k3, k3_ratio, reward_to_go
from killick.maths.reduce import (
    REDUCTIONS,
    Stat,
    aggregate,
    masked_mean,
    masked_quantile,
    masked_sum,
    row_mean,
    row_sum,
    token_count,
    upcast,
    window_tokens,
)
from killick.maths.schedule import cosine_cycles
from killick.maths.surrogate import clipped_surrogate, ratio
from killick.maths.token_weight import (
    dft_weight,
    geometric_weight,
    nll_weight,
    salience,
    shaped_off_policy_weight,
    weighted_nll,
)

__all__ = [
    "REDUCTIONS",
    "Stat",
    "aggregate",
    "centred",
    "clipped_surrogate",
    "closed_form_logp",
    "cosine_cycles",
    "dft_weight",
    "forward_exact",
    "generalised_kl",
    "geometric_weight",
    "k1",
    "k2",
    "k3",
    "k3_ratio",
    "masked_mean",
    "masked_quantile",
    "masked_sum",
    "nll_weight",
    "ratio",
    "reward_to_go",
    "row_mean",
    "row_sum",
    "salience",
    "shaped_anchor",
    "shaped_off_policy_weight",
    "standardised",
    "support_threshold",
    "token_count",
    "upcast",
    "weighted_nll",
    "window_tokens",
]
