"""The repair slot does what it says and nothing else: stock TRL, DFT, an oracle of its gradient, a resumed run."""

import json

import pytest
import torch
from engine_kit import SGD, assert_same, make_trainer, run
from safetensors.torch import load_file
from transformers import LlamaForCausalLM
from trl import GRPOConfig, GRPOTrainer

from killick import KillickConfig, KillickTrainer
from killick.engines.trl.score import reference_logp
from killick.methods.guides import GUIDES
from killick.methods.repairs import REPAIRS
from killick.nano import base_path
from killick.tasks.countdown import CountdownWording

WORDING = {"plan_wording": CountdownWording()}
PLAIN = {"kl_form": "none", "beta": 0.0, "correctness_reward": "correct"}


def repairing(rule="geometric", **settings):
    about_plans = {"max_plan_tokens": 12} if rule == "geometric" else {}
    return {**PLAIN, "repair": rule, "repair_settings": {"batch_size": 4, **about_plans, **settings}}


def trainer_of(folder, extra=None, **settings):
    return make_trainer(KillickTrainer, KillickConfig, folder, extra={**WORDING, **(extra or {})}, **settings)


def test_no_repair_equals_the_stock_trainer(tmp_path):
    stock = run(make_trainer(GRPOTrainer, GRPOConfig, tmp_path / "stock", beta=0.0))
    ours = run(trainer_of(tmp_path / "ours", **{**PLAIN, "repair": "none"}))
    assert_same(stock, ours)


class SameLength:
    """A plan context as long as the ordinary one, so that both scorings have the same shapes, but with other tokens."""

    def ask(self, prompt, reference):
        return CountdownWording().ask(prompt, reference)

    def guided(self, prompt, plan):
        return [{"role": "user", "content": prompt[-1]["content"][::-1]}]


def blind(trainer):
    """Without attention a Llama's output depends on the current token alone: no plan can reach it."""
    for layer in trainer.model.model.layers:
        layer.self_attn.o_proj.weight.data.zero_()
        layer.self_attn.o_proj.weight.requires_grad_(False)
    return trainer


def test_sort_with_a_plan_blind_model_is_dft_to_the_bit(tmp_path):
    settings = {"max_steps": 20, "optim": "sgd"}
    extra = {"plan_wording": SameLength()}
    sort = run(blind(trainer_of(tmp_path / "sort", extra, **repairing(plan_source="column"), **settings)))
    dft = run(blind(trainer_of(tmp_path / "dft", extra, **repairing("dft"), **settings)))
    none = run(blind(trainer_of(tmp_path / "none", extra, **PLAIN, **settings)))
    assert sum(entry["sort/repaired_num"] for entry in sort.log) >= 40  # or there is nothing to compare
    assert sort.losses != none.losses
    assert_same(sort, dft)
    assert {entry["sort/lift_mean"] for entry in sort.log if "sort/lift_mean" in entry} == {1.0}


def test_plans_reach_a_model_that_can_see_them(tmp_path):
    sort = run(trainer_of(tmp_path / "sort", **repairing(plan_source="column")))
    dft = run(trainer_of(tmp_path / "dft", **repairing("dft")))
    assert sort.losses != dft.losses
    assert sort.log[-1]["sort/lift_mean"] > 1.05


# ---- the gradient --------------------------------------------------------------------------------------------------


def one_step(folder, coefficient, rule="geometric", **settings):
    """The change of every parameter by one plain gradient step of size 1 in float64."""
    source = {"plan_source": "column"} if rule == "geometric" else {}
    step = {**SGD, "learning_rate": 1.0, "max_steps": 1, "per_device_train_batch_size": 32}
    trainer = trainer_of(folder, **{**repairing(rule, coefficient=coefficient, **source), **step, **settings})
    trainer.model.double()
    kept = {}
    take = trainer._killick_repairer._take

    def watched():
        kept["batch"] = take()
        return kept["batch"]

    trainer._killick_repairer._take = watched
    start = {k: v.detach().clone() for k, v in trainer.model.named_parameters()}
    after = run(trainer).parameters
    return {k: start[k] - after[k] for k in start}, kept["batch"], start


def oracle(batch, start, rule):
    """∇ Σ w·(−log p)/N from a plain forward pass of each reference alone: no padding, no trainer, no mask."""
    model = LlamaForCausalLM.from_pretrained(base_path()).double()
    model.load_state_dict(start, strict=False)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base_path())

    def logp(messages, targets):
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        ids = torch.tensor([[*prompt, *targets]])
        logits = model(ids).logits[0, len(prompt) - 1 : -1]
        return logits.log_softmax(-1).gather(-1, torch.tensor(targets)[:, None])[:, 0]

    total, num = 0.0, 0
    for reference, plan in zip(batch.references, batch.plans, strict=True):
        targets = list(reference.token_ids)
        base = logp(reference.prompt, targets)
        with torch.no_grad():
            p = base.exp()
            if rule == "geometric":
                p_plan = logp(CountdownWording().guided(reference.prompt, plan.text), targets).exp()
                weight = (p * p_plan).sqrt()
            else:
                weight = p if rule == "dft" else torch.ones_like(p)
        total, num = total - (weight * base).sum(), num + len(targets)
    (total / num).backward()
    return {k: v.grad for k, v in model.named_parameters()}


@pytest.mark.parametrize("rule", ["geometric", "dft", "nll"])
def test_the_term_has_the_stated_gradient_and_leaves_that_of_the_policy_alone(tmp_path, rule):
    without, _, _ = one_step(tmp_path / "0", 0.0, rule)
    with_term, batch, start = one_step(tmp_path / "1", 0.5, rule)
    expected = oracle(batch, start, rule)
    assert len(batch.references) == 4
    for key, gradient in expected.items():
        assert gradient.abs().max() > 1e-3  # four orders above the tolerance: the host's head works in float32
        torch.testing.assert_close(with_term[key] - without[key], 0.5 * gradient, rtol=1e-4, atol=2e-7)


@pytest.mark.parametrize("rows", [8, 2])
def test_accumulation_does_not_rescale_the_term(tmp_path, rows):
    """Nor does it where the four references of the batch do not fit into one slice of two."""
    whole = [one_step(tmp_path / f"w{c}", c)[0] for c in (0.0, 0.5)]
    slices = {"per_device_train_batch_size": rows, "gradient_accumulation_steps": 32 // rows}
    parts = [one_step(tmp_path / f"p{c}", c, **slices)[0] for c in (0.0, 0.5)]
    for key in whole[0]:
        torch.testing.assert_close(parts[1][key] - parts[0][key], whole[1][key] - whole[0][key], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("gradient_checkpointing", [False, True])
def test_no_more_rows_than_a_slice_has_are_held_at_once(tmp_path, gradient_checkpointing):
    """What a graph keeps of a forward pass grows with its rows; beyond one slice, it is made again."""
    trainer = trainer_of(
        tmp_path, **repairing(batch_size=8), gradient_checkpointing=gradient_checkpointing,
        per_device_train_batch_size=4,
    )  # fmt: skip
    seen, kept = [], []

    def kept_bytes(tensor):
        kept.append(tensor.numel() * tensor.element_size())
        return tensor

    trainer.model.register_forward_pre_hook(lambda _, __, given: seen.append(len(given["input_ids"])), with_kwargs=True)
    references = [
        trainer._killick_repairer.references.get(row["uid"]) for row in trainer.train_dataset.select(range(8))
    ]
    bytes_kept = []
    for count in (4, 8):
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(kept_bytes, lambda tensor: tensor):
            logp = reference_logp(trainer, trainer.model, [r.prompt for r in references[:count]], references[:count])
        bytes_kept.append(sum(kept))
        logp.sum().backward()
    assert bytes_kept[1] < bytes_kept[0] / 10
    assert max(seen) == 4
    assert len(seen) == 1 + 2 * 2  # one pass; two slices, each again on the way back


def test_references_are_scored_at_temperature_1_whatever_rollouts_are_sampled_at(tmp_path):
    _, batch, _ = one_step(tmp_path / "1", 0.0)
    _, other, _ = one_step(tmp_path / "2", 0.0, temperature=0.7)
    by_uid = {r.uid: row for r, row in zip(batch.references, batch.logp_plan_BR, strict=True)}
    shared = [
        (by_uid[r.uid], row, r) for r, row in zip(other.references, other.logp_plan_BR, strict=True) if r.uid in by_uid
    ]
    assert shared
    for a, b, reference in shared:
        length = len(reference.token_ids)
        torch.testing.assert_close(a[:length], b[:length], rtol=1e-6, atol=1e-6)


# ---- state ---------------------------------------------------------------------------------------------------------

SAVED = {"max_steps": 7, "save_strategy": "steps", "save_steps": 3}


@pytest.mark.parametrize(
    "extra", [{}, {"num_iterations": 2}, {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4}],
    ids=["plain", "reused rollouts", "accumulation"],
)  # fmt: skip
def test_resumed_equals_uninterrupted_with_prompts_waiting(tmp_path, extra):
    settings = {**repairing(batch_size=5), **SAVED, **extra, "per_device_train_batch_size": 12}
    settings |= {"per_device_train_batch_size": 6} if "gradient_accumulation_steps" in extra else {}
    whole = run(trainer_of(tmp_path, {"journal": tmp_path}, **settings))
    state = json.loads((tmp_path / "checkpoint-3" / "killick_state.json").read_text())
    assert state["repair"]["buffer"]["entries"]  # somebody waits at the cut
    resumed = run(
        trainer_of(tmp_path / "again", {"journal": tmp_path / "again"}, **settings),
        resume=str(tmp_path / "checkpoint-3"),
    )
    assert resumed.losses[-4:] == whole.losses[-4:]
    for key in whole.parameters:
        assert torch.equal(whole.parameters[key], resumed.parameters[key]), key
    repaired = [[e["sort/repaired_num"], e["sort/buffer_num"]] for e in whole.log]
    assert [[e["sort/repaired_num"], e["sort/buffer_num"]] for e in resumed.log][-4:] == repaired[-4:]
    assert sum(n for n, _ in repaired[3:]) > 0


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_records_of_a_resumed_run_are_those_of_an_uninterrupted_one(tmp_path):
    settings = {**repairing(), **SAVED}
    run(trainer_of(tmp_path, {"journal": tmp_path}, **settings))
    before = {name: (tmp_path / name).read_bytes() for name in ("groups.jsonl", "repairs.jsonl")}
    with (tmp_path / "repairs.jsonl").open("a") as file:
        file.write('{"step": 6, "uid": "torn')
    run(trainer_of(tmp_path, {"journal": tmp_path}, **settings), resume=str(tmp_path / "checkpoint-3"))
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_what_is_recorded(tmp_path):
    outcome = run(trainer_of(tmp_path, {"journal": tmp_path}, **repairing(), max_steps=6))
    groups, repairs = lines(tmp_path / "groups.jsonl"), lines(tmp_path / "repairs.jsonl")
    assert len(groups) == 6 * 2
    assert {g["num_rows"] for g in groups} == {4}
    failed = [g["num_right"] == 0 for g in groups]
    assert outcome.log[0]["group/all_wrong_frac"] == sum(failed[:2]) / 2
    assert len(repairs) == sum(entry["sort/repaired_num"] for entry in outcome.log) > 0
    rows = {row["uid"]: row for row in outcome.trainer.train_dataset}
    for record in repairs:
        assert "".join(record["tokens"]) == rows[record["uid"]]["solution"] + "<eos>"
        assert {"step": record["failed_at"], "uid": record["uid"]}.items() <= next(
            g for g in groups if g["uid"] == record["uid"] and g["step"] == record["failed_at"]
        ).items()
        for p, q, w in zip(record["p_base"], record["p_plan"], record["weight"], strict=True):
            assert w == pytest.approx((p * q) ** 0.5, rel=2e-3, abs=1e-6)


def test_evaluation_neither_fills_the_buffer_nor_repairs(tmp_path):
    trainer = trainer_of(tmp_path, **repairing())
    trainer.evaluate(trainer.train_dataset)
    assert len(trainer._killick_repairer.buffer) == 0
    assert not any(name.startswith("sort/") for name in trainer.state.log_history[-1])


def test_a_checkpoint_of_another_repair_is_refused(tmp_path):
    from killick.errors import RecordError

    run(trainer_of(tmp_path, **repairing(), **{**SAVED, "max_steps": 3}))
    other = trainer_of(tmp_path / "other", **repairing(coefficient=0.5), **SAVED)
    with pytest.raises(RecordError, match=r"another recipe.*coefficient: 0\.25 / 0\.5"):
        other.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    asks_otherwise = trainer_of(tmp_path / "wording", {"plan_wording": SameLength()}, **repairing(), **SAVED)
    with pytest.raises(RecordError, match=r"plan_wording.name: 'CountdownWording' / 'SameLength'"):
        asks_otherwise.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))


@pytest.mark.parametrize("damage", [None, {}, {"buffer": {"entries": [["x", -1]], "num_dropped": 0}}])
def test_a_damaged_repair_state_is_refused(tmp_path, damage):
    from killick.errors import RecordError

    run(trainer_of(tmp_path, **repairing(), **{**SAVED, "max_steps": 3}))
    path = tmp_path / "checkpoint-3" / "killick_state.json"
    state = json.loads(path.read_text())
    state["repair"] = damage
    path.write_text(json.dumps(state))
    with pytest.raises(RecordError, match="damaged"):
        trainer_of(tmp_path / "again", **repairing(), **SAVED).train(resume_from_checkpoint=str(path.parent))


def test_peft_and_half_precision(tmp_path):
    from peft import LoraConfig

    lora = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
    outcome = run(trainer_of(tmp_path, {"peft_config": lora}, **repairing(), max_steps=5, bf16=True))
    moved = [k for k, v in outcome.parameters.items() if "lora_B" in k and v.abs().max() > 0]
    assert moved
    assert sum(entry["sort/repaired_num"] for entry in outcome.log) > 0
    base = load_file(f"{base_path()}/model.safetensors")
    kept = outcome.trainer.accelerator.unwrap_model(outcome.trainer.model).get_base_model().state_dict()
    key = "model.embed_tokens.weight"
    assert torch.equal(kept[key].float(), base[key].float())


@pytest.mark.parametrize("guide", GUIDES.names())
@pytest.mark.parametrize("rule", REPAIRS.names())
def test_any_guide_goes_with_any_rule(tmp_path, guide, rule):
    anchor = {"kl_form": "k3_loss", "beta": 0.05, "guide": guide}
    outcome = run(trainer_of(tmp_path, **{**repairing(rule, batch_size=1), **anchor, "max_steps": 2}))
    assert sum(entry["sort/repaired_num"] for entry in outcome.log) > 0
    assert all("sage/q_mean" in entry for entry in outcome.log)
