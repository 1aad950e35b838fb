"""The endpoint: what is sent, what is tried again, and that no server can hold or break us."""

from __future__ import annotations

import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from llm.chat import Message
from llm.search.endpoint import BadEndpoint, Endpoint, Reply, ask
from llm.search.node import KEPT, digest
from tests.test_llm.chat_server import Script, Sent, fails, says, serving

MESSAGES: tuple[Message, ...] = ({"role": "system", "content": "be brief"}, {"role": "user", "content": "Schöne Grüße"})


def asked(script: Script, *, timeout_s: float = 5.0, retries: int = 4, max_bytes: int = 1 << 24) -> tuple[Reply, list[float]]:
    """The reply to one question, and how long it was waited for between tries."""
    waits: list[float] = []
    with serving(script) as chat:
        endpoint = Endpoint(chat.url, "m", timeout_s=timeout_s, retries=retries, max_wait_s=30, max_bytes=max_bytes)
        return ask(endpoint, MESSAGES, waits.append), waits


def test_a_question_and_its_answer() -> None:
    with serving([says("42", tokens=11)]) as chat:
        reply = ask(Endpoint(chat.url, "small", "sk-1", temperature=0.5, max_tokens=99), MESSAGES)
    assert (reply.content, reply.fault, reply.answer.tokens, reply.answer.tries) == ("42", None, 11, ("200",))
    assert chat.authorization == ["Bearer sk-1"]
    request = chat.requests[0]
    assert request["path"] == "/v1/chat/completions"
    assert (request["model"], request["temperature"], request["max_tokens"], request["stream"]) == ("small", 0.5, 99, False)
    assert request["messages"] == list(MESSAGES)


def test_without_a_key_none_is_sent() -> None:
    with serving([says("42")]) as chat:
        ask(Endpoint(chat.url + "/", "small"), MESSAGES)
    assert chat.authorization == [None]
    assert chat.requests[0]["path"] == "/v1/chat/completions"


def test_the_key_is_in_no_text() -> None:
    assert "sk-1" not in repr(Endpoint("http://127.0.0.1:1/v1", "m", "sk-1"))


def test_rate_limits_and_server_errors_are_tried_again() -> None:
    reply, waits = asked([fails(429, "7"), fails(503), fails(500, "soon"), says("42")])
    assert (reply.content, reply.answer.tries) == ("42", ("429", "503", "500", "200"))
    assert waits == [7.0, 2.0, 4.0]


def test_a_wait_is_never_longer_than_its_limit() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    reply, waits = asked([fails(429, "999999"), fails(429, later), fails(429, "-3"), says("42")])
    assert reply.content == "42"
    assert waits[0] == 30.0
    assert 15 < waits[1] <= 20
    assert waits[2] == 4.0


def test_the_number_of_tries_is_limited() -> None:
    reply, waits = asked([fails(502)], retries=2)
    assert (reply.fault, reply.answer.tries) == ("http-error", ("502", "502", "502"))
    assert reply.detail.startswith("502 Bad Gateway after 3 tries")
    assert reply.answer.text == '{"error": "no"}'
    assert len(waits) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 301])
def test_other_statuses_are_final(status: int) -> None:
    reply, waits = asked([Sent(b"no", status, (("Location", "http://127.0.0.1:1/"),))])
    assert (reply.fault, reply.answer.tries, waits) == ("http-error", (str(status),), [])


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    reply = ask(Endpoint(f"http://127.0.0.1:{port}", "m", retries=1), MESSAGES, lambda _: None)
    assert (reply.fault, reply.answer.tries) == ("http-error", ("broken", "broken"))
    assert "ConnectionRefusedError" in reply.detail


def test_a_dropped_connection_is_tried_again() -> None:
    reply, _ = asked([Sent(drop=True), says("42")])
    assert (reply.content, reply.answer.tries) == ("42", ("broken", "200"))


@pytest.mark.parametrize("sent", [Sent(hang=True), Sent(b"x" * 1000, drip_s=0.05), Sent(b"half", promised=4000, hang=True)])
def test_a_slow_server_holds_us_no_longer_than_the_deadline(sent: Sent) -> None:
    start = time.monotonic()
    with serving([sent]) as chat:
        reply = ask(Endpoint(chat.url, "m", timeout_s=0.3), MESSAGES)
        seconds = time.monotonic() - start
    assert (reply.fault, reply.answer.tries) == ("timeout", ("timeout",))
    assert seconds < 1.5
    if sent.drip_s:
        assert set(reply.answer.text) == {"x"}


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "no JSON"),
        (b"<html>", "no JSON"),
        (says("42").body[:-9], "no JSON"),
        (b'{"choices": []}', "no choices[0]"),
        (b'{"choices": [{"message": {"content": null}}]}', "no choices[0]"),
        (b'{"choices": {"0": 1}}', "no choices[0]"),
        (b'[{"choices": 1}]', "no choices[0]"),
        (b"\xff\xfe\x00", "no JSON"),
        (b"[" * 10_000_000, "no JSON"),
        (b"9" * 1_000_000, "no JSON"),
    ],
)
def test_what_is_no_reply_is_told_and_kept(body: bytes, detail: str) -> None:
    start = time.monotonic()
    reply, _ = asked([Sent(body)])
    assert time.monotonic() - start < 1
    assert reply.fault == "malformed-answer"
    assert detail in reply.detail
    text = body.decode("utf-8", "replace")
    assert (reply.answer.text, reply.answer.length, reply.answer.digest) == (text[:KEPT], len(text), digest(text))


def test_a_body_shorter_than_promised_is_truncated_text() -> None:
    body = says("42").body
    reply, _ = asked([Sent(body[:-10], promised=len(body))])
    assert reply.fault == "malformed-answer"
    assert reply.answer.text == body[:-10].decode()


def test_a_body_over_the_limit_is_not_read_to_its_end() -> None:
    reply, _ = asked([Sent(b"a" * 3_000_000)], max_bytes=1_000_000)
    assert (reply.fault, reply.detail) == ("malformed-answer", "the reply is larger than 1000000 bytes")
    assert 1_000_000 < reply.answer.length < 1_200_000


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:80",
        "ftp://a/v1",
        "http://",
        "http://a:x/",
        "http://a:0/",
        "http://u@a/",
        "http://a/?q",
        "http://a/b c",
        "http://a/ü",
    ],
)
def test_an_address_that_cannot_be_used(url: str) -> None:
    with pytest.raises(BadEndpoint):
        Endpoint(url, "m")


@pytest.mark.parametrize("key", ["a b", "a\r\nX: y", "ü"])
def test_a_key_that_cannot_be_sent(key: str) -> None:
    with pytest.raises(BadEndpoint, match="the key holds"):
        Endpoint("http://a/", "m", key)


@pytest.mark.parametrize("usage", ["7", '"many"', "-1", "1e400", "null"])
def test_odd_token_counts_do_not_matter(usage: str) -> None:
    body = f'{{"choices": [{{"message": {{"content": "42"}}}}], "usage": {{"total_tokens": {usage}}}}}'
    reply, _ = asked([Sent(body.encode())])
    assert (reply.content, reply.answer.tokens) == ("42", 7 if usage == "7" else 0)
