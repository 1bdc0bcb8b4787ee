"""An enumerable problem: a tree of token choices, where every expectation is an exact sum over answers."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from killick.methods.slots import RolloutView


@dataclass(frozen=True)
class Tree:
    """All answers of `depth` tokens over a vocabulary of `width`.

    A policy is a tensor of logits, one row per inner node. Rows of the [B, T] tensors are the answers, so B = Y.
    """

    depth: int
    width: int

    @property
    def num_nodes(self) -> int:
        return (self.width**self.depth - 1) // (self.width - 1)

    @property
    def choice(self) -> Tensor:
        return torch.cartesian_prod(*[torch.arange(self.width)] * self.depth).reshape(-1, self.depth)

    @property
    def node(self) -> Tensor:
        # Heap numbering: child c of node n is width·n + c + 1.
        nodes = [torch.zeros(self.width**self.depth, dtype=torch.long)]
        for t in range(self.depth - 1):
            nodes.append(self.width * nodes[-1] + self.choice[:, t] + 1)
        return torch.stack(nodes, dim=1)

    @property
    def mask(self) -> Tensor:
        return torch.ones_like(self.choice, dtype=torch.bool)

    def policy(self, seed: int, scale: float = 1.0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return scale * torch.randn(self.num_nodes, self.width, generator=generator, dtype=torch.float64)

    def logp(self, logits: Tensor) -> Tensor:
        return logits.log_softmax(-1)[self.node, self.choice]

    def view(self, logits: Tensor, logits_ref: Tensor) -> RolloutView:
        """What a guide sees when every answer was sampled once."""
        all_logp = logits.detach().log_softmax(-1)
        entropy = -(all_logp.exp() * all_logp).sum(-1)
        return RolloutView(
            logp=self.logp(logits).detach(),
            entropy=entropy[self.node],
            mask=self.mask,
            logp_ref=self.logp(logits_ref).detach(),
            step=0,
            num_steps=1,
        )

    def expected(self, per_token: Tensor, sampler: Tensor) -> Tensor:
        """Expectation of a loss summed over tokens; the sampling policy's weights are not differentiated."""
        weight = self.logp(sampler).sum(-1).exp().detach()
        return (weight * per_token.sum(-1)).sum()

    def visits(self, logits: Tensor) -> Tensor:
        """Probability of reaching each node, detached."""
        weight = self.logp(logits).sum(-1).exp().detach()
        reach = torch.zeros(self.num_nodes, dtype=torch.float64)
        for t in range(self.depth):
            reach.index_add_(0, self.node[:, t], weight)
        return reach


@pytest.fixture
def tree() -> Tree:
    return Tree(depth=2, width=3)


@pytest.fixture
def state() -> Tree:
    """One state, four tokens."""
    return Tree(depth=1, width=4)


@pytest.fixture
def big_tree() -> Tree:
    """Three choices of three: 27 answers."""
    return Tree(depth=3, width=3)
