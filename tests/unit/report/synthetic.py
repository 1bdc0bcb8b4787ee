"""A small, seeded study on disk, written through killick's own record and spec classes.

Success rates are drawn per problem; the arms differ in how they sharpen, so the curves of a page cross as real ones do.
"""

import json
from pathlib import Path

import numpy as np

from killick.evaluate.folder import EvaluationFolder
from killick.evaluate.records import Record, read_records
from killick.evaluate.settings import EvaluationSpec, ModelIdentity, SamplingSettings
from killick.evaluate.summary import summarise
from killick.provenance import write_json

_AT = {"pass_at": {"1": {"mean": 0.25, "low": 0.125, "high": 0.5}}}
SUITE = {
    "title": "Suite", "model": {"name": "model"}, "ks": [1],
    "sampling": {"num_samples": 16, "temperature": 0.3, "top_p": 0.95, "max_tokens": 48},
    "benchmarks": [
        {"label": "AIME 2024", "group": "in", "pool": "", "num_problems": 12, "task": "aime24", "split": "test", **_AT}
    ],
    "averages": {"in": {"num_benchmarks": 1, "of": 2, **_AT}},
    "left_out": [{"label": "AMC 2023", "reason": "no file"}],
}  # fmt: skip
"""The report of a suite; one of its two sets is missing."""
MODES = ("++-", "+*-", "**-", "+-*", "*+/", "--*", "+/-")


def write_evaluation(
    folder: Path,
    split: str,
    *,
    seed: int,
    sharpen: float = 1.0,
    num_problems: int = 12,
    num_samples: int = 16,
    texts: tuple[str, ...] = ("3+7=10;10*2=20", "no idea"),
    modes: tuple[str, ...] = MODES,
    temperature: float = 1.0,
    sampler_seed: int = 0,
    name: str = "model",
    task: str = "countdown",
) -> EvaluationSpec:
    """Write spec.json, records.jsonl and summary.json. `sharpen` > 1 makes easy problems easier, hard ones harder."""
    rng = np.random.default_rng([seed, num_problems])
    rate_Q = np.random.default_rng(7).beta(0.4, 1.4, num_problems)  # the same problems for every model
    rate_Q = rate_Q**sharpen / (rate_Q**sharpen + 0.7 * (1 - rate_Q) ** sharpen)
    sampling = SamplingSettings(num_samples=num_samples, max_tokens=48, seed=sampler_seed, temperature=temperature)
    model = ModelIdentity(name, f"{seed:016d}")
    spec = EvaluationSpec(task, {}, split, num_problems, f"digest-{split}", sampling, model)
    folder.mkdir(parents=True)
    EvaluationFolder(folder).write_spec(spec, 1.5)
    weight = np.arange(len(modes), 0, -1.0) ** sharpen
    lines = []
    for q, rate in enumerate(rate_Q):
        for n in range(num_samples):
            right = bool(rng.random() < rate)
            reason = "right" if right else str(rng.choice(["wrong", "wrong", "no_answer", "unparsable"]))
            mode = str(rng.choice(modes, p=weight / weight.sum())) if right and modes else None
            text = texts[0 if right else -1] if n else texts[q % len(texts)]
            tokens = int(rng.integers(10, 40))
            lines.append(
                Record(
                    spec.hash(), f"{split}-{q:03d}", n, sampler_seed, text, right, reason, tokens, False, mode
                ).line()
            )
    (folder / "records.jsonl").write_bytes(b"".join(lines))
    table = read_records(folder / "records.jsonl", num_samples)
    write_json(folder / "summary.json", summarise(table, np.random.default_rng(0)))
    return spec


def write_run(folder: Path, *, seed: int, beta: float, method: str, num_steps: int = 30, sharpen: float = 1.0) -> None:
    """Write resolved.json, versions.json and train_log.jsonl (no evaluation)."""
    folder.mkdir(parents=True)
    resolved = {
        "run": {"name": method, "seed": seed},
        "trl": {"beta": beta, "learning_rate": 3e-4, "seed": seed, "num_generations": 8},
        "method": {"anchor": {"name": "branch", "gamma": 1.0}} if method == "sage" else {},
    }
    (folder / "resolved.json").write_text(json.dumps(resolved))
    (folder / "versions.json").write_text(json.dumps({"killick": "0.1.0", "torch": "2.13.0", "trl": "1.16.0"}))
    rng = np.random.default_rng([seed, int(1000 * beta)])
    rows = []
    for step in range(1, num_steps + 1):
        done = step / num_steps
        row = {
            "step": step,
            "reward": 0.1 + 0.2 * done**0.5 + 0.03 * rng.standard_normal(),
            "kl": 0.05 * done / (1 + 10 * beta) + 0.002 * rng.random(),
            "entropy": 0.18 - 0.08 * sharpen * done / 2 + 0.01 * rng.standard_normal(),
            "loss": 0.01 * rng.standard_normal(),
            "group/all_wrong_frac": 0.55 - 0.15 * done + 0.05 * rng.standard_normal(),
            "group/all_right_frac": 0.05 + 0.1 * done + 0.02 * rng.standard_normal(),
            "completions/mean_length": 22 + 2 * rng.standard_normal(),
            "step_time": 1.5,
        }
        if method == "sage":
            row |= {"sage/q_mean": 1.05 + 0.01 * rng.random(), "sage/q_active_frac": 0.1 + 0.02 * rng.random()}
            row |= {"sage/kl": row["kl"] * 1.2}
        rows.append(row)
    (folder / "train_log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def repair_row(step: int, uid: str, tokens: list[str], p_base: list[float], p_plan: list[float], **other) -> dict:
    """One line of repairs.jsonl, weighed as SORT does unless `weight` says otherwise."""
    weight = [(a * b) ** 0.5 for a, b in zip(p_base, p_plan, strict=True)]
    row = {"step": step, "uid": uid, "failed_at": max(step - 2, 0), "problem": "3,5,7,2>22:", "plan": "-4*20+"}
    row |= {"fallback": None, "tokens": tokens, "p_base": p_base, "p_plan": p_plan, "weight": weight}
    return row | other


def write_rows(path: Path, rows: list[dict]) -> Path:
    """A JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_journal(
    folder: Path, *, seed: int, rule: str | None, hostile: str | None = None, num_steps: int = 30
) -> None:
    """Write groups.jsonl and, with a rule (sort, dft), repairs.jsonl of one run; `hostile` replaces texts."""
    rng = np.random.default_rng([seed, 5])
    groups, repairs = [], []
    for step in range(num_steps):
        for prompt in rng.choice(20, size=6, replace=False):
            right = int(rng.binomial(8, 0.02 + 0.02 * prompt * (1 + step / num_steps) / 2))
            groups.append({"step": step, "uid": f"train/{prompt}", "num_right": right, "num_rows": 8})
            if right == 0 and rule is not None:
                tokens = [*"7-3=4;5*4=20;20+2=22", "<eos>"]
                if hostile is not None:
                    tokens[0] = hostile
                p_base = rng.beta(2, 1, len(tokens))
                p_plan = p_base if rule == "dft" else p_base ** rng.uniform(0.3, 1.1, len(tokens))
                fallback = "truncated" if rule == "sort" and rng.random() < 0.1 else None
                other = {"plan": None if rule == "dft" else hostile or "-4*20+", "fallback": fallback}
                uid = f"train/{prompt}"
                repairs.append(repair_row(step, uid, tokens, p_base.tolist(), p_plan.tolist(), **other))
    write_rows(folder / "groups.jsonl", groups)
    if rule is not None:
        write_rows(folder / "repairs.jsonl", repairs)


def write_study(
    folder: Path,
    *,
    seeds: tuple[int, ...] = (0, 1),
    betas: tuple[float, ...] = (0.02, 0.3),
    methods: tuple[str, ...] = ("grpo", "sage"),
    splits: tuple[str, ...] = ("mixed", "hard"),
    baseline: str | None = "grpo-0.02",
    title: str = "A synthetic study",
    **evaluation: object,
) -> Path:
    """Write a whole study; further keywords go to `write_evaluation`."""
    sizes = {"mixed": 12, "hard": 10}
    for split in splits:
        write_evaluation(
            folder / "base" / "eval" / split, split, seed=100, **{"num_problems": sizes[split], **evaluation}
        )
    arms = []
    for m, method in enumerate(methods):
        for beta in betas:
            name = f"{method}-{beta}"
            sharpen = 2.2 - 3 * beta - 0.25 * m
            runs = [{"seed": seed, "dir": f"arms/{name}/seed{seed}"} for seed in seeds]
            label = f"{method.upper()} β={beta}"
            arms.append({"name": name, "label": label, "method": method, "sweep": {"trl.beta": beta}, "runs": runs})
            for run in runs:
                seed = run["seed"]
                write_run(folder / run["dir"], seed=seed, beta=beta, method=method, sharpen=sharpen)
                for split in splits:
                    settings = {"num_problems": sizes[split], **evaluation}
                    place = folder / run["dir"] / "eval" / split
                    write_evaluation(place, split, seed=1 + seed + 10 * m, sharpen=sharpen, name=name, **settings)
    index = {
        "name": "synthetic",
        "title": title,
        "seeds": list(seeds),
        "settings": {"steps": 30, "note": "synthetic"},
        "arms": arms,
        "base": {"label": "base", "evals": {split: f"base/eval/{split}" for split in splits}},
    }
    if baseline is not None:
        index["baseline"] = baseline
    (folder / "study.json").write_text(json.dumps(index))
    return folder
