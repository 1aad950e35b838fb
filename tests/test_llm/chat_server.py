"""A small local server that speaks the chat protocol, and breaks it on request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Sent:
    """One response. ``promised``: the length that the header claims, if not the true one; ``drip_s``: a pause before each of the
    first bytes; ``hang``: nothing is sent until the server is closed."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    promised: int | None = None
    drip_s: float = 0.0
    hang: bool = False
    drop: bool = False


def says(content: object, tokens: int = 7) -> Sent:
    """A good envelope around ``content``, which is what the model says."""
    text = content if isinstance(content, str) else json.dumps(content)
    message = {"role": "assistant", "content": text}
    reply = {"id": "x", "choices": [{"index": 0, "message": message}], "usage": {"total_tokens": tokens}}
    return Sent(json.dumps(reply).encode())


def fails(status: int, retry_after: str | None = None) -> Sent:
    headers = (("Retry-After", retry_after),) if retry_after is not None else ()
    return Sent(b'{"error": "no"}', status, headers)


@dataclass(slots=True)
class Chat:
    """A running server: its address, and the requests that it got."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    authorization: list[str | None] = field(default_factory=list)


Script = Sequence[Sent] | Callable[[dict[str, Any]], Sent]
"""Responses in order, the last one again and again; or a function of the request."""


@contextmanager
def serving(script: Script) -> Iterator[Chat]:
    chat, over = Chat(), threading.Event()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(chat.requests)
                chat.requests.append({"path": self.path, **body})
                chat.authorization.append(self.headers.get("Authorization"))
            sent = script(body) if callable(script) else script[min(number, len(script) - 1)]
            try:
                self._send(sent)
            except OSError:  # the client had enough
                self.close_connection = True

        def _send(self, sent: Sent) -> None:
            if sent.hang:
                over.wait(30)
            if sent.hang or sent.drop:
                self.close_connection = True
                return
            self.send_response(sent.status)
            for name, value in sent.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent.body) if sent.promised is None else sent.promised))
            self.end_headers()
            slow = sent.body if sent.drip_s else b""
            for k in range(len(slow)):
                if over.is_set():
                    return
                time.sleep(sent.drip_s)
                self.wfile.write(slow[k : k + 1])
            self.wfile.write(sent.body[len(slow) :])

        def log_message(self, *_: Any) -> None:
            """Not to the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    chat.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield chat
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()
