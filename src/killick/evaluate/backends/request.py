"""One HTTP request with a deadline on all of it: a server that drips a byte a second is as late as a silent one.

Only what is needed here: no redirects (an API key must not follow one), no proxies, no connection kept open.
"""

import http.client
import io
import json
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from killick.errors import ConfigError

MAX_BYTES = 32_000_000  # of an answer; a completion of 100,000 tokens has less than a megabyte


@dataclass(frozen=True)
class Answer:
    """What a server said, whatever it said."""

    status: int
    retry_after: str | None
    body: bytes


def parse_url(base_url: str) -> SplitResult:
    """The address of a server, with nothing in it that must not be written into records.

    Raises:
        ConfigError: not http(s)://host[:port][/path].
    """
    try:
        url = urlsplit(base_url.rstrip("/"))
        name = (url.hostname or "").encode("idna")
        fits = bool(name and url.scheme in ("http", "https") and url.port != 0 and re.fullmatch("[!-~]+", base_url))
    except ValueError:  # a port or a host name that is none
        fits, url = False, urlsplit("")
    if not fits or url.username is not None or url.password is not None or url.query or url.fragment:
        raise ConfigError(
            "base_url must be http(s)://HOST[:PORT][/PATH], e.g. http://127.0.0.1:8000/v1, without user, password or "
            f"query; found {base_url.rpartition('@')[2][:200]!r}. A key goes into an environment variable: api_key_env."
        )
    return url


def post_json(url: SplitResult, path: str, body: Any, headers: Mapping[str, str], timeout_s: float) -> Answer:
    """Send JSON, wait for the whole answer.

    Args:
        url: from `parse_url`.
        path: appended to the URL's own, e.g. "/chat/completions".
        body: JSON-able.
        headers: besides the content type.
        timeout_s: wall-clock seconds for everything.

    Raises:
        OSError: no connection, a broken one, or too late (TimeoutError).
        http.client.HTTPException: the answer is not HTTP, is cut off, or is longer than MAX_BYTES.
    """
    deadline = time.monotonic() + timeout_s
    connection = _connection(url, timeout_s)
    try:
        connection.connect()
        plain = connection.sock
        try:
            connection.sock = _TimedSocket(plain, deadline)
            sent = {"Content-Type": "application/json", "Connection": "close", **headers}
            connection.request("POST", url.path + path, json.dumps(body).encode("ascii"), sent)
            response = connection.getresponse()
            return Answer(response.status, response.getheader("Retry-After"), _read(response))
        finally:
            plain.close()
    finally:
        connection.close()


def _connection(url: SplitResult, timeout_s: float) -> http.client.HTTPConnection:
    assert url.hostname, "checked by parse_url"
    if url.scheme == "https":
        return http.client.HTTPSConnection(
            url.hostname, url.port, timeout=timeout_s, context=ssl.create_default_context()
        )
    return http.client.HTTPConnection(url.hostname, url.port, timeout=timeout_s)


def _read(response: http.client.HTTPResponse) -> bytes:
    parts, size = [], 0
    while part := response.read(65_536):
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise http.client.HTTPException(f"the answer is longer than {MAX_BYTES} bytes")
    if response.length:  # what Content-Length promised and did not come; `read(n)` does not mind
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(parts)


class _TimedSocket:
    """As much of a socket as http.client uses, every wait bounded by one deadline."""

    def __init__(self, plain: Any, deadline: float) -> None:
        self._plain = plain
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        self._plain.settimeout(_left(self._deadline))
        self._plain.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._plain, self._deadline))

    def close(self) -> None:
        """Nothing: http.client closes before it reads; `post_json` closes the socket itself."""


class _TimedReader(io.RawIOBase):
    def __init__(self, plain: Any, deadline: float) -> None:
        self._plain = plain
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._plain.settimeout(_left(self._deadline))
        got: int = self._plain.recv_into(buffer)
        return got


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no whole answer in time")
    return left
