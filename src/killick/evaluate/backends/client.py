"""Asking a server until it answers: retries with growing pauses, one rate for all threads, and refusals told apart.

A server that is down, busy or talking nonsense may recover, so it is asked again. One that refuses (wrong model, wrong
key, a prompt too long) will refuse again, so that is an error at once.
"""

import email.utils
import http.client
import json
import logging
import math
import os
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from killick.errors import ConfigError, DataError
from killick.evaluate.backends.request import Answer, parse_url, post_json

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_TRANSIENT = frozenset({408, 409, 425, 429})  # and everything from 500
_HINTS = {
    **dict.fromkeys((401, 403), "Is the key right (api_key_env)?"),
    404: "Does base_url end with the version (usually /v1), and is the model called as the server was started with?",
}
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 60.0
_WARN_EVERY_S = 10.0  # a server that is down fails all requests in flight: one line tells it


class TransientError(Exception):
    """An answer (or none) that may be better next time; `pause_s` is what the server asked for."""

    def __init__(self, what: str, pause_s: float = 0.0) -> None:
        super().__init__(what)
        self.pause_s = pause_s


class StoppedError(Exception):
    """Nobody waits for the answer any more."""


@dataclass(frozen=True)
class Client:
    """An OpenAI-compatible server.

    Attributes:
        base_url: up to and including the version, e.g. http://127.0.0.1:8000/v1.
        api_key_env: environment variable that holds the key; "" sends none.
        requests_per_s: most requests begun in a second, retries included; 0 sets no bound.
        timeout_s: wall-clock seconds for one answer.
        patience_s: how long a request is repeated after its first failure.
    """

    base_url: str
    api_key_env: str = ""
    requests_per_s: float = 0.0
    timeout_s: float = 600.0
    patience_s: float = 600.0
    _gate: "_Gate" = field(init=False, repr=False, compare=False)
    _warnings: "_Warnings" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parse_url(self.base_url)
        if not 0 <= self.requests_per_s < math.inf:
            raise ConfigError(f"requests_per_s = {self.requests_per_s}: give a number of 0 (no bound) or more.")
        if not 0 < self.timeout_s <= 86_400 or not 0 <= self.patience_s < math.inf:
            raise ConfigError(
                f"timeout_s = {self.timeout_s}, patience_s = {self.patience_s}: allowed are seconds above 0 and up to "
                "86400, and of 0 (no second try) or more."
            )
        if self.api_key_env and not (self._key and self._key.isascii() and self._key.isprintable()):
            raise ConfigError(
                f"The environment variable {self.api_key_env} (api_key_env) is empty or holds no key of one line in "
                "ASCII. Put the key there."
            )
        object.__setattr__(self, "_gate", _Gate(1.0 / self.requests_per_s if self.requests_per_s else 0.0))
        object.__setattr__(self, "_warnings", _Warnings())

    @property
    def _key(self) -> str:
        return os.environ.get(self.api_key_env, "").strip() if self.api_key_env else ""

    def ask(
        self, path: str, body: Mapping[str, Any], read: Callable[[Any], _T], what: str, stop: threading.Event
    ) -> _T:
        """POST until there is an answer that `read` accepts. May be called from many threads.

        Args:
            path: e.g. "/chat/completions".
            body: JSON-able.
            read: makes the result of the decoded JSON; raises `TransientError` when it makes no sense.
            what: names the request in messages.
            stop: gives up all waiting.

        Raises:
            ConfigError: the server refuses.
            DataError: no sensible answer within `patience_s` after the first failure.
            StoppedError: `stop` was set.
        """
        pauses = random.Random(what)
        failed_at: float | None = None
        for attempt in range(1_000_000):
            self._gate.enter(stop)
            try:
                return read(self._json(self._post(path, body), what))
            except TransientError as trouble:
                now = time.monotonic()
                failed_at = now if failed_at is None else failed_at
                pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(attempt, 20)) * pauses.uniform(0.5, 1.0)
                pause_s += trouble.pause_s
                if now + pause_s > failed_at + self.patience_s:
                    raise DataError(
                        f"The server {self.base_url} gave no usable answer to {what} in {attempt + 1} attempts over "
                        f"{now - failed_at:.0f} s: {trouble}. What was sampled before is on disk; when the server is "
                        "well, run the same command again to resume. More patience_s waits longer."
                    ) from trouble
                self._warnings.add(f"{what}, attempt {attempt + 1}: {trouble}; again in {pause_s:.1f} s")
                self._gate.hold(trouble.pause_s)  # it speaks for all requests
                if stop.wait(pause_s):
                    raise StoppedError from trouble
        raise AssertionError("patience ends before a million attempts")

    def _post(self, path: str, body: Mapping[str, Any]) -> Answer:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            return post_json(parse_url(self.base_url), path, body, headers, self.timeout_s)
        except ssl.SSLCertVerificationError as error:
            raise ConfigError(f"{self.base_url} shows a certificate that does not hold: {error}.") from error
        except (OSError, http.client.HTTPException) as error:
            raise TransientError(f"{type(error).__name__}: {str(error)[:200]!r}") from error

    def _json(self, answer: Answer, what: str) -> Any:
        if answer.status in _TRANSIENT or answer.status >= 500:
            raise TransientError(f"HTTP {answer.status}: {self._excerpt(answer)}", _seconds(answer.retry_after))
        if answer.status != 200:
            hint = _HINTS.get(answer.status, "Correct the settings.")
            raise ConfigError(
                f"The server {self.base_url} refused {what} with HTTP {answer.status}: {self._excerpt(answer)}. {hint}"
            )
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise TransientError(f"no JSON in the answer: {self._excerpt(answer)}") from error

    def _excerpt(self, answer: Answer) -> str:
        """The start of an answer, harmless in a terminal, and without the key should the server repeat it."""
        text = answer.body[:2_000].decode("utf-8", errors="replace")
        return repr((text.replace(self._key, "***") if self._key else text)[:300])


class _Gate:
    """Lets threads through one `interval` apart, and none while it is held."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._next = 0.0
        self._lock = threading.Lock()

    def enter(self, stop: threading.Event) -> None:
        with self._lock:
            now = time.monotonic()
            at = max(now, self._next)
            self._next = max(self._next, at + self._interval_s)
        if stop.wait(at - now):
            raise StoppedError

    def hold(self, seconds: float) -> None:
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


class _Warnings:
    """Logs the first failure of a while, and how many it has passed over since the one before."""

    def __init__(self) -> None:
        self._last = -math.inf
        self._passed_over = 0
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        with self._lock:
            now = time.monotonic()
            if now < self._last + _WARN_EVERY_S:
                self._passed_over += 1
                return
            self._last, passed_over, self._passed_over = now, self._passed_over, 0
        logger.warning("%s%s", text, f" ({passed_over} more failures in between)" if passed_over else "")


def _seconds(retry_after: str | None) -> float:
    """A Retry-After header, seconds or a date; 0 when there is none that can be read."""
    if retry_after is None:
        return 0.0
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0
