"""The other tests rely on shapes being checked; this one fails if the check is off."""

import pytest
import torch
from jaxtyping import TypeCheckError

from killick.maths import k3
from killick.methods.slots import RolloutView


def test_shapes_are_compared_across_arguments():
    good, mask = torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool)
    k3(good, good, mask)
    with pytest.raises(TypeCheckError):
        k3(good, torch.zeros(2, 1), mask)


def test_dtypes_are_checked():
    with pytest.raises(TypeCheckError):
        k3(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(2, 3))


def test_views_are_checked():
    ok, mask = torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool)
    with pytest.raises(TypeCheckError):
        RolloutView(logp=ok, entropy=torch.zeros(3, 2), mask=mask, logp_ref=None, step=0, num_steps=1)
