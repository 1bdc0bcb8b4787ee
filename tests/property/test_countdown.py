"""Laws of the countdown judge, tokenizer and templates that hold for every input."""

from hypothesis import given, settings
from hypothesis import strategies as st

from killick.nano import world
from killick.nano.tokenizer import CHARACTERS, build_tokenizer
from killick.tasks.countdown import guided_messages, plan_messages, plan_of
from killick.verifiers.countdown import CountdownVerifier, parse_steps

TOKENIZER = build_tokenizer()
JUDGE = CountdownVerifier(max_value=world.MAX_VALUE)
world_text = st.text(alphabet=CHARACTERS, max_size=60)
solved = st.randoms(use_true_random=False).map(world.walk)


@given(st.text(max_size=80), st.sampled_from(["3,5,7,2>24", "1,1>2"]))
def test_any_text_gets_a_verdict(text: str, gold: str) -> None:
    verdict = JUDGE(text, gold)
    assert verdict.reason in {"right", "wrong", "no_answer", "unparsable"}


@given(solved)
def test_a_walk_is_judged_right_and_is_among_the_solutions(case: world.Solved) -> None:
    problem, solution = case
    assert JUDGE(world.write(solution), problem.text).correct
    ways = world.solutions(problem.key)
    assert tuple(sorted(solution)) in {tuple(sorted(way)) for way in ways}
    assert len(set(ways)) == len(ways)


@settings(max_examples=50)
@given(solved, st.data())
def test_right_means_one_of_the_solutions(case: world.Solved, data: st.DataObject) -> None:
    # A mutated solution is judged right exactly when its steps, operands of + and * sorted, are a known solution.
    problem, solution = case
    text = list(world.write(solution))
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.sampled_from("0123456789+-*/=;"))
    mutated = "".join(text)
    known = {tuple(sorted(way)) for way in world.solutions(problem.key)}
    steps = parse_steps(mutated)
    expected = steps is not None and (
        tuple(sorted(world.Step(max(a, b), op, min(a, b), v) if op in "+*" else world.Step(a, op, b, v)
                     for a, op, b, v in steps)) in known
    )  # fmt: skip
    assert JUDGE(mutated, problem.text).correct == expected


@given(solved)
def test_reordering_commuted_operands_stays_right(case: world.Solved) -> None:
    problem, solution = case
    swapped = ";".join(f"{b}{op}{a}={v}" if op in "+*" else f"{a}{op}{b}={v}" for a, op, b, v in solution)
    assert JUDGE(swapped, problem.text).correct


@given(world_text)
def test_tokenizer_round_trip(text: str) -> None:
    ids = TOKENIZER(text)["input_ids"]
    assert len(ids) == len(text)
    assert TOKENIZER.decode(ids) == text


@given(solved)
def test_a_rendered_prompt_is_a_prefix_of_prompt_and_completion(case: world.Solved) -> None:
    problem, solution = f"{case.problem.text}:", world.write(case.solution)
    plan = plan_of(solution)
    turns = [
        ([{"role": "user", "content": problem}], solution, "<solve>"),
        (plan_messages(problem, solution), plan, "<plan>"),
        (guided_messages(problem, plan), solution, "<guided>"),
    ]
    for messages, answer, kind in turns:
        prompt = TOKENIZER.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        whole = TOKENIZER.apply_chat_template([*messages, {"role": "assistant", "content": answer}], return_dict=False)
        assert TOKENIZER.convert_ids_to_tokens(prompt[0]) == kind
        assert whole[: len(prompt)] == prompt
        assert TOKENIZER.decode(whole[len(prompt) : -1]) == answer
        assert whole[-1] == TOKENIZER.eos_token_id
        assert TOKENIZER.unk_token_id not in whole
