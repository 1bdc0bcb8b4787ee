"""Writes the numbers of docs/results.md and README.md from the summaries of finished runs, between their markers.

A block `<!-- begin:NAME -->` … `<!-- end:NAME -->` is replaced when its run is there, and left alone otherwise.

    python tools/results.py [--runs runs]
"""

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILES = (ROOT / "README.md", ROOT / "docs" / "results.md")


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def interval(entry: dict[str, float], signed: bool = False) -> str:
    form = "{:+.3f}" if signed else "{:.3f}"
    mean, low, high = (form.format(entry[key]) for key in ("mean", "low", "high"))
    clear = "**" if signed and (entry["low"] > 0 or entry["high"] < 0) else ""
    return f"{clear}{mean}{clear} [{low}, {high}]"


def read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text())
    return data


def study_table(path: Path, ks: tuple[str, ...]) -> str:
    models = read(path)["models"].values()
    rows = []
    for split in next(iter(models))["splits"]:
        for model in models:
            entry, training = model["splits"][split], model["training"]
            failed = training["failed_group_frac_mean"]
            rows.append(
                [
                    model["label"],
                    split,
                    *(interval(entry["pass_at_k"][k]) for k in ks),
                    f"{entry['mean_tokens']['mean']:.1f}",
                    "–" if failed is None else f"{failed:.2f}",
                    "–" if training["wall_s"] is None else f"{training['wall_s']:.0f}",
                ]
            )
    return table(["model", "split", *(f"pass@{k}" for k in ks), "tokens", "failed groups", "training s"], rows)


def differences(path: Path, ks: tuple[str, ...]) -> str:
    data = read(path)
    rows = []
    for name, model in data["models"].items():
        for split, entry in model["splits"].items():
            for other, found in entry["differences"].items():
                if other == "base" or not is_counterpart(name, other):
                    continue
                cells = [interval(found["pass_at_k"][k], signed=True) for k in ks]
                rows.append([model["label"], split, *cells])
    return table(["SAGE-Branch minus GRPO at the same β", "split", *(f"Δ pass@{k}" for k in ks)], sorted(rows))


def is_counterpart(name: str, other: str) -> bool:
    return name.startswith("sage") and name.replace("sage", "grpo") == other


def pairs(path: Path, wanted: list[tuple[str, str]], ks: tuple[str, ...]) -> str:
    """Paired differences of named arms."""
    models = read(path)["models"]
    rows = []
    for split in next(iter(models.values()))["splits"]:
        for name, other in wanted:
            if name not in models:
                continue
            found = models[name]["splits"][split]["differences"].get(other)
            if found is not None:
                cells = [interval(found["pass_at_k"][k], signed=True) for k in ks]
                rows.append([f"{models[name]['label']} − {models[other]['label']}", split, *cells])
    return table(["difference", "split", *(f"Δ pass@{k}" for k in ks)], rows)


def chosen(path: Path) -> str:
    """The validation study: the mean of pass@k over k = 1, 2, 4 … N decides."""
    rows = []
    for model in read(path)["models"].values():
        entry = model["splits"]["validation"]["pass_at_k"]
        mean = sum(value["mean"] for value in entry.values()) / len(entry)
        rows.append([model["label"], *(interval(entry[k]) for k in ("1", "16", "128")), f"{mean:.3f}"])
    return table(["model", "pass@1", "pass@16", "pass@128", "mean over k"], rows)


SORT_PAIRS = [
    ("nll-coefficient0.5", "grpo"),
    ("dft-coefficient0.5", "grpo"),
    ("sort-coefficient0.5", "grpo"),
    ("sage_sort-coefficient0.5", "grpo"),
    ("sort-coefficient0.5", "dft-coefficient0.5"),
    ("sage_sort-coefficient0.5", "sort-coefficient0.5"),
    ("sort_true_plan-coefficient0.5", "sort-coefficient0.5"),
]


def repairs(path: Path) -> str:
    """What was repaired, and what became of the prompts that failed; mean over seeds."""
    rows = []
    for model in read(path)["models"].values():
        parts = [{**run.get("recovery", {}), **run.get("repairs", {})} for run in model["runs"]]
        if parts:
            keys = ("failed_first_third_frac", "failed_last_third_frac", "recovered_frac", "weight_mean", "lift_mean")
            numbers = [average([part.get(key) for part in parts]) for key in keys]
            lifts = [average([lift(part.get("roles"), decisions) for part in parts]) for decisions in (True, False)]
            rows.append([model["label"], *numbers, *lifts])
    header = [
        "model", "failed groups, first third", "last third", "once failed, later solved", "mean weight", "mean lift",
        "lift of decisions", "lift of routine",
    ]  # fmt: skip
    return table(header, rows)


def average(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.3f}" if known else "–"


def lift(roles: dict[str, Any] | None, decisions: bool) -> float | None:
    """Mean lift over the tokens that decide, or over the others."""
    chosen = [role for name, role in (roles or {}).items() if (name in ("operand", "operator")) == decisions]
    total = sum(role["num_tokens"] for role in chosen)
    return sum(role["num_tokens"] * role["lift_mean"] for role in chosen) / total if total else None


def llm(folder: Path) -> str:
    rows = []
    before = folder / "base" / "test" / "summary.json"
    if before.exists():
        base = read(before)
        rows.append(
            ["before", "–", "–", *(interval(base["pass_at"][k]) for k in ("1", "8")), f"{base['tokens_mean']:.1f}"]
        )
    for name in ("grpo", "sage_branch"):
        log = [json.loads(line) for line in (folder / name / "train_log.jsonl").read_text().splitlines()]
        summary = read(folder / name / "eval" / "test" / "summary.json")
        third = len(log) // 3
        reward = [sum(e["reward"] for e in part) / third for part in (log[:third], log[-third:])]
        seconds = sum(e["step_time"] for e in log)
        rows.append(
            [
                f"{name}, {len(log)} steps",
                f"{reward[0]:.3f} → {reward[1]:.3f}",
                f"{seconds:.0f}",
                *(interval(summary["pass_at"][k]) for k in ("1", "8")),
                f"{summary['tokens_mean']:.1f}",
            ]
        )
    return table(["model", "reward, first → last third", "training s", "pass@1", "pass@8", "tokens"], rows)


def bench(path: Path) -> str:
    data = read(path)
    rows = []
    for entry in data["step"].values():
        low, _, high = entry["time_ratio_quartiles"]
        memory = "unknown" if entry["memory_ratio"] is None else f"{entry['memory_ratio']:.3f}"
        shares = ", ".join(f"{key} {value:.0%}" for key, value in entry["share_of_step"].items())
        rate = data["sampling"][entry["model"]]["rate_ratio"]
        ratio = f"{entry['time_ratio']:.3f} (quartiles {low:.3f}, {high:.3f})"
        rows.append([entry["model"], ratio, memory, f"{rate:.2f}", shares])
    header = [
        "model",
        "step time, SAGE / GRPO",
        "peak memory",
        "sampling rate, killick / generate",
        "where a step goes",
    ]
    return table(header, rows)


def repair_cost(path: Path) -> str:
    rows = []
    for entry in read(path)["repair"]:
        per = entry["per_repaired_prompt"]
        passes = [per[f"{kind} passes of references"] for kind in ("no-gradient", "training")]
        tokens = [per["plan tokens"], *(per[f"{kind} tokens of references"] for kind in ("no-gradient", "training"))]
        rows.append([
            f"{entry['failed_share']:.0%}", str(entry["repaired_per_step"]), f"{entry['time_ratio']:.3f}",
            f"{entry['share_of_step']:.1%}", f"{per['plan generations']:.0f}, {passes[0]:.0f}, {passes[1]:.0f}",
            ", ".join(f"{number:.0f}" for number in tokens),
        ])  # fmt: skip
    header = [
        "failed groups", "repaired per step", "step time, SORT / GRPO", "share of the step",
        "plans, no-gradient and training passes per repaired prompt", "their tokens",
    ]  # fmt: skip
    return table(header, rows)


def records(path: Path) -> str:
    data = read(path)
    rows = [
        [name, f"{step['own_s']:.1f}", f"{step['process_s']:.1f}", str(step["peak_mib"])]
        for name, step in data["records"]["steps"].items()
    ]
    return table(["step", "own time, s", "whole process, s", "peak memory, MiB"], rows)


def verify(path: Path) -> str:
    data = read(path)["verify"]
    errors = [f"{d['right_rejected']} right rejected, {d['wrong_accepted']} wrong accepted"
              for d in (data["service_errors"], data["math_verify_errors"])]  # fmt: skip
    rows = [
        ["killick", f"{data['service_items_per_s']:,.0f}", errors[0]],
        ["math-verify in a loop", f"{data['math_verify_items_per_s']:,.0f}", errors[1]],
        ["ratio", f"{data['ratio']:.1f}", ""],
    ]
    return table([f"{data['items']:,} answers, {data['processors']} processors", "items/s", "errors"], rows)


def frontier(path: Path, target: Path, split: str) -> str:
    """pass@1 against pass@128, one curve a method over its sweep."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "killick"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 5))
    curves: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for model in read(path)["models"].values():
        entry = model["splits"][split]["pass_at_k"]
        curves.setdefault(model["method"], []).append((entry, model["sweep"]))
    for index, (method, points) in enumerate(curves.items()):
        x, y = ([entry[k]["mean"] for entry, _ in points] for k in ("1", "128"))
        spread = [
            [[e[k]["mean"] - e[k]["low"] for e, _ in points], [e[k]["high"] - e[k]["mean"] for e, _ in points]]
            for k in ("1", "128")
        ]
        marker = "osD^v<>"[index % 7]
        axes.errorbar(x, y, xerr=spread[0], yerr=spread[1], marker=marker, label=method, elinewidth=0.5, capsize=2)
        for (_, sweep), a, b in zip(points, x, y, strict=True):
            if sweep:
                axes.annotate(
                    f"β {next(iter(sweep.values()))}", (a, b), fontsize=7, xytext=(3, 3), textcoords="offset points"
                )
    axes.set_xlabel("pass@1")
    axes.set_ylabel("pass@128")
    axes.set_title(
        f"{split}: one curve a method, points are β; bars are 95% intervals over seeds and problems", fontsize=9
    )
    axes.legend(fontsize=8)
    figure.savefig(target, metadata={"Date": None})
    return f"![Frontier on {split}: pass@1 against pass@128](figures/{target.name})"


def blocks(runs: Path) -> dict[str, tuple[Path, Callable[[], str]]]:
    quick, tune, full = (runs / name / "summary.json" for name in ("quickstart", "tune", "reproduce"))
    sort_tune, sort, weak = (runs / name / "summary.json" for name in ("sort_tune", "sort", "sort_weak"))
    smol, speed = runs / "smollm2", runs / "bench.json"
    figures = ROOT / "docs" / "figures"
    return {
        "quickstart": (quick, lambda: study_table(quick, ("1", "16", "128"))),
        "tune": (tune, lambda: chosen(tune)),
        "reproduce": (full, lambda: study_table(full, ("1", "16", "128"))),
        "differences": (full, lambda: differences(full, ("1", "4", "16", "64", "128"))),
        "frontier": (full, lambda: frontier(full, figures / "frontier_mixed.svg", "mixed")),
        "frontier_hard": (full, lambda: frontier(full, figures / "frontier_hard.svg", "hard")),
        "smollm2": (smol / "sage_branch" / "eval" / "test" / "summary.json", lambda: llm(smol)),
        "gsm8k": (
            runs / "smollm2_gsm8k" / "sage_branch" / "eval" / "test" / "summary.json",
            lambda: llm(runs / "smollm2_gsm8k"),
        ),
        "sort_tune": (sort_tune, lambda: chosen(sort_tune)),
        "sort": (sort, lambda: study_table(sort, ("1", "16", "128"))),
        "sort_pairs": (sort, lambda: pairs(sort, SORT_PAIRS, ("1", "4", "16", "64", "128"))),
        "sort_repairs": (sort, lambda: repairs(sort)),
        "sort_weak": (weak, lambda: study_table(weak, ("1", "16", "128"))),
        "sort_weak_pairs": (weak, lambda: pairs(weak, SORT_PAIRS, ("1", "4", "16", "64", "128"))),
        "sort_weak_repairs": (weak, lambda: repairs(weak)),
        "bench": (speed, lambda: bench(speed)),
        "repair_cost": (speed, lambda: repair_cost(speed)),
        "verify": (speed, lambda: verify(speed)),
        "records": (speed, lambda: records(speed)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs")
    args = parser.parse_args()
    known = blocks(args.runs)
    for file in FILES:
        text = file.read_text()
        for name in re.findall(r"<!-- begin:(\w+) -->", text):
            source, make = known[name]
            if not source.exists():
                print(f"{file.name}: {name} left alone, {source} is missing")
                continue
            pattern = rf"(<!-- begin:{name} -->\n).*?(<!-- end:{name} -->)"
            body = make()
            text = re.sub(pattern, lambda m, body=body: f"{m[1]}\n{body}\n\n{m[2]}", text, flags=re.S)
        file.write_text(text)
        print(f"Written: {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
