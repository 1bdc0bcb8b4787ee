"""Several evaluations side by side, only when they asked the same question."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from killick.errors import ConfigError, KillickError, RecordError
from killick.evaluate.answers import AnswerCoder
from killick.evaluate.estimators import Interval, bootstrap, ks_for, paired_difference, pass_at_ks
from killick.evaluate.folder import Evaluation, load
from killick.evaluate.majority import maj_at_ks
from killick.evaluate.paired import holm
from killick.evaluate.records import Record
from killick.evaluate.support import SupportChange, distinct_modes, support_change
from killick.evaluate.texts import PatternCoder, PatternRequest, Visitor, visit
from killick.provenance import differences
from killick.registry import nearest

# What two evaluations may differ in: the model is what is compared, and another sampler seed draws from the same
# distribution (equal seeds only make the difference less noisy).
MAY_DIFFER = frozenset({"model.fingerprint", "sampling.seed"})
# What they may differ in when asked for: two backends, or two float formats, draw from one distribution only as far as
# both are right, so a difference between models then holds that of the backends too.
ALLOWABLE = {"backend": "backend.", "dtype": "performance.dtype"}


@dataclass(frozen=True)
class Estimate:
    """Numbers of one run, column by column, and how they differ from the first run's.

    Attributes:
        values: one interval a column.
        difference: this run minus the first, on the same problems; empty for the first run.
    """

    values: tuple[Interval, ...]
    difference: tuple[Interval, ...]


@dataclass(frozen=True)
class ComparedRun:
    """One line of a comparison.

    Attributes:
        folder: as given.
        model: name of the evaluated model.
        seed: of the sampler.
        pass_at: one interval per k; pass@1 is mean@N, the mean accuracy of all N samples.
        difference: this run minus the first, on the same problems, per k; empty for the first run.
        tokens_mean: sampled tokens per completion.
        truncated_frac: share of completions without an end.
        maj_at: success of a vote among k samples, per k; None where answers cannot be told (see `notes`).
        modes: different solution modes per problem; None where the task names none.
        support: problems lost and gained against the first run, with tests; None for the first run.
        p_solved_holm: `support.p_solved` adjusted for the number of runs compared.
        p_rates_holm: `support.p_rates` adjusted likewise.
        patterns: share of answers by reasoning pattern; None unless asked for.
    """

    folder: str
    model: str
    seed: int
    pass_at: tuple[Interval, ...]
    difference: tuple[Interval, ...]
    tokens_mean: float
    truncated_frac: float
    maj_at: Estimate | None = None
    modes: Estimate | None = None
    support: SupportChange | None = None
    p_solved_holm: float | None = None
    p_rates_holm: float | None = None
    patterns: Estimate | None = None


@dataclass(frozen=True)
class Comparison:
    """Evaluations of one question.

    Attributes:
        settings: what all runs share.
        differing: setting -> its value in every run, where that was allowed to differ.
        ks: the columns.
        runs: in the order given, the first being the baseline.
        patterns: names of the reasoning patterns, if they were asked for.
        pattern_source: what found them, and in how many samples of a problem.
        notes: what could not be computed, and why.
    """

    settings: dict[str, Any]
    ks: tuple[int, ...]
    runs: tuple[ComparedRun, ...]
    patterns: tuple[str, ...] = ()
    pattern_source: str = ""
    notes: tuple[str, ...] = ()
    differing: dict[str, list[Any]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `ks[i]` belongs to entry i of every `pass_at`, `maj_at` and `difference`."""
        return asdict(self)


@dataclass
class Read:
    """One evaluation with everything that is computed from its texts.

    Attributes:
        evaluation: settings and verdicts.
        ks: columns of the next two.
        pass_QK: pass@k of every problem.
        maj_QK: maj@k of every problem, or None.
        pattern_QP: share of each pattern, or None.
        notes: what could not be computed.
    """

    evaluation: Evaluation
    ks: list[int]
    pass_QK: np.ndarray
    maj_QK: np.ndarray | None = None
    pattern_QP: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)


def compare(
    folders: Sequence[Path],
    rng: np.random.Generator | None = None,
    patterns: PatternRequest | None = None,
    allow: Collection[str] = (),
) -> Comparison:
    """Load evaluations and estimate pass@k, maj@k and what differs from the first one.

    Args:
        folders: two or more evaluation folders; the first is the baseline.
        rng: for the bootstrap; a generator seeded with 0 by default, so that a table can be reproduced.
        patterns: look for reasoning patterns as well.
        allow: names from `ALLOWABLE`: what may differ as well.

    Raises:
        ConfigError: fewer than two folders, or an unknown name in `allow`.
        RecordError: an evaluation is missing, unfinished (a problem has fewer than N samples) or corrupt, or asked
            another question than the first (other task, split, problems or sampling); every differing setting is
            listed with both values. Nothing is averaged over different problems.
    """
    rng = rng or np.random.default_rng(0)
    return compare_read(read_all(folders, rng, patterns, allow), rng, patterns)


def read_all(
    folders: Sequence[Path],
    rng: np.random.Generator,
    patterns: PatternRequest | None = None,
    allow: Collection[str] = (),
) -> list[Read]:
    """Load evaluations of one question, with what their texts tell.

    Raises:
        ConfigError, RecordError: as `compare`.
    """
    if len(folders) < 2:
        raise ConfigError(f"A comparison needs at least 2 evaluation folders, found {len(folders)}.")
    for name in allow:
        if name not in ALLOWABLE:
            raise ConfigError(f"{name!r} is nothing that may differ. {nearest(name, ALLOWABLE)}")
    evaluations = [load(Path(folder)) for folder in folders]
    for other in evaluations[1:]:
        _refuse_different(evaluations[0], other, allow)
    return [_read(one, rng, patterns) for one in evaluations]


class _Votes:
    """An `AnswerCoder` that stops at its first error: the comparison goes on without votes.

    Keys are made by verifiers, which may be anybody's, from completions, which may be anything.
    """

    def __init__(self, coder: AnswerCoder) -> None:
        self.coder = coder
        self.error = ""

    def __call__(self, q: int, n: int, record: Record) -> None:
        if self.error:
            return
        try:
            self.coder(q, n, record)
        except Exception as error:
            self.error = (
                f"maj@k: the verifier cannot say which answer sample {n} of problem {record.uid!r} gives "
                f"({type(error).__name__}: {error}), so votes are not counted."
            )


def _read(evaluation: Evaluation, rng: np.random.Generator, patterns: PatternRequest | None) -> Read:
    num_samples = evaluation.spec.sampling.num_samples
    ks = ks_for(num_samples)
    read = Read(evaluation, ks, pass_at_ks(evaluation.table.num_correct_Q, num_samples, ks))
    visitors: list[Visitor] = []
    answers = None
    try:
        answers = _Votes(AnswerCoder(evaluation))
        visitors.append(answers)
    except KillickError as error:  # a comparison goes on without votes: the problems need not be at hand
        read.notes.append(str(error))
    shown = PatternCoder(evaluation, patterns) if patterns is not None else None
    if shown is not None:
        visitors.append(shown)
    visit(evaluation, visitors)
    if answers is not None and answers.error:
        read.notes.append(answers.error)
    elif answers is not None:
        read.maj_QK = maj_at_ks(answers.coder.answer_QN, ks, rng)
    if shown is not None:
        read.pattern_QP = shown.frac_QP
    return read


def compare_read(reads: Sequence[Read], rng: np.random.Generator, patterns: PatternRequest | None) -> Comparison:
    """The comparison of evaluations that were read."""
    first = reads[0]
    has_modes = any(read.evaluation.table.modes for read in reads)
    runs = []
    for read in reads:
        one, base = read.evaluation, None if read is first else first
        num_samples = one.spec.sampling.num_samples
        run = ComparedRun(
            folder=str(one.folder),
            model=one.spec.model.name,
            seed=one.spec.sampling.seed,
            pass_at=tuple(bootstrap(read.pass_QK, rng)),
            difference=() if base is None else tuple(paired_difference(base.pass_QK, read.pass_QK, rng)),
            tokens_mean=float(one.table.tokens_QN.mean()),
            truncated_frac=float(one.table.truncated_QN.mean()),
            maj_at=_estimate(None if base is None else base.maj_QK, read.maj_QK, rng),
            modes=_estimate(None if base is None else _modes(base), _modes(read), rng) if has_modes else None,
            patterns=_estimate(None if base is None else base.pattern_QP, read.pattern_QP, rng),
        )
        if base is not None:
            base_Q = base.evaluation.table.num_correct_Q
            run = replace(run, support=support_change(base_Q, one.table.num_correct_Q, num_samples))
        runs.append(run)
    notes = dict.fromkeys(note for read in reads for note in read.notes)
    asked = [question(read.evaluation) for read in reads]
    values = {key: [one.get(key) for one in asked] for key in dict.fromkeys(key for one in asked for key in one)}
    differing = {key: found for key, found in values.items() if any(value != found[0] for value in found)}
    shared = {key: value for key, value in asked[0].items() if key not in differing}
    comparison = Comparison(shared, tuple(first.ks), _adjusted(runs), notes=tuple(notes), differing=differing)
    if patterns is None:
        return comparison
    num_read = patterns.num_samples or first.evaluation.spec.sampling.num_samples
    source = f"{patterns.source}, first {num_read} samples of a problem"
    return replace(comparison, patterns=patterns.names, pattern_source=source)


def _modes(read: Read) -> np.ndarray:
    return distinct_modes(read.evaluation.table)[:, None]


def _estimate(base_QK: np.ndarray | None, values_QK: np.ndarray | None, rng: np.random.Generator) -> Estimate | None:
    if values_QK is None:
        return None
    difference = () if base_QK is None else tuple(paired_difference(base_QK, values_QK, rng))
    return Estimate(tuple(bootstrap(values_QK, rng)), difference)


def _adjusted(runs: Sequence[ComparedRun]) -> tuple[ComparedRun, ...]:
    """The runs with their p-values adjusted for how many are compared with the first."""
    changes = [run.support for run in runs if run.support is not None]
    solved, rates = holm([change.p_solved for change in changes]), holm([change.p_rates for change in changes])
    others = [
        replace(run, p_solved_holm=solved_p, p_rates_holm=rates_p)
        for run, solved_p, rates_p in zip(runs[1:], solved, rates, strict=True)
    ]
    return (*runs[:1], *others)


def question(one: Evaluation) -> dict[str, Any]:
    """The settings in which two evaluations must be equal, unless allowed to differ, flat."""
    named = {"backend.name": one.spec.backend["name"], **one.spec.defining()}
    return {key: value for key, value in named.items() if key not in MAY_DIFFER}


def _refuse_different(first: Evaluation, other: Evaluation, allow: Collection[str]) -> None:
    allowed = tuple(ALLOWABLE[name] for name in allow)
    found = [change for change in differences(question(first), question(other)) if not change[0].startswith(allowed)]
    if first.table.uids != other.table.uids:
        only = sorted(set(first.table.uids) ^ set(other.table.uids))[0]
        found.append(("uids", f"{only in first.table.uids} for {only!r}", f"{only in other.table.uids}"))
    if found:
        listed = "; ".join(f"{key}: {one!r} against {two!r}" for key, one, two in found)
        keys = [key for key, _, _ in found]
        names = [n for n, start in ALLOWABLE.items() if n in allow or any(key.startswith(start) for key in keys)]
        if all(key.startswith(tuple(ALLOWABLE[name] for name in names)) for key in keys):
            options = " ".join(f"--may-differ {name}" for name in names)
            remedy = f"Evaluate both alike, or compare all the same with {options}: the difference then holds that too."
        else:
            remedy = "Evaluate both with the same task, split and sampling settings."
        raise RecordError(f"{first.folder} and {other.folder} cannot be compared, they differ in {listed}. {remedy}")
