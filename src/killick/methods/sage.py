"""SAGE: the anchor of a KL penalty shaped by a guide, and which gradient the penalty gives (`kl_form`).

The standard objective E_π[r] − β·KL(π‖π_ref) is stationary at π ∝ π_ref·exp(r/β). SAGE puts q·π_ref in the place of
π_ref and is stationary at π ∝ q·π_ref·exp(r/β). The published loss and this objective are different things: `kl_form`
says which one a run uses, and has no default.
"""

import math
import warnings
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from killick.errors import ConfigError, ContractError
from killick.maths.anchor import shaped_anchor
from killick.maths.kl import k1, k2, reward_to_go
from killick.maths.reduce import Stat
from killick.methods.guides import GUIDES
from killick.methods.kl_forms import KL_FORMS, KLForm
from killick.methods.slots import Guide, RolloutView
from killick.registry import nearest


def check_combination(kl_form: str, guide: Guide | str | None, beta: float) -> KLForm:
    """Refuse combinations that cannot do what they say; warn about those that do nothing.

    Args:
        kl_form: a key of `KL_FORMS`.
        guide: the guide, its registered name, or None.
        beta: weight of the penalty, >= 0.

    Returns:
        The entry of `KL_FORMS`.

    Raises:
        ConfigError: unknown form or guide; a guide without an anchor to shape; β that contradicts the form.

    Warns:
        UserWarning: a guide that does not read the token, under a state-wise reverse-KL form.
    """
    if kl_form not in KL_FORMS:
        raise ConfigError(f"Unknown kl_form {kl_form!r}. {nearest(kl_form, KL_FORMS)}")
    form = KL_FORMS[kl_form]
    if not (math.isfinite(beta) and beta >= 0.0):
        raise ConfigError(f"beta must be a finite number >= 0, found {beta}.")
    if guide is not None and not form.takes_guide:
        able = ", ".join(name for name, entry in KL_FORMS.items() if entry.takes_guide)
        raise ConfigError(f"kl_form {kl_form!r} ({form.does}) has nothing to guide. Remove the guide, or use {able}.")
    if form.needs_reference and beta == 0.0:
        what = "SAGE" if guide is not None else f"kl_form {kl_form!r}"
        raise ConfigError(
            f'{what} needs a reference policy, but beta = 0. Set beta > 0 (0.05 as published), or use kl_form = "none" '
            "without a guide."
        )
    if not form.needs_reference and beta > 0.0:
        raise ConfigError(f"kl_form {kl_form!r} has no anchor, but beta = {beta}. Set beta = 0 or choose a form.")
    _warn_if_idle(form, kl_form, guide)
    return form


def _warn_if_idle(form: KLForm, kl_form: str, guide: Guide | str | None) -> None:
    component = GUIDES.get(guide) if isinstance(guide, str) else guide
    # Guides from other packages need not say; one that does not is taken to read the token.
    if component is None or not form.state_wise_reverse or getattr(component, "reads_token", True):
        return
    name = guide if isinstance(guide, str) else type(component).__name__
    # One place in the code, so that Python's own filter shows it once a process.
    warnings.warn(
        f"The guide {name!r} has no effect in expectation under kl_form {kl_form!r}: its q does not depend on the "
        "token taken, and log q times the mean score is 0. Use k3_loss (published) or k1_reward_to_go (the objective).",
        UserWarning,
        stacklevel=1,
    )


@dataclass(frozen=True)
class ShapedAnchor:
    """What the engine takes into its loss.

    Attributes:
        logp_ref: log(q·π_ref) of the taken token in the dtype of the reference, nats; None without a reference.
        log_q: float32, detached, 0 where masked.
        penalty_to_go: β·Σ_{t'≥t} (logp − logp_ref − log q), float32, detached, 0 where masked; to be subtracted from
            the advantages. Less β·Σ_{t'<t} log q for a guide that reads later tokens. Only for `k1_reward_to_go`.
    """

    logp_ref: Float[Tensor, "B T"] | None
    log_q: Float[Tensor, "B T"]
    penalty_to_go: Float[Tensor, "B T"] | None


@dataclass(frozen=True)
class AnchorShaper:
    """A guide, a form and a weight; turns a view of the rollouts into a shaped anchor.

    Attributes:
        guide: None leaves the anchor alone.
        kl_form: a key of `KL_FORMS`.
        beta: weight of the penalty.

    Raises:
        ConfigError: see `check_combination`.
    """

    guide: Guide | None
    kl_form: str
    beta: float

    def __post_init__(self) -> None:
        check_combination(self.kl_form, self.guide, self.beta)

    @property
    def form(self) -> KLForm:
        """The entry of `KL_FORMS`."""
        return KL_FORMS[self.kl_form]

    def log_q(self, view: RolloutView) -> Float[Tensor, "B T"]:
        """The guide's log q: clamped to its bounds, detached, float32, 0 where masked.

        Raises:
            ContractError: the guide returned another shape, or NaN for a token that counts (asking costs one
                synchronisation per slice on a GPU; a NaN that reached the loss would cost the run).
        """
        if self.guide is None:
            return torch.zeros(view.mask.shape, dtype=torch.float32, device=view.mask.device)
        with torch.no_grad():
            q = self.guide(view).detach().float()
        owner = type(self.guide).__name__
        if q.shape != view.mask.shape:
            raise ContractError(f"{owner} returned q of shape {tuple(q.shape)}, the mask has {tuple(view.mask.shape)}.")
        if bool((q.isnan() & view.mask).any()):
            raise ContractError(
                f"{owner} returned NaN for tokens that count. Check the entropies and log-probabilities of this step: "
                "a guide must be finite wherever they are."
            )
        return torch.where(view.mask, q.clamp(self.guide.q_min, self.guide.q_max).log(), 0.0)

    def shape(self, view: RolloutView) -> ShapedAnchor:
        """The shaped anchor of this slice.

        Raises:
            ContractError: the form reads log π_ref of the taken tokens, but the view has none.
        """
        log_q = self.log_q(view)
        # The exact forward KL reads the reference's logits instead, which are no part of a view.
        if self.form.takes_guide and view.logp_ref is None:
            raise ContractError(f"kl_form {self.kl_form!r} needs logp_ref, but the engine handed in none.")
        logp_ref = None if view.logp_ref is None else shaped_anchor(view.logp_ref.detach(), log_q)
        if self.kl_form != "k1_reward_to_go":
            return ShapedAnchor(logp_ref, log_q, None)
        penalty = reward_to_go(self._k1(view, log_q), view.mask)
        if self.guide is not None and getattr(self.guide, "reads_later", True):
            # The token taken at t moves the q of earlier positions too, so their log q is part of its return. For other
            # guides it is a constant by then: nothing in expectation, only noise.
            penalty = torch.where(view.mask, penalty - (log_q.cumsum(dim=-1) - log_q), 0.0)
        return ShapedAnchor(logp_ref, log_q, self.beta * penalty)

    def _k1(self, view: RolloutView, log_q: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        # From log q itself and not from the shaped log-probability, which may have been rounded to half precision.
        assert view.logp_ref is not None, "callers check for a reference"
        return (k1(view.logp.detach(), view.logp_ref.detach(), view.mask) - log_q).float()

    def extra_per_token(
        self, logp: Float[Tensor, "B T"], shaped: ShapedAnchor, mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T"] | None:
        """A term the engine adds to the loss, weighted by β and reduced as the policy loss is; None for most forms.

        `k2_loss`: ½(logp − log(q·π_ref))², not weighted, 0 where masked. Its gradient flows through `logp` alone.

        Args:
            logp: current policy, with gradient.
            shaped: what `shape` returned for this slice.
            mask: True where the token counts.
        """
        if self.kl_form != "k2_loss":
            return None
        assert shaped.logp_ref is not None, "`shape` refuses k2_loss without a reference"
        return k2(logp, shaped.logp_ref.detach(), mask)

    def metrics(self, view: RolloutView, shaped: ShapedAnchor) -> dict[str, Stat]:
        """Undivided statistics of this slice, on its device and without synchronisation.

        sage/kl                 mean k1 = logp − log(q·π_ref) per token, nats; also without a guide
        sage/q_mean, _min, _max of q over unmasked tokens, after clamping
        sage/q_active_frac      share of unmasked tokens with q ≠ 1
        sage/entropy_active, _inactive   mean entropy, nats, where q ≠ 1 and where q = 1

        At one state, k1 is unbiased for KL(π ‖ q·π_ref/Z) − log Z with Z = Σ q·π_ref, so it may be negative. Without a
        guide only `sage/kl` is returned, without a reference not even that.
        """
        stats = {}
        if view.logp_ref is not None:
            stats["sage/kl"] = Stat.of(self._k1(view, shaped.log_q), view.mask)
        if self.guide is None:
            return stats
        q, active = shaped.log_q.exp(), shaped.log_q != 0
        return stats | {
            "sage/q_mean": Stat.of(q, view.mask),
            "sage/q_min": Stat.of(q, view.mask, "min"),
            "sage/q_max": Stat.of(q, view.mask, "max"),
            "sage/q_active_frac": Stat.of(active.float(), view.mask),
            "sage/entropy_active": Stat.of(view.entropy, view.mask & active),
            "sage/entropy_inactive": Stat.of(view.entropy, view.mask & ~active),
        }
