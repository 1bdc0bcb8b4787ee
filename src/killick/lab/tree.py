"""Problems small enough to enumerate: a tree of token choices with a softmax at every node.

Axes, beside those of `killick.maths`: S independent problems side by side (trees, seeds or settings), Y the answers of
a tree, N its inner nodes, V the branches of a node. A policy is a tensor of logits [S, N, V]. Answers, and the nodes of
a level, are in lexicographic order, so a reshape groups answers by their prefix. All in float64.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from killick.errors import ConfigError

MAX_CELLS = 200_000
"""Bound on answers × tokens × problems, so that a mistyped option cannot exhaust memory."""


def check_range(name: str, value: float, low: float, high: float, *, open_low: bool = False) -> None:
    """Refuse a setting outside its range.

    Raises:
        ConfigError: naming the setting, what was found and what is allowed.
    """
    above = value > low if open_low else value >= low
    if not (above and value <= high):  # NaN compares false
        bracket = "(" if open_low else "["
        raise ConfigError(f"{name} = {value} is out of range. Allowed: {bracket}{low:g}, {high:g}].")


@dataclass(frozen=True)
class Rows:
    """Answers as rows of tokens: row b is an answer of problem `problem_B[b]`.

    Attributes:
        problem_B: index into S.
        node_BT: the node at which each token is chosen.
        choice_BT: the token.
    """

    problem_B: Int[Tensor, " B"]
    node_BT: Int[Tensor, "B T"]
    choice_BT: Int[Tensor, "B T"]

    @property
    def mask(self) -> Bool[Tensor, "B T"]:
        """Every token counts: all answers have the same length."""
        return torch.ones_like(self.choice_BT, dtype=torch.bool)

    def states(self, policy_SNV: Float[Tensor, "S N V"]) -> Float[Tensor, "B T V"]:
        """The logits at the states each row visits."""
        return policy_SNV[self.problem_B[:, None], self.node_BT]

    def taken(self, logp_BTV: Float[Tensor, "B T V"]) -> Float[Tensor, "B T"]:
        """The entry of the token taken."""
        return logp_BTV.gather(-1, self.choice_BT[..., None]).squeeze(-1)


@dataclass(frozen=True)
class Tree:
    """All answers of `depth` tokens over `branching` branches.

    Raises:
        ConfigError: fewer than two branches, no token, or more than a few hundred thousand tokens in all.
    """

    branching: int
    depth: int

    def __post_init__(self) -> None:
        check_range("branching", self.branching, 2, 64)
        check_range("depth", self.depth, 1, 16)
        if self.num_answers * self.depth > MAX_CELLS:
            raise ConfigError(
                f"branching {self.branching} and depth {self.depth} make {self.num_answers} answers. The lab lists "
                f"them all and allows {MAX_CELLS // self.depth}. Choose a smaller tree."
            )

    @property
    def num_answers(self) -> int:
        """Y = V**T."""
        return self.branching**self.depth

    @property
    def num_nodes(self) -> int:
        """N = 1 + V + … + V**(T−1)."""
        return (self.branching**self.depth - 1) // (self.branching - 1)

    def level(self, t: int) -> slice:
        """The nodes at which token t is chosen."""
        first = (self.branching**t - 1) // (self.branching - 1)
        return slice(first, first + self.branching**t)

    @cached_property
    def _nodes(self) -> Int[Tensor, "Y T"]:
        answer_Y = torch.arange(self.num_answers)
        levels = range(self.depth)
        return torch.stack([self.level(t).start + answer_Y // self.branching ** (self.depth - t) for t in levels], 1)

    @cached_property
    def _choices(self) -> Int[Tensor, "Y T"]:
        answer_Y = torch.arange(self.num_answers)
        digits = [answer_Y // self.branching ** (self.depth - 1 - t) % self.branching for t in range(self.depth)]
        return torch.stack(digits, 1)

    def rows(self, problem_B: Int[Tensor, " B"], answer_B: Int[Tensor, " B"]) -> Rows:
        """These answers of these problems."""
        return Rows(problem_B, self._nodes[answer_B], self._choices[answer_B])

    def all_rows(self, num_problems: int) -> Rows:
        """Every answer of every problem, B = S·Y, problem by problem."""
        cell_B = torch.arange(num_problems * self.num_answers)
        return self.rows(cell_B // self.num_answers, cell_B % self.num_answers)

    def answer_logp(self, policy_SNV: Float[Tensor, "S N V"]) -> Float[Tensor, "S Y"]:
        """Log π of whole answers."""
        logp_SNV = policy_SNV.log_softmax(-1)
        return logp_SNV[:, self._nodes, self._choices].sum(-1)

    def visits(self, policy_SNV: Float[Tensor, "S N V"]) -> Float[Tensor, "S N"]:
        """Probability of reaching each node."""
        p_SY = self.answer_logp(policy_SNV).exp()
        return torch.cat([p_SY.reshape(len(p_SY), self.branching**t, -1).sum(-1) for t in range(self.depth)], 1)

    def policy_of(self, logp_SY: Float[Tensor, "S Y"]) -> Float[Tensor, "S N V"]:
        """Logits whose answers have these log-probabilities; a node of probability 0 gets a uniform softmax."""
        levels = []
        for t in range(self.depth):
            branch = logp_SY.reshape(len(logp_SY), self.branching**t, self.branching, -1).logsumexp(-1)
            reached = branch.isfinite().any(-1, keepdim=True)
            levels.append(torch.where(reached, branch, 0.0))
        return torch.cat(levels, 1)

    def sample(self, policy_SNV: Float[Tensor, "S N V"], num: int, generator: torch.Generator) -> Int[Tensor, "S num"]:
        """`num` answers of each problem, drawn from the policy."""
        return torch.multinomial(self.answer_logp(policy_SNV).exp(), num, replacement=True, generator=generator)


@dataclass(frozen=True)
class Problems:
    """S problems on one tree.

    Attributes:
        tree: the answers.
        reference_SNV: logits of π_ref.
        reward_SY: 1.0 right, 0.0 wrong.
    """

    tree: Tree
    reference_SNV: Float[Tensor, "S N V"]
    reward_SY: Float[Tensor, "S Y"]

    @property
    def num(self) -> int:
        """S."""
        return len(self.reference_SNV)

    def repeated(self, times: int) -> "Problems":
        """Each problem `times` times in a row."""
        return Problems(
            self.tree, self.reference_SNV.repeat_interleave(times, 0), self.reward_SY.repeat_interleave(times, 0)
        )


def draw_problems(tree: Tree, num_correct: int, spread: float, num: int, seed: int) -> Problems:
    """Random problems: reference logits ~ N(0, spread²), right answers without replacement.

    Args:
        tree: the answers.
        num_correct: right answers of each problem, fewer than there are answers.
        spread: 0 gives a uniform reference.
        num: problems; problem i does not depend on `num`.
        seed: of the first problem; problem i has seed + i.

    Raises:
        ConfigError: a number out of range, or too many problems for the size of the tree.
    """
    check_range("correct", num_correct, 1, tree.num_answers - 1)
    check_range("spread", spread, 0.0, 20.0)
    check_range("seeds", num, 1, max(1, MAX_CELLS // (tree.num_answers * tree.depth)))
    references, rewards = [], []
    for index in range(num):
        generator = torch.Generator().manual_seed(seed + index)
        normal = torch.randn(tree.num_nodes, tree.branching, generator=generator, dtype=torch.float64)
        right = torch.randperm(tree.num_answers, generator=generator)[:num_correct]
        references.append(spread * normal)
        rewards.append(torch.zeros(tree.num_answers, dtype=torch.float64).index_fill_(0, right, 1.0))
    return Problems(tree, torch.stack(references), torch.stack(rewards))
