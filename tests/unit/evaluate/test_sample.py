import copy
import itertools
from collections import Counter

import pytest
import torch
from transformers import GenerationConfig

from killick.errors import ConfigError, DataError
from killick.evaluate.sample import check_lengths, sample
from killick.evaluate.settings import SamplingSettings
from killick.prompts import render_prompts
from killick.tasks.types import Row


def settings(**changes):
    return SamplingSettings(**{"num_samples": 6, "max_tokens": 8, "seed": 3, **changes})


def draw(model, tokenizer, rows, asked, **kwargs):
    return {(c.uid, c.sample): c for batch in sample(model, tokenizer, rows, asked, **kwargs) for c in batch}


@pytest.fixture
def rows(task):
    return task.rows("test")


def test_batch_size_and_order_do_not_change_a_sample(model, tokenizer, rows):
    asked = settings(top_p=0.9, temperature=0.8)
    one = draw(model, tokenizer, rows, asked, batch_size=1)
    assert len(one) == 30
    assert len({c.text for c in one.values()}) > 15  # the streams do differ
    assert one == draw(model, tokenizer, rows, asked, batch_size=7)
    assert one == draw(model, tokenizer, rows[::-1], asked, batch_size=30)


def test_done_samples_are_left_out_and_the_rest_is_unchanged(model, tokenizer, rows):
    everything = draw(model, tokenizer, rows, settings())
    done = set(list(everything)[::2])
    rest = draw(model, tokenizer, rows, settings(), done=done, batch_size=4)
    assert rest == {key: value for key, value in everything.items() if key not in done}


def test_more_samples_extend_fewer(model, tokenizer, rows):
    few, many = draw(model, tokenizer, rows, settings()), draw(model, tokenizer, rows, settings(num_samples=9))
    assert few == {key: value for key, value in many.items() if key[1] < 6}


def test_seeds_give_other_samples(model, tokenizer, rows):
    first, second = draw(model, tokenizer, rows, settings()), draw(model, tokenizer, rows, settings(seed=4))
    assert sum(first[key].text == second[key].text for key in first) < 15


def test_generation_config_of_the_model_has_no_influence(model, tokenizer, rows):
    plain = draw(model, tokenizer, rows, settings())
    saved = model.generation_config
    hostile = GenerationConfig(
        top_k=1,
        temperature=0.1,
        do_sample=True,
        repetition_penalty=5.0,
        no_repeat_ngram_size=1,
        suppress_tokens=[3, 4, 5],
        min_new_tokens=7,
        max_length=3,
        eos_token_id=2,
        bad_words_ids=[[6]],
    )
    model.generation_config = hostile
    try:
        assert draw(model, tokenizer, rows, settings()) == plain
        assert model.generation_config is hostile  # handed back untouched
        assert hostile.top_k == 1
    finally:
        model.generation_config = saved


def test_end_ids_come_from_the_model_too(model, tokenizer, rows):
    saved = model.generation_config
    model.generation_config = GenerationConfig(eos_token_id=[2, 3])  # 3 is the letter "a"
    try:
        made = draw(model, tokenizer, rows, settings())
    finally:
        model.generation_config = saved
    assert all("a" not in c.text[:-1] for c in made.values())
    ended = [c for c in made.values() if c.text.endswith("a")]
    assert ended
    assert not any(c.truncated for c in ended)


def test_prompt_has_one_bos(tokenizer):
    row = Row("p", [{"role": "user", "content": "ab"}], "a")
    rendered = tokenizer.apply_chat_template(row.prompt, add_generation_prompt=True, tokenize=False)
    assert tokenizer(rendered)["input_ids"][:2] == [1, 1]  # the trap: tokenising the rendered text doubles it
    assert render_prompts(tokenizer, [row]) == [[1, 3, 4, 11]]


def test_missing_chat_template_is_refused(tokenizer):
    class Bare:
        chat_template = None

    with pytest.raises(DataError, match="no chat template"):
        render_prompts(Bare(), [Row("p", [{"role": "user", "content": "a"}], "a")])


def test_tokens_and_truncation(model, tokenizer, rows):
    made = draw(model, tokenizer, rows, settings(num_samples=20, max_tokens=4)).values()
    for c in made:
        # One character per token, special tokens sampled in the middle show as nothing.
        assert len(c.text) <= c.tokens <= 4
        assert c.truncated <= (c.tokens == 4)
    assert any(c.truncated for c in made)
    assert any(c.tokens == 1 and c.text == "" and not c.truncated for c in made)  # immediate end


def test_stop_strings_cut_the_same_samples(model, tokenizer, rows):
    free = draw(model, tokenizer, rows, settings(num_samples=20))
    stopped = draw(model, tokenizer, rows, settings(num_samples=20, stop=("b", "dd")), batch_size=13)
    hits = 0
    for key, c in stopped.items():
        text = free[key].text
        cut = min([place for place in (text.find("b"), text.find("dd")) if place >= 0], default=None)
        assert c.text == (text if cut is None else text[:cut])
        assert c.truncated == (free[key].truncated and cut is None)
        assert c.tokens <= free[key].tokens
        hits += cut is not None
    assert 10 < hits < 100


def test_stop_string_in_the_prompt_does_not_stop(model, tokenizer):
    row = Row("p", [{"role": "user", "content": "abc"}], "a")
    made = draw(model, tokenizer, [row], settings(num_samples=30, stop=("c>",)))
    assert max(c.tokens for c in made.values()) > 2


def test_special_token_as_stop_acts_as_end(model, tokenizer, rows):
    made = draw(model, tokenizer, rows, settings(num_samples=30, stop=("<s>",)))
    free = draw(model, tokenizer, rows, settings(num_samples=30))
    shorter = [key for key in made if made[key].tokens < free[key].tokens]
    assert shorter
    assert not any(made[key].truncated for key in shorter)


def test_greedy_equals_plain_generate(model, tokenizer, rows):
    made = draw(model, tokenizer, rows, settings(num_samples=1, temperature=0))
    for row, prompt in zip(rows, render_prompts(tokenizer, rows), strict=True):
        out = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=8)[0, len(prompt) :]
        assert made[(row.uid, 0)].text == tokenizer.decode(out, skip_special_tokens=True)


def test_samples_follow_the_exact_distribution_of_the_model(model, tokenizer):
    """All 12 x 12 two-token completions enumerated: observed counts against exact probabilities, chi-square."""
    row = Row("p", [{"role": "user", "content": "abd"}], "a")
    prompt = render_prompts(tokenizer, [row])[0]
    asked = settings(num_samples=4000, max_tokens=2, temperature=0.7)
    exact = Counter()
    with torch.no_grad():
        first = (model(torch.tensor([prompt])).logits[0, -1].double() / 0.7).softmax(0)
        for a, b in itertools.product(range(len(first)), repeat=2):
            second = (model(torch.tensor([[*prompt, a]])).logits[0, -1].double() / 0.7).softmax(0)
            ids = [a] if a == 2 else [a, b]
            exact[tokenizer.decode(ids, skip_special_tokens=True), len(ids)] += (
                first[a] * second[b]
            ).item()  # after an end token the second factor sums to 1
    assert sum(exact.values()) == pytest.approx(1.0)
    made = Counter((c.text, c.tokens) for c in draw(model, tokenizer, [row], asked, batch_size=1000).values())
    assert made.keys() <= exact.keys()
    # Cells expected under 5 times are pooled into one; the threshold is the mean + 4 standard deviations of chi-square.
    large = {key for key, p in exact.items() if 4000 * p >= 5}
    cells = [(made[key], 4000 * exact[key]) for key in large]
    cells.append((4000 - sum(o for o, _ in cells), 4000 - sum(e for _, e in cells)))
    chi2 = sum((o - e) ** 2 / e for o, e in cells)
    df = len(cells) - 1
    assert df > 20
    assert chi2 < df + 4 * (2 * df) ** 0.5


def test_nan_logits_are_reported(model, tokenizer, rows):
    weight = model.lm_head.weight
    kept = weight.data.clone()
    weight.data[3, 0] = float("nan")
    try:
        with pytest.raises(DataError, match="NaN"):
            draw(model, tokenizer, rows, settings())
    finally:
        weight.data.copy_(kept)


def test_too_long_a_completion_is_refused_with_the_allowed_length(model, tokenizer, rows):
    # Longest prompt: <s> abcde > = 7 tokens of 64 positions; the first problem has 3, and 61 still fit there.
    with pytest.raises(ConfigError, match=r"'p1' has 4 prompt tokens.*max_tokens <= 60"):
        draw(model, tokenizer, rows, settings(max_tokens=61))
    with pytest.raises(ConfigError, match=r"'p1' has 4 prompt tokens.*Take a model with more positions\.$"):
        check_lengths(4, rows[1:2], [[0] * 4], settings(max_tokens=1))  # no length would fit


def test_nothing_to_end_a_completion_is_refused(model, rows):
    class Endless:
        eos_token_id = None
        all_special_tokens = ()

        def convert_tokens_to_ids(self, tokens):
            return []

    saved = model.generation_config
    model.generation_config = GenerationConfig()
    try:
        with pytest.raises(ConfigError, match="end-of-sequence"):
            draw(model, Endless(), rows, settings())
    finally:
        model.generation_config = saved


def test_training_mode_is_kept_and_dropout_is_off(model, tokenizer, rows):
    plain = draw(model, tokenizer, rows, settings())
    model.train()
    try:
        assert draw(model, tokenizer, rows, settings()) == plain
        assert model.training
    finally:
        model.eval()


def test_a_peft_wrapper_changes_nothing_of_the_sampler(model, tokenizer, rows):
    peft = pytest.importorskip("peft")
    plain = draw(model, tokenizer, rows, settings())
    own = copy.deepcopy(model)
    own.generation_config = GenerationConfig(top_k=1, repetition_penalty=5.0, eos_token_id=2)
    wrapped = peft.get_peft_model(own, peft.LoraConfig(target_modules=["q_proj"]))  # a fresh adapter adds 0
    assert draw(wrapped, tokenizer, rows, settings()) == plain
    assert wrapped.get_base_model().generation_config.top_k == 1


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('System role not supported') }}", r"problem 'p' \(roles: user\): System role not"),
        ("{{ messages[0].content + 1 }}", "problem 'p'"),
        ("{% for %}", "problem 'p'"),
        ("{# nothing #}", "problem 'p' as nothing"),
    ],
)
def test_a_template_that_refuses_a_prompt_names_the_problem(tokenizer, template, message):
    broken = copy.deepcopy(tokenizer)
    broken.chat_template = template
    with pytest.raises(DataError, match=message):
        render_prompts(broken, [Row("p", [{"role": "user", "content": "a"}], "a")])
