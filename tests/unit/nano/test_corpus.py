"""Pretraining text equals what the chat template renders, with the loss on the answer."""

import random

import numpy as np

from killick.nano.corpus import MAX_TOKENS, PLAN_FRAC, SOLVE_FRAC, build_corpus
from killick.nano.tokenizer import build_tokenizer
from killick.nano.world import is_pretraining, pretraining_stream, write
from killick.tasks.countdown import guided_messages, plan_messages, plan_of


def test_rows_equal_the_chat_template() -> None:
    tokenizer = build_tokenizer()
    corpus = build_corpus(200, seed=3)
    stream, kinds = pretraining_stream(3), random.Random(4)
    for row, start, length in zip(corpus.tokens, corpus.answer_start, corpus.lengths, strict=True):
        solved, u = next(stream), kinds.random()
        assert is_pretraining(solved.problem)
        problem, solution = f"{solved.problem.text}:", write(solved.solution)
        messages, answer = [{"role": "user", "content": problem}], solution
        if SOLVE_FRAC <= u < SOLVE_FRAC + PLAN_FRAC:
            messages, answer = plan_messages(problem, solution), plan_of(solution)
        elif u >= SOLVE_FRAC + PLAN_FRAC:
            messages = guided_messages(problem, plan_of(solution))
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        whole = tokenizer.apply_chat_template([*messages, {"role": "assistant", "content": answer}], return_dict=False)
        assert row[:length].tolist() == whole
        assert start == len(prompt)
        assert not row[length:].any()
        assert row.shape == (MAX_TOKENS,)


def test_same_seed_same_text_other_seed_other_text() -> None:
    first, again, other = build_corpus(50, 0), build_corpus(50, 0), build_corpus(50, 1)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.tokens, other.tokens)
    # A longer corpus starts with the shorter one, so `steps` only adds text.
    assert np.array_equal(build_corpus(80, 0).tokens[:50], first.tokens)


def test_shares_of_the_three_kinds() -> None:
    kinds = build_corpus(4000, 0).tokens[:, 0]
    tokenizer = build_tokenizer()
    for kind, share in {"<solve>": 0.34, "<plan>": 0.26, "<guided>": 0.40}.items():
        found = (kinds == tokenizer.convert_tokens_to_ids(kind)).mean()
        assert abs(found - share) < 4 * (share * (1 - share) / 4000) ** 0.5  # four standard errors
