"""A chat endpoint that speaks OpenAI's protocol, over plain HTTP or HTTPS: one question, one reply, whatever the other side does.

Every limit holds for hostile servers too: a reply has a deadline for the whole of it, and a size. No proxy, no redirect, no
environment variable; the key goes into the request's header and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from llm.chat import Message
from llm.search.node import Answer, digest, record_answer

Fault: TypeAlias = Literal["http-error", "timeout", "malformed-answer"]

MAX_REPLY_BYTES = 16 * 1024 * 1024


class BadEndpoint(ValueError):
    """An address or a key that cannot be used."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask, and how. ``base_url`` is what ``/chat/completions`` is put behind, as in ``http://127.0.0.1:8000/v1``.

    ``timeout_s`` holds for one try, from connecting to the last byte; 429, 5xx and broken connections are tried again ``retries``
    times, after ``backoff_s``, then twice that, and so on, or after what the server asks for, but never more than ``max_wait_s``.
    """

    base_url: str
    model: str
    key: str = field(default="", repr=False)
    temperature: float = 0.3
    max_tokens: int = 8192
    timeout_s: float = 120.0
    retries: int = 4
    backoff_s: float = 1.0
    max_wait_s: float = 60.0
    max_bytes: int = MAX_REPLY_BYTES

    def __post_init__(self) -> None:
        """Raises BadEndpoint."""
        try:
            parts = urlsplit(self.base_url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            usable = False
        if not usable or parts.query or parts.fragment or parts.username:
            raise BadEndpoint(f"{self.base_url!r} is no address of an endpoint, as in http://127.0.0.1:8000/v1")
        if not all("!" <= c <= "~" for c in self.base_url):
            raise BadEndpoint("the address holds characters that no address has")
        if not all("!" <= c <= "~" for c in self.key):
            raise BadEndpoint("the key holds a blank, a line break or a character that no key has")


@dataclass(frozen=True, slots=True)
class Reply:
    """What was said, or why nothing was: ``content`` is the model's text if ``fault`` is None. ``answer`` is the record of it."""

    content: str
    answer: Answer
    fault: Fault | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Response:
    """One try: the status ("429", "timeout", "broken"), the body, how long the server asks to wait."""

    status: str
    body: bytes = b""
    detail: str = ""
    wait_s: float | None = None

    @property
    def worth_another_try(self) -> bool:
        return self.status in ("429", "broken") or (len(self.status) == 3 and self.status.startswith("5"))


def ask(endpoint: Endpoint, messages: Sequence[Message], sleep: Callable[[float], None] = time.sleep) -> Reply:
    """The endpoint's reply to ``messages``. Never raises for what the other side does."""
    payload = {
        "model": endpoint.model,
        "messages": list(messages),
        "temperature": endpoint.temperature,
        "max_tokens": endpoint.max_tokens,
        "stream": False,
    }
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    tries: list[str] = []
    while True:
        response = _post(endpoint, body)
        tries.append(response.status)
        if not response.worth_another_try or len(tries) > endpoint.retries:
            return _reply(endpoint, response, tuple(tries), digest(body.decode("utf-8", "replace")))
        wait = endpoint.backoff_s * 2.0 ** (len(tries) - 1) if response.wait_s is None else response.wait_s
        sleep(min(max(wait, 0.0), endpoint.max_wait_s))


# ------------------------------------------------------------------------------------------------------------------------- HTTP


def _post(endpoint: Endpoint, body: bytes) -> _Response:
    parts = urlsplit(endpoint.base_url)
    assert parts.hostname is not None
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=endpoint.timeout_s)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    received = bytearray()
    try:
        connection.connect()
        with _Deadline(connection, endpoint.timeout_s) as deadline:
            try:
                connection.request("POST", parts.path.rstrip("/") + "/chat/completions", body, headers)
                response = connection.getresponse()
                while len(received) <= endpoint.max_bytes and (part := response.read1(65536)):
                    received += part
            except (OSError, http.client.HTTPException, ValueError) as problem:
                late = deadline.passed or isinstance(problem, TimeoutError)  # the socket's own limit may come first
                return _Response("timeout" if late else "broken", bytes(received), _told(problem))
            if deadline.passed:
                return _Response("timeout", bytes(received))
            wait = _retry_after(response.getheader("Retry-After"))
            return _Response(str(response.status), bytes(received), response.reason, wait)
    except (OSError, http.client.HTTPException, ValueError) as problem:
        return _Response("timeout" if isinstance(problem, TimeoutError) else "broken", bytes(received), _told(problem))
    finally:
        connection.close()


class _Deadline:
    """Shuts a connection down when its time is over, so that a server which sends a byte now and then cannot hold us."""

    def __init__(self, connection: http.client.HTTPConnection, seconds: float) -> None:
        self.passed = False
        self._socket: socket.socket = connection.sock
        self._timer = threading.Timer(seconds, self._shut)
        self._timer.daemon = True

    def _shut(self) -> None:
        self.passed = True
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # it ended by itself at this very moment
            return

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _retry_after(value: str | None) -> float | None:
    """Seconds, from either form of the header; None for any other text."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _told(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"[:200]


# --------------------------------------------------------------------------------------------------------------------- protocol


def _reply(endpoint: Endpoint, response: _Response, tries: tuple[str, ...], prompt: str) -> Reply:
    raw = response.body.decode("utf-8", "replace")
    answer = record_answer(raw, tries, prompt)
    if response.status == "timeout":
        return Reply("", answer, "timeout", "no complete reply in time")
    if response.status != "200":
        count = "" if len(tries) == 1 else f" after {len(tries)} tries"
        return Reply("", answer, "http-error", f"{response.status} {response.detail}{count}".strip())
    if len(response.body) > endpoint.max_bytes:
        return Reply("", answer, "malformed-answer", f"the reply is larger than {endpoint.max_bytes} bytes")
    try:
        obj = json.loads(raw)
    except (ValueError, RecursionError) as problem:
        return Reply("", answer, "malformed-answer", f"the reply is no JSON: {_told(problem)}")
    content = _content(obj)
    if content is None:
        return Reply("", answer, "malformed-answer", "the reply has no choices[0].message.content")
    return Reply(content, record_answer(raw, tries, prompt, _tokens(obj)))


def _content(obj: object) -> str | None:
    choices = obj.get("choices") if isinstance(obj, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else None


def _tokens(obj: Mapping[str, Any]) -> int:
    usage = obj.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if type(total) is int and 0 <= total < 2**53 else 0
