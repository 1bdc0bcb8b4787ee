"""The repair slot with input that is missing, too long, wrong, empty or runaway; and whose turn it is."""

import contextlib
import logging
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from datasets import Dataset
from engine_kit import assert_same, make_trainer, run, script_rollouts
from transformers import AutoTokenizer

from killick import KillickConfig, KillickTrainer
from killick.engines.trl.checkpoint import description
from killick.engines.trl.plans import _plan_sampling, _written
from killick.engines.trl.turns import TurnEncoder
from killick.errors import ConfigError, DataError, RecordError
from killick.methods.plan import TextWording
from killick.methods.repairs.nll import NllRepair
from killick.methods.sort import RepairSettings
from killick.nano import base_path
from killick.tasks.countdown import Countdown, CountdownWording


def trainer_of(folder, change=None, *, settings=None, wording=None, **arguments):
    """A trainer with SORT; `change` edits the rows of its data set."""
    shared = {"kl_form": "none", "beta": 0.0, "correctness_reward": "correct", "max_steps": 3}
    repair = {"repair": "geometric", "repair_settings": {"batch_size": 2, "max_plan_tokens": 12, **(settings or {})}}
    extra = {"plan_wording": wording or CountdownWording()}
    if change is not None:
        rows = [{key: getattr(row, key) for key in ("prompt", "answer", "solution", "uid")} for row in
                Countdown().rows("train", 24)]  # fmt: skip
        extra["train_dataset"] = Dataset.from_list([change(dict(row), n) for n, row in enumerate(rows)])
    return make_trainer(KillickTrainer, KillickConfig, folder, extra=extra, **{**shared, **repair, **arguments})


def test_the_column_must_be_there(tmp_path):
    def drop(row, _):
        del row["solution"]
        return row

    with pytest.raises(DataError, match=r"needs the column 'solution'.*found: prompt, answer, uid"):
        trainer_of(tmp_path, drop)


def test_a_plan_column_must_be_there_when_asked_for(tmp_path):
    with pytest.raises(DataError, match="needs the column 'plan'"):
        trainer_of(tmp_path, lambda row, _: row, settings={"plan_source": "column"})


def test_unusable_references_are_counted_and_their_failures_not_repaired(tmp_path, caplog):
    def spoil(row, n):
        row["solution"] = {0: "", 1: row["solution"] + "<eos>", 2: "1+1=2"}.get(n % 6, row["solution"])
        return row

    with caplog.at_level(logging.WARNING):
        trainer = trainer_of(tmp_path, spoil)
    counts = trainer._killick_repairer.references.counts
    assert {k: v for k, v in counts.items() if v} == {
        "usable": 12, "missing": 4, "control_tokens": 4, "rejected": 4,
    }  # fmt: skip
    assert "12 of 24 rows have a usable reference" in caplog.text
    outcome = run(trainer)
    assert outcome.log[-1]["sort/no_reference_num"] > 0


def test_nothing_usable_is_an_error_before_training(tmp_path):
    with pytest.raises(DataError, match=r"None of the 24 rows has a usable reference.*too_long 24"):
        trainer_of(tmp_path, lambda row, _: row, settings={"max_reference_tokens": 5})


def test_a_prompt_that_cannot_take_a_plan_is_left_out_before_training(tmp_path, caplog):
    def prefill(row, n):
        beginning = [{"role": "assistant", "content": "Let me see."}] if n % 3 == 1 else []
        return {**row, "prompt": [*row["prompt"], *beginning]}

    with caplog.at_level(logging.WARNING):
        trainer = trainer_of(tmp_path / "sort", prefill, wording=TextWording())
    counts = trainer._killick_repairer.references.counts
    assert {k: v for k, v in counts.items() if v} == {"usable": 16, "unfit": 8}
    assert "does not end with a user turn" in caplog.text
    plain = trainer_of(tmp_path / "dft", prefill, repair="dft", repair_settings={"batch_size": 2})
    assert plain._killick_repairer.references.counts["usable"] == 24  # nobody asks for a plan there


def test_a_host_that_shows_more_than_the_prompt_or_drops_the_uid_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="column 'image'"):
        trainer_of(tmp_path, lambda row, _: {**row, "image": None})
    with pytest.raises(ConfigError, match="remove_unused_columns=True takes out"):
        trainer_of(tmp_path, remove_unused_columns=True)


def test_a_batch_that_could_never_be_full_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="only 24 prompts have a usable reference"):
        trainer_of(tmp_path, settings={"batch_size": 25})


def test_a_buffer_that_never_fills_is_reported_at_the_end(tmp_path, caplog):
    trainer = trainer_of(tmp_path, settings={"batch_size": 24})
    with caplog.at_level(logging.WARNING):
        run(trainer)
    assert "Nothing was repaired in 3 steps" in caplog.text
    assert len(trainer._killick_repairer.buffer) > 0


def planning(trainer, answer):
    """Every plan the policy writes is `answer`; rollouts are scripted too."""
    script_rollouts(trainer)
    scripted, tokenizer = trainer._generate_single_turn, trainer.processing_class

    def written(prompt_ids, *rest):
        if all(tokenizer.decode(ids).startswith("<plan>") for ids in prompt_ids):
            return [answer(tokenizer)] * len(prompt_ids), None
        return scripted(prompt_ids, *rest)

    trainer._generate_single_turn = written
    return trainer


PLANS = {
    "empty": lambda t: [t.eos_token_id],
    "nothing": lambda t: [],
    "runaway": lambda t: t("-4*20+" * 2, add_special_tokens=False)["input_ids"],
}


@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_that_cannot_be_used_is_counted_and_gives_dft(tmp_path, kind):
    sort = run(planning(trainer_of(tmp_path / "sort"), PLANS[kind]))
    repaired = [entry for entry in sort.log if entry["sort/repaired_num"]]
    assert repaired
    assert {entry["sort/plan_fallback_frac"] for entry in repaired} == {1.0}
    assert {entry["sort/lift_mean"] for entry in repaired} == {1.0}
    plain = {"repair": "dft", "repair_settings": {"batch_size": 2}}
    dft = run(planning(trainer_of(tmp_path / "dft", **plain), PLANS[kind]))
    assert_same(sort, dft)


def test_a_plan_that_spells_a_special_token_is_not_used(monkeypatch):
    tokenizer = AutoTokenizer.from_pretrained(base_path())
    encoder = TurnEncoder(tokenizer, (tokenizer.eos_token_id,))
    assert _written(encoder, [20, tokenizer.eos_token_id]).usable
    monkeypatch.setattr(tokenizer, "decode", lambda *_, **__: "1. add <answer>7-3=4<eos>")  # in ordinary tokens
    assert _written(encoder, [20, tokenizer.eos_token_id]).fallback == "control_tokens"


def test_a_usable_plan_is_used(tmp_path):
    sort = run(
        planning(trainer_of(tmp_path), lambda t: t("-4*20+", add_special_tokens=False)["input_ids"] + [t.eos_token_id])
    )
    repaired = [entry for entry in sort.log if entry["sort/repaired_num"]]
    assert {entry["sort/plan_fallback_frac"] for entry in repaired} == {0.0}
    assert {entry["sort/plan_tokens_mean"] for entry in repaired} == {7.0}
    assert all(entry["sort/lift_mean"] != 1.0 for entry in repaired)


def test_a_group_with_an_unscorable_row_has_not_failed(tmp_path):
    calls = []

    def half_unscorable(completions, **_):
        calls.append(len(completions))
        return [None if n % 4 == 0 else 0.0 for n in range(len(completions))]

    half_unscorable.__name__ = "correct"
    trainer = trainer_of(tmp_path)
    trainer.reward_funcs = [trainer.reward_funcs[0], half_unscorable]
    outcome = run(trainer)
    assert calls
    assert outcome.log[-1]["group/all_wrong_frac"] == 0.0
    assert len(trainer._killick_repairer.buffer) == 0


def test_references_are_judged_in_one_call(tmp_path):
    """A verifier may share a batch out among processes; 7 of the 24 are wrong."""
    calls = []

    def correct(prompts, completions, uid, **_):
        calls.append(len(completions))
        assert [prompt[-1]["content"] for prompt in prompts] == [row.prompt[-1]["content"] for row in rows]
        assert [completion[-1]["content"] for completion in completions] == [row.solution for row in rows]
        return [0.0] * 3 + [None] * 4 + [1.0] * (len(uid) - 7)

    rows = Countdown().rows("train", 24)
    arguments = {"kl_form": "none", "beta": 0.0, "repair": "nll", "repair_settings": {"batch_size": 2}}
    trainer = make_trainer(KillickTrainer, KillickConfig, tmp_path, extra={"reward_funcs": [correct]}, **arguments)
    assert calls == [24]
    references = trainer._killick_repairer.references
    assert (references.counts["usable"], references.counts["rejected"]) == (17, 7)
    assert [references.get(row.uid) is not None for row in rows] == [False] * 7 + [True] * 17


def test_a_reward_that_cannot_judge_references_leaves_them_unchecked(tmp_path, caplog):
    def picky(completions, trainer_state, **_):
        return [0.0 for _ in completions]

    arguments = {"kl_form": "none", "beta": 0.0, "repair": "nll", "repair_settings": {"batch_size": 2}}
    with caplog.at_level(logging.WARNING):
        trainer = make_trainer(KillickTrainer, KillickConfig, tmp_path, extra={"reward_funcs": [picky]}, **arguments)
    assert trainer._killick_repairer.references.counts["usable"] == 24
    assert "cannot be asked about references" in caplog.text


def test_vllm_gets_the_settings_of_a_plan_and_its_own_back():
    own = {
        "temperature": 1.0, "top_p": 0.9, "top_k": 20, "min_p": 0.1, "structured_outputs_regex": "[0-9]+",
        "max_completion_length": 512, "stop": "x",
    }  # fmt: skip
    backend = SimpleNamespace(**own)
    trainer = SimpleNamespace(use_vllm=True, vllm_generation=backend)
    seen = []
    with contextlib.suppress(RuntimeError), _plan_sampling(trainer, RepairSettings(max_plan_tokens=64)):
        seen.append(dict(vars(backend)))
        raise RuntimeError
    free = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "structured_outputs_regex": None}
    assert seen == [{**own, **free, "max_completion_length": 64}]
    assert vars(backend) == own


def test_plans_are_greedy_unless_asked_otherwise_and_rollouts_stay_as_they_are(tmp_path):
    trainer = trainer_of(tmp_path, temperature=1.0)
    before = trainer.generation_config
    with _plan_sampling(trainer, RepairSettings(max_plan_tokens=7)):
        assert (trainer.generation_config.do_sample, trainer.generation_config.max_new_tokens) == (False, 7)
    with _plan_sampling(trainer, RepairSettings(max_plan_tokens=7, plan_temperature=0.5)):
        assert (trainer.generation_config.do_sample, trainer.generation_config.temperature) == (True, 0.5)
        # None would be filled from the model's own file, or with top_k = 50
        filled, _ = trainer.model._prepare_generation_config(trainer.generation_config)
        assert (filled.top_p, filled.top_k, filled.min_p) == (1.0, 0, 0.0)
    assert trainer.generation_config is before
    assert before.max_new_tokens == trainer.max_completion_length


def test_all_plans_of_a_batch_are_generated_together_and_scored_without_a_graph(tmp_path):
    trainer = trainer_of(tmp_path, settings={"batch_size": 3})
    generated, scored = [], []
    generate, score = trainer._generate_single_turn, trainer._get_per_token_logps_and_entropies

    def counted(prompt_ids, *rest):
        generated.append(len(prompt_ids))
        return generate(prompt_ids, *rest)

    def watched(model, ids, *rest, **more):
        out = score(model, ids, *rest, **more)
        scored.append((ids.size(0), out[0].requires_grad))
        return out

    trainer._generate_single_turn, trainer._get_per_token_logps_and_entropies = counted, watched
    outcome = run(trainer)
    repairs = sum(entry["sort/repaired_num"] > 0 for entry in outcome.log)
    assert repairs > 0
    assert generated.count(3) == repairs
    assert scored.count((3, False)) == repairs  # with the plan
    assert scored.count((3, True)) == repairs  # the training forward pass is the score without the plan
    assert len(scored) == 3 + 2 * repairs  # one policy pass a step, and nothing else


def test_a_second_call_of_train_repairs_at_its_first_step_too(tmp_path):
    trainer = trainer_of(tmp_path, max_steps=1, per_device_train_batch_size=16)
    first, second = run(trainer).log, run(trainer).log
    assert first[0]["sort/repaired_num"] == second[-1]["sort/repaired_num"] == 2.0


def test_a_state_of_other_data_is_refused_at_once(tmp_path):
    repairer = trainer_of(tmp_path)._killick_repairer
    state = {**repairer.state_dict(), "buffer": {"entries": [["elsewhere", 0]], "num_dropped": 0}}
    with pytest.raises(RecordError, match=r"1 failed prompts .*'elsewhere'.* belongs to other data"):
        repairer.load_state_dict(state)


def test_the_settings_of_a_rule_belong_to_the_recipe(tmp_path):
    @dataclass(frozen=True)
    class Tempered(NllRepair):
        scale: float = 0.5

    trainer = trainer_of(tmp_path)
    assert "rule_settings" not in description(trainer)
    trainer._killick_repairer.rule = Tempered()
    assert description(trainer)["rule_settings"] == {"scale": 0.5}


def test_the_state_between_steps_holds_no_tensors(tmp_path):
    trainer = trainer_of(tmp_path)
    run(trainer)
    assert trainer._killick_repairer._batch is None
    assert not any(torch.is_tensor(value) for value in trainer._killick_repairer.state_dict().values())
