"""`dft`: DFT, learn the tokens that are already likely. SORT without a plan."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor

from killick.maths.token_weight import dft_weight


@dataclass(frozen=True)
class DftRepair:
    """w = p_base.

    Source: DFT, arXiv 2508.05629 [code].
    """

    needs_plan: ClassVar[bool] = False

    def __call__(
        self, logp_base_BR: Float[Tensor, "B R"], logp_plan_BR: Float[Tensor, "B R"], mask_BR: Bool[Tensor, "B R"]
    ) -> Float[Tensor, "B R"]:
        """Return w, float32 or wider; the plan is not read."""
        return dft_weight(logp_base_BR, mask_BR)
