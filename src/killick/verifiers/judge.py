"""The one way training and evaluation call a verifier, so that both treat a failing one alike."""

import logging
from collections.abc import Sequence

from killick.errors import DataError, VerifierError
from killick.verifiers.types import Verdict, Verifier, wrong

_log = logging.getLogger(__name__)


def judge(verifier: Verifier, completion: str, answer: str) -> Verdict:
    """The verdict on one completion.

    A crash, which the protocol forbids, is logged with its traceback and becomes reason "error", which both callers
    count: the completion may have provoked it. An error raised on purpose is not about the completion, so it stops
    the work: scoring every completion 0 would hide it.

    Raises:
        DataError: the gold is unreadable.
        VerifierError: the verifier cannot be used at all.
    """
    try:
        return verifier(completion, answer)
    except (DataError, VerifierError):
        raise
    except Exception:
        size = f"{len(completion)} characters" if isinstance(completion, str) else f"type {type(completion).__name__}"
        _log.exception(
            '%s crashed on a completion of %s (gold %.80r): counted as reason "error".',
            type(verifier).__name__,
            size,
            answer,
        )
        return wrong("error")


def judge_all(verifier: Verifier, completions: Sequence[str], answers: Sequence[str]) -> list[Verdict]:
    """The verdicts on many completions, in order; each is what `judge` gives for it.

    A verifier with a method `judge_many` of the same arguments gets them all at once, so that it can share the work
    out among processes. If that crashes, the completions are judged one by one: only the guilty one is an error.

    Raises:
        DataError, VerifierError: as `judge`.
        ValueError: the two sequences differ in length.
    """
    pairs = list(zip(completions, answers, strict=True))
    judge_many = getattr(verifier, "judge_many", None)
    if judge_many is not None:
        try:
            verdicts: list[Verdict] = judge_many(completions, answers)
            return verdicts
        except (DataError, VerifierError):
            raise
        except Exception:
            _log.debug("%s.judge_many crashed; judging one by one.", type(verifier).__name__, exc_info=True)
    return [judge(verifier, completion, answer) for completion, answer in pairs]
