"""Any server that speaks OpenAI's chat completions: vLLM, SGLang, llama.cpp, `transformers serve`, hosted models.

The server applies its own chat template and draws by itself, so two things are out of reach: a fingerprint of its
weights, and one random stream per completion. Each request carries a seed of its own; whether equal seeds give equal
texts is up to the server (many batch, and batching changes rounding).
"""

import json
import logging
import queue
import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from killick.errors import ConfigError, DataError
from killick.evaluate.backends.client import Client, StoppedError, TransientError
from killick.evaluate.backends.types import Completion, cut_at_stop, stream_seed
from killick.evaluate.settings import ModelIdentity, SamplingSettings
from killick.tasks.types import Row

logger = logging.getLogger(__name__)

# What switches off every part of a sampler that was not asked for. A field a server does not know may be refused, so
# each kind of server has its own list; the plain one leaves top-k, min-p and repetition penalty to the server.
_PLAIN: Mapping[str, Any] = {"presence_penalty": 0.0, "frequency_penalty": 0.0}
_GENERATION_CONFIG = {
    "do_sample": True, "num_beams": 1, "top_k": 0, "min_p": 0.0, "typical_p": 1.0, "repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0,
}  # fmt: skip
_DIALECTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "plain": ("max_tokens", _PLAIN),
    "openai": ("max_completion_tokens", _PLAIN),
    "vllm": ("max_tokens", {**_PLAIN, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),
    "transformers": ("max_tokens", {"generation_config": json.dumps(_GENERATION_CONFIG)}),
}


@dataclass(frozen=True)
class OpenAIBackend:
    """Chat completions over HTTP, many at a time.

    Attributes:
        model: as the server calls it.
        base_url: up to and including the version, e.g. http://127.0.0.1:8000/v1.
        dialect: which fields pin the sampler: "plain" (OpenAI's own, with max_tokens), "openai" (with
            max_completion_tokens), "vllm" (also SGLang: top-k, min-p and repetition penalty too), "transformers"
            (`transformers serve`: its generation_config).
        concurrency: requests in flight.
        api_key_env: environment variable that holds the key; "" sends none.
        requests_per_s: most requests begun in a second; 0 sets no bound.
        timeout_s: wall-clock seconds for one completion.
        patience_s: how long a request is repeated after its first failure.
    """

    model: str
    base_url: str
    dialect: Literal["plain", "openai", "vllm", "transformers"] = "plain"
    concurrency: int = 16
    api_key_env: str = ""
    requests_per_s: float = 0.0
    timeout_s: float = 600.0
    patience_s: float = 600.0

    def __post_init__(self) -> None:
        if self.dialect not in _DIALECTS:
            raise ConfigError(f"dialect = {self.dialect!r}: allowed are {', '.join(_DIALECTS)}.")
        if not 1 <= self.concurrency <= 1024:
            raise ConfigError(f"concurrency = {self.concurrency}: allowed are 1 to 1024 requests in flight.")
        _ = self._client  # refuses its settings now rather than at the first request

    @cached_property
    def _client(self) -> Client:
        return Client(self.base_url, self.api_key_env, self.requests_per_s, self.timeout_s, self.patience_s)

    @property
    def dtype(self) -> str:
        """Unknown."""
        return "auto"

    def identity(self) -> ModelIdentity:
        """The name alone: what weights a server has loaded cannot be seen from here."""
        return ModelIdentity(f"{self.model} at {self.base_url}", f"not known, served as {self.model}")

    def defining(self) -> Mapping[str, Any]:
        """The dialect pins the sampler; the address does not matter, nor does speed."""
        return {"name": "openai", "dialect": self.dialect}

    def sample(
        self, rows: Sequence[Row], settings: SamplingSettings, done: Collection[tuple[str, int]] = frozenset()
    ) -> Generator[list[Completion], None, None]:
        """Every (problem, sample) not in `done`; a batch is what has arrived since the last one.

        Raises:
            ConfigError: the server refuses a request.
            DataError: it stays away, or does not count tokens, or does not keep to the limit.
        """
        if self.dialect in ("plain", "openai"):
            logger.warning(
                "Dialect %r: top-k, min-p and repetition penalty are whatever %s has set.", self.dialect, self.base_url
            )
        jobs = [(row, n) for row in rows for n in range(settings.num_samples) if (row.uid, n) not in done]

        def draw(job: tuple[Row, int], stop: threading.Event) -> Completion:
            row, n = job
            body = self._body(row, n, settings)
            what = f"sample {n} of problem {row.uid!r}"
            return self._client.ask(
                "/chat/completions", body, lambda answer: _completion(answer, row.uid, n, settings), what, stop
            )

        yield from _in_parallel(jobs, draw, self.concurrency)

    def _body(self, row: Row, n: int, settings: SamplingSettings) -> dict[str, Any]:
        limit, pins = _DIALECTS[self.dialect]
        body = {
            "model": self.model,
            "messages": row.prompt,
            limit: settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "seed": stream_seed(settings.seed, row.uid, n),
            **pins,
        }
        if settings.stop:
            body["stop"] = list(settings.stop)
        return body


def _completion(answer: Any, uid: str, n: int, settings: SamplingSettings) -> Completion:
    """A completion from an answer.

    Raises:
        TransientError: it is none.
        DataError: what it lacks will not come with another try.
    """
    try:
        choice = answer["choices"][0]
        message, finish = choice["message"], choice["finish_reason"]
        text = _text(message.get("content"), message.get("reasoning_content") or message.get("reasoning"))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise TransientError(f"no chat completion in the answer: {str(answer)[:200]!r}") from error
    if finish in (None, "abort", "error"):
        raise TransientError(f"the server broke off (finish_reason {finish!r})")
    if finish not in ("stop", "length"):
        logger.warning("sample %d of problem %r ended by %.80r: counted as truncated.", n, uid, finish)
    usage = answer.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise DataError(f"The server does not say how many tokens it sampled (usage.completion_tokens is {tokens!r}).")
    if tokens > settings.max_tokens:
        raise DataError(
            f"The server sampled {tokens} tokens where max_tokens = {settings.max_tokens} was asked: it does not know "
            "the limit by that name. Choose another dialect."
        )
    return Completion(uid, n, cut_at_stop(text, settings.stop), tokens, finish != "stop")


def _text(content: Any, reasoning: Any) -> str:
    """What the model wrote; a server that parses reasoning out of it gets it put back in the usual tags."""
    if content is not None and not isinstance(content, str):
        raise TypeError("content is no text")
    if not reasoning:
        return content or ""
    if not isinstance(reasoning, str):
        raise TypeError("reasoning is no text")
    return f"<think>\n{reasoning}" + ("" if content is None else f"\n</think>\n\n{content}")


def _in_parallel(
    jobs: Sequence[tuple[Row, int]],
    draw: Callable[[tuple[Row, int], threading.Event], Completion],
    num_threads: int,
) -> Generator[list[Completion], None, None]:
    """What `draw` makes of every job, as it arrives; the first error ends it, after all that came before."""
    todo, lock, stop = iter(jobs), threading.Lock(), threading.Event()
    arrived: queue.SimpleQueue[Completion | Exception | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            while not stop.is_set():
                with lock:
                    job = next(todo, None)
                if job is None:
                    break
                arrived.put(draw(job, stop))
        except StoppedError:
            pass
        except Exception as error:
            arrived.put(error)
        finally:
            arrived.put(None)

    open_threads = min(num_threads, len(jobs))
    for _ in range(open_threads):
        threading.Thread(target=work, daemon=True).start()  # daemon: Ctrl-C does not wait for the last answer
    try:
        while open_threads:
            things = [arrived.get(), *(arrived.get() for _ in range(arrived.qsize()))]
            open_threads -= things.count(None)
            made = [thing for thing in things if isinstance(thing, Completion)]
            if made:
                yield made
            for thing in things:
                if isinstance(thing, Exception):
                    raise thing
    finally:
        stop.set()
