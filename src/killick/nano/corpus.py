"""Pretraining text of the nano world as padded token arrays: three kinds of turns, loss on the answer only."""

import random
from typing import NamedTuple

import numpy as np

from killick.nano.tokenizer import CHARACTERS, SPECIAL
from killick.nano.world import Solved, pretraining_stream, write
from killick.tasks.countdown import plan_of

# Measured in a prototype: with 12% plan and 18% guided turns a given plan hurt; with these shares it helps.
SOLVE_FRAC, PLAN_FRAC = 0.34, 0.26
MAX_TOKENS = 64

# Special tokens travel through Python strings as the control characters of their own index.
_PAD, _EOS, _ANSWER = SPECIAL.index("<pad>"), SPECIAL.index("<eos>"), SPECIAL.index("<answer>")
_SOLVE, _PLAN, _GUIDED = (chr(SPECIAL.index(f"<{kind}>")) for kind in ("solve", "plan", "guided"))
_IDS = np.zeros(128, dtype=np.uint8)
_IDS[: len(SPECIAL)] = np.arange(len(SPECIAL))
_IDS[[ord(character) for character in CHARACTERS]] = np.arange(len(SPECIAL), len(SPECIAL) + len(CHARACTERS))


class Corpus(NamedTuple):
    """Encoded examples, right-padded.

    Attributes:
        tokens: ids, uint8, [N, MAX_TOKENS].
        answer_start: position of the first answer token, [N].
        lengths: tokens of the whole example, `<eos>` included, [N].
    """

    tokens: np.ndarray
    answer_start: np.ndarray
    lengths: np.ndarray


def example(solved: Solved, u: float) -> tuple[str, str]:
    """(user turn, answer) of the kind chosen by u in [0, 1); the kind token is a control character."""
    problem, solution = f"{solved.problem.text}:", write(solved.solution)
    if u < SOLVE_FRAC:
        return f"{_SOLVE}{problem}", solution
    plan = plan_of(solution)
    if u < SOLVE_FRAC + PLAN_FRAC:
        return f"{_PLAN}{problem}{solution}", plan
    return f"{_GUIDED}{problem}{plan}", solution


def build_corpus(num_examples: int, seed: int) -> Corpus:
    """Encode `num_examples` fresh examples; the same arguments give the same arrays.

    The rendering equals the chat template's (`tests/unit/nano/test_corpus.py` compares both).
    """
    stream, kinds = pretraining_stream(seed), random.Random(seed + 1)
    texts, starts = [], np.empty(num_examples, dtype=np.int64)
    for i in range(num_examples):
        user, answer = example(next(stream), kinds.random())
        starts[i] = len(user) + 1
        texts.append(f"{user}{chr(_ANSWER)}{answer}{chr(_EOS)}")
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=num_examples)
    assert lengths.max(initial=0) <= MAX_TOKENS, "the longest turn of the world fits MAX_TOKENS"
    assert _PAD == 0, "padding by the NUL character relies on <pad> being token 0"
    padded = "".join(text.ljust(MAX_TOKENS, "\0") for text in texts).encode("ascii")
    tokens = _IDS[np.frombuffer(padded, dtype=np.uint8)].reshape(num_examples, MAX_TOKENS)
    return Corpus(tokens, starts, lengths)
