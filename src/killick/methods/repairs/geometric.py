"""`geometric`: SORT, learn the tokens that the plan makes likely."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor

from killick.maths.token_weight import geometric_weight


@dataclass(frozen=True)
class GeometricRepair:
    """w = sqrt(p_base · p_plan).

    Source: SORT, arXiv 2605.11505 [paper].
    """

    needs_plan: ClassVar[bool] = True

    def __call__(
        self, logp_base_BR: Float[Tensor, "B R"], logp_plan_BR: Float[Tensor, "B R"], mask_BR: Bool[Tensor, "B R"]
    ) -> Float[Tensor, "B R"]:
        """Return w, float32 or wider; rows without a plan get DFT's weight."""
        return geometric_weight(logp_base_BR, logp_plan_BR, mask_BR)
