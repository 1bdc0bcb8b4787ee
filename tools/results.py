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


def chosen(path: Path) -> str:
    """The validation study: the mean of pass@k over k = 1, 2, 4 … N decides."""
    rows = []
    for model in read(path)["models"].values():
        entry = model["splits"]["validation"]["pass_at_k"]
        mean = sum(value["mean"] for value in entry.values()) / len(entry)
        rows.append([model["label"], *(interval(entry[k]) for k in ("1", "16", "128")), f"{mean:.3f}"])
    return table(["model", "pass@1", "pass@16", "pass@128", "mean over k"], rows)


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
    for entry in data["step"]:
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
        "bench": (speed, lambda: bench(speed)),
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
