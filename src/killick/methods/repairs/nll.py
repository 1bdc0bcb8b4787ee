"""`nll`: plain likelihood, every token counts the same. The control for "do the weights matter?"."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor

from killick.maths.token_weight import nll_weight


@dataclass(frozen=True)
class NllRepair:
    """w = 1.

    With it the repair is ReLIFT's update on failed prompts, joined to the policy loss; ReLIFT itself takes it as a step
    of its own, with a second optimiser.

    Source: ReLIFT, arXiv 2506.07527 [code].
    """

    needs_plan: ClassVar[bool] = False

    def __call__(
        self, logp_base_BR: Float[Tensor, "B R"], logp_plan_BR: Float[Tensor, "B R"], mask_BR: Bool[Tensor, "B R"]
    ) -> Float[Tensor, "B R"]:
        """Return 1 where unmasked, float32 or wider; the plan is not read."""
        return nll_weight(logp_base_BR, mask_BR)
