"""The table of `kl_form`: which gradient each gives and what it needs. Imports no torch: recipes read it too."""

from dataclasses import dataclass


@dataclass(frozen=True)
class KLForm:
    """One way to hold the policy to its anchor.

    Attributes:
        does: one line for messages and reports.
        needs_reference: whether there is an anchor at all, hence β > 0 (and β = 0 otherwise).
        takes_guide: whether a guide may shape the anchor.
        host_kl: whether the host's own k3 term carries the penalty; if not, its β must be 0 during the loss call.
        bias_correction: TRL's `use_bias_correction_kl`; None where its KL term is not used.
        state_wise_reverse: whether it descends the reverse KL state by state, where a guide that does not read the
            token cancels in expectation.
    """

    does: str
    needs_reference: bool = True
    takes_guide: bool = True
    host_kl: bool = False
    bias_correction: bool | None = None
    state_wise_reverse: bool = False


KL_FORMS = {
    "k3_loss": KLForm(
        "published SAGE: k3 of the shaped anchor in the loss, descends the forward KL",
        host_kl=True,
        bias_correction=False,
    ),
    "k3_ratio": KLForm(
        "ratio-corrected k3 in the loss (TRL 1.16 default), descends the reverse KL state by state",
        host_kl=True,
        bias_correction=True,
        state_wise_reverse=True,
    ),
    "k2_loss": KLForm("k2 in the loss, descends the reverse KL state by state", state_wise_reverse=True),
    "k1_reward_to_go": KLForm("k1 in the reward, summed to the end: the exact gradient of the objective"),
    "forward_exact": KLForm("the exact forward KL at visited states in the loss", takes_guide=False),
    "none": KLForm("no anchor", needs_reference=False, takes_guide=False),
}
"""Identities behind these lines: R1–R8 of docs/methods.md, checked by enumeration in the tests."""
