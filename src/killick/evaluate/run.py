"""One evaluation from start to finish: sample, verify, record, summarise; stop and resume at any point."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from killick.errors import ConfigError, RecordError
from killick.evaluate.backends.transformers import LoadedModel
from killick.evaluate.backends.types import Completion, Sampler
from killick.evaluate.folder import EvaluationFolder, load
from killick.evaluate.records import Record, RecordTable
from killick.evaluate.settings import EvaluationSpec, check_uids, digest
from killick.evaluate.summary import summarise
from killick.evaluate.trouble import few_lines
from killick.evaluate.writer import RecordWriter
from killick.provenance import write_json
from killick.tasks.types import Row, Task
from killick.verifiers.judge import judge_all

_SAVE_EVERY_S = 10.0


@dataclass(frozen=True)
class EvaluationResult:
    """What `evaluate` returns: the content of `summary.json`, and the records behind it.

    Attributes:
        spec: what was asked.
        summary: see `summary.summarise`.
        table: all records.
        folder: where they are.
        trouble: what the judge's first failure in this call was about; None if it had none.
    """

    spec: EvaluationSpec
    summary: dict[str, Any]
    table: RecordTable
    folder: Path
    trouble: str | None = None


def evaluate(
    model: Any,
    tokenizer: Any,
    task: Task,
    spec: EvaluationSpec,
    out_dir: Path,
    *,
    progress: bool = True,
    resume: bool = True,
) -> EvaluationResult:
    """`evaluate_with` a causal language model on its device, and its tokenizer (with a chat template)."""
    sampler = LoadedModel(model, tokenizer, spec.performance.batch_size)
    return evaluate_with(sampler, task, spec, out_dir, progress=progress, resume=resume)


def evaluate_with(
    sampler: Sampler,
    task: Task,
    spec: EvaluationSpec,
    out_dir: Path,
    *,
    progress: bool = True,
    resume: bool = True,
) -> EvaluationResult:
    """Run an evaluation, or finish one that was interrupted, without repeating or losing a sample.

    After Ctrl-C, `kill -9` or a full disk the same call continues with the missing samples, and the records come
    out as they would have without the interruption.

    Args:
        sampler: draws the completions; a backend, or a loaded model.
        task: the task named in the spec, with the same settings.
        spec: from `settings.describe`.
        out_dir: created if needed; holds one evaluation.
        progress: show a progress bar on standard error.
        resume: False refuses a folder that already has records.

    Raises:
        ConfigError: the spec does not describe this task.
        DataError: two problems share a uid, a gold is unreadable, or the sampler cannot go on (no chat template, NaN,
            a server that stays away).
        RecordError: the folder holds another evaluation or corrupt records, or cannot be written.
        KeyboardInterrupt: passed on, after everything sampled so far is on disk.
    """
    rows = _rows(task, spec)
    folder = EvaluationFolder(Path(out_dir))
    spent_s = folder.claim(spec, resume)
    with few_lines() as trouble, RecordWriter(folder.records_file, spec.hash()) as writer:
        _refuse_strangers(writer, rows, spec)
        total = spec.num_problems * spec.sampling.num_samples
        if len(writer.done) < total:
            with (
                _clock(folder, spec, spent_s) as tick,
                _meter(total, len(writer.done), progress) as show,
                # Closed however this ends, so that no request of a backend outlives it.
                closing(sampler.sample(list(rows.values()), spec.sampling, writer.done.copy())) as batches,
            ):
                for batch in batches:
                    records = _records(task, rows, batch, spec)
                    writer.append(records)
                    tick()
                    show(records)
    return _finish(folder, trouble.first)


def _finish(folder: EvaluationFolder, trouble: str | None) -> EvaluationResult:
    done = load(folder.path)
    # The seed of the bootstrap is part of the procedure, not of the model: a fixed one keeps summaries reproducible.
    summary = {**summarise(done.table, np.random.default_rng(0)), "wall_s": done.wall_s}
    write_json(folder.summary_file, summary)
    return EvaluationResult(done.spec, summary, done.table, folder.path, trouble)


def _rows(task: Task, spec: EvaluationSpec) -> Mapping[str, Row]:
    rows = task.rows(spec.split, spec.num_problems)
    check_uids(rows, spec.split)
    if digest(rows) != spec.problems:
        raise ConfigError(
            f"The spec describes other problems (digest {spec.problems}) than task {spec.task!r} now gives for split "
            f"{spec.split!r} (digest {digest(rows)}). Build the spec with `describe` from this very task."
        )
    return {row.uid: row for row in rows}


def _refuse_strangers(writer: RecordWriter, rows: Mapping[str, Row], spec: EvaluationSpec) -> None:
    """Records on disk must be of these problems and samples; they would be counted as work done otherwise."""
    strange = sorted((uid, n) for uid, n in writer.done if uid not in rows or n >= spec.sampling.num_samples)
    if strange:
        raise RecordError(
            f"{writer.path} holds {len(strange)} records that are not of this evaluation, e.g. sample {strange[0][1]} "
            f"of problem {strange[0][0]!r}; asked are {spec.sampling.num_samples} samples of {len(rows)} problems. "
            "Delete those lines, or choose another folder."
        )


def _records(task: Task, rows: Mapping[str, Row], batch: Sequence[Completion], spec: EvaluationSpec) -> list[Record]:
    run, seed = spec.hash(), spec.sampling.seed
    verdicts = judge_all(task.verifier, [made.text for made in batch], [rows[made.uid].answer for made in batch])
    return [
        Record(
            run=run,
            uid=made.uid,
            sample=made.sample,
            seed=seed,
            text=made.text,
            correct=verdict.correct,
            reason=verdict.reason,
            tokens=made.tokens,
            truncated=made.truncated,
            mode=task.mode(made.text) if verdict.correct else None,
        )
        for made, verdict in zip(batch, verdicts, strict=True)
    ]


@contextmanager
def _clock(folder: EvaluationFolder, spec: EvaluationSpec, spent_s: float) -> Iterator[Any]:
    """Keeps `wall_s` in spec.json: every ten seconds (a kill loses no more), and however the block is left."""
    start = saved = time.monotonic()

    def tick() -> None:
        nonlocal saved
        if time.monotonic() - saved > _SAVE_EVERY_S:
            saved = time.monotonic()
            folder.write_spec(spec, spent_s + saved - start)

    try:
        yield tick
    finally:
        folder.write_spec(spec, spent_s + time.monotonic() - start)


@contextmanager
def _meter(total: int, done: int, visible: bool) -> Iterator[Any]:
    """A progress bar: samples, share right since the start, samples per second, time left; gone if none came."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    start, made, right = time.monotonic(), 0, 0
    columns = (
        TextColumn("sampling"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[right]}  {task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not visible, speed_estimate_period=600) as bar:
        task_id = bar.add_task("", total=total, completed=done, right="", rate="")

        def show(records: Sequence[Record]) -> None:
            nonlocal made, right
            made += len(records)
            right += sum(record.correct for record in records)
            rate = made / (time.monotonic() - start)
            bar.update(task_id, advance=len(records), right=f"right {right / made:.3f}", rate=f"{rate:.1f} samples/s")

        try:
            yield show
        except BaseException:
            bar.live.transient = made == 0
            raise
