"""Throughput of the verifier of mathematical answers against math-verify in a plain loop, on real answers.

    python tools/bench_verify.py [--items 2000]

Prints JSON. Both get the same texts and the same bound per item; nothing is cached before.
"""

import argparse
import json
import logging
import os
import random
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

BENCH = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "bench"
FILES = ("math500", "gsm8k_test", "olympiadbench", "minerva", "deepscaler_sub")
BOUND_S = 5.0
INTRODUCTIONS = ("Adding up, the answer is ", "So we get\n", "Therefore it equals ", "")


class Item(NamedTuple):
    """A completion, its gold, and whether it was built to be right."""

    text: str
    gold: str
    right: bool


def golds() -> list[str]:
    """Answers of the shared benchmarks; without them, generated ones of the same kinds."""
    found = []
    for name in FILES:
        file = BENCH / f"{name}.jsonl"
        if file.is_file():
            found += [json.loads(line)["answer"] for line in file.read_text(encoding="utf-8").splitlines()]
    if found:
        return found
    stream = random.Random(0)
    forms = (r"{a}", r"-{a}", r"\frac{{{a}}}{{{b}}}", r"{a}\sqrt{{{b}}}", r"({a}, {b})", r"{a}\pi", r"x^2+{a}x-{b}",
             r"[{a}, \infty)", r"{a}^\circ", r"{a}, {b}", r"\frac{{\sqrt{{{a}}}-1}}{{{b}}}", r"{a}.{b}")  # fmt: skip
    return [stream.choice(forms).format(a=stream.randrange(2, 999), b=stream.randrange(2, 99)) for _ in range(3000)]


def _rewritten(bare: str, stream: random.Random) -> str:
    """The same answer as another writer would put it."""
    changes = [
        lambda s: s.replace("\\frac{", "\\dfrac{"),
        lambda s: s.replace("(", "\\left(").replace(")", "\\right)"),
        lambda s: s.replace(",", ", ").replace("+", " + "),
        lambda s: re.sub(r"^\\frac\{(\d+)\}\{(\d+)\}$", r"\1/\2", s),
        lambda s: f"x = {s}" if re.fullmatch(r"[-0-9./]+", s) else s,
        lambda s: s + ".0" if re.fullmatch(r"-?[0-9]{1,9}", s) else s,
    ]
    return stream.choice(changes)(bare)


def _spoiled(bare: str, stream: random.Random) -> str:
    """A near miss: one digit changed, or a sign."""
    digits = [match.start() for match in re.finditer("[0-9]", bare)]
    if not digits:
        return "-" + bare
    place = stream.choice(digits)
    digit = (int(bare[place]) + stream.randrange(1, 9)) % 10
    return bare[:place] + str(digit) + bare[place + 1 :]


def mixed_answers(n: int, seed: int) -> list[Item]:
    """`n` completions with their golds: as given, rewritten, near misses, and answers of other problems."""
    stream = random.Random(seed)
    # One gold of the shared files is nothing but "\\div": no answer matches it.
    answers = [a for a in golds() if len(a) <= 200 and re.search("[A-Za-z0-9]", re.sub(r"\\[a-z]+", "", a))]
    items = []
    for answer in stream.choices(answers, k=n):
        bare = answer.strip("$ ")
        kind = stream.randrange(4)
        other = stream.choice(answers).strip("$ ")
        content = (bare, _rewritten(bare, stream), _spoiled(bare, stream), other)[kind]
        text = f"{stream.choice(INTRODUCTIONS)}$\\boxed{{{content}}}$."
        items.append(Item(text, answer, kind < 2 or content == bare))
    return items


def ours(items: list[Item]) -> tuple[list[bool], float, dict[str, Any]]:
    """Verdicts, seconds, and how many went to a worker process."""
    from killick.verifiers import latex
    from killick.verifiers.answers import quick, reading

    for function in (reading.read, quick.reading, latex.gold_text, latex._ruling, latex._gold_is_fine):
        function.cache_clear()
    verifier = latex.LatexVerifier(timeout_s=BOUND_S)
    start = time.perf_counter()
    verdicts = verifier.judge_many([item.text for item in items], [item.gold for item in items])
    took = time.perf_counter() - start
    asked = sum(verifier.rule(item.text, item.gold).ask is not None for item in items)
    return [verdict.correct for verdict in verdicts], took, {"to_math_verify": asked}


def plain_loop(items: list[Item]) -> tuple[list[bool], float]:
    """math-verify as its documentation shows it, with the gold between dollar signs."""
    from math_verify import parse, verify

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    parse("$1$", parsing_timeout=int(BOUND_S))  # its own first-time costs are not counted
    correct = []
    start = time.perf_counter()
    for item in items:
        try:
            gold = parse(f"${item.gold.strip('$ ')}$", parsing_timeout=int(BOUND_S))
            found = parse(item.text, parsing_timeout=int(BOUND_S))
            correct.append(bool(verify(gold, found, timeout_seconds=int(BOUND_S))))
        except Exception:
            correct.append(False)
    return correct, time.perf_counter() - start


def run(num_items: int = 2000, seed: int = 0) -> dict[str, Any]:
    """The measurement as a JSON-ready dictionary."""
    items = mixed_answers(num_items, seed)
    mine, my_s, extra = ours(items)
    theirs, their_s = plain_loop(items)

    def errors(verdicts: list[bool]) -> dict[str, int]:
        pairs = list(zip(items, verdicts, strict=True))
        return {
            "right_rejected": sum(item.right and not verdict for item, verdict in pairs),
            "wrong_accepted": sum(verdict and not item.right for item, verdict in pairs),
        }

    return {
        "items": len(items),
        "processors": len(os.sched_getaffinity(0)),
        "bound_s": BOUND_S,
        "real_answers": BENCH.is_dir(),
        "service_items_per_s": round(len(items) / my_s, 1),
        "math_verify_items_per_s": round(len(items) / their_s, 1),
        "ratio": round(their_s / my_s, 1),
        "agreement": sum(a == b for a, b in zip(mine, theirs, strict=True)) / len(items),
        "service_errors": errors(mine),
        "math_verify_errors": errors(theirs),
        **extra,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(run(options.items, options.seed), indent=2))


if __name__ == "__main__":
    main()
