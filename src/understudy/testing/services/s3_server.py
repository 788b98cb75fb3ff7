"""Serves moto's S3 with two promises a real one makes: requests are atomic, and what was acknowledged stays.

moto alone keeps everything in memory, and looks for a key before it writes it without holding a lock. Here requests are
handled one at a time, and every successful change is in the journal before the response is sent; a start replays the
journal. A kill loses only changes without a response, a power cut more: the journal is not fsynced.
"""

from __future__ import annotations

import io
import logging
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from moto.moto_api._internal import mock_random
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple
from werkzeug.test import EnvironBuilder, run_wsgi_app

CHANGES = frozenset({"PUT", "POST", "DELETE"})
UPLOAD = re.compile(rb"<UploadId>([^<]+)</UploadId>")


@dataclass(frozen=True)
class Change:
    """A request that was carried out; `upload` is the id the client was given for a multipart upload."""

    environ: dict[str, Any]
    body: bytes
    upload: str | None


class Durable:
    """A WSGI application around another, with a journal. Everything below `_lock` has one thread at a time."""

    def __init__(self, application: Callable[..., Iterable[bytes]], journal: Path) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._count = 0
        # moto chooses the id of an upload at random: what it is now, by what the client knows.
        self._uploads: dict[str, str] = {}
        journal.touch()
        for change in _read(journal):
            self._replay(change)
        self._journal = journal.open("ab")

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = _body(environ)
        with self._lock:
            answer, status, headers = self._handle(environ, body)
            if environ["REQUEST_METHOD"] in CHANGES and int(status.split()[0]) < 400:
                self._record(Change(_plain(environ), body, _upload(answer)))
        start_response(status, list(headers))
        return [answer]

    def _handle(self, environ: dict[str, Any], body: bytes) -> tuple[bytes, str, Any]:
        # Whatever moto draws for a change, it draws again when the change is replayed.
        mock_random.seed(self._count)
        query = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        known = [(name, self._uploads.get(value, value)) for name, value in query]
        inner = dict(environ)
        if known != query:
            inner["QUERY_STRING"] = urlencode(known)
            inner["REQUEST_URI"] = inner["RAW_URI"] = f"{inner.get('RAW_URI', '').split('?')[0]}?{urlencode(known)}"
        inner |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        parts, status, headers = run_wsgi_app(self._application, inner, buffered=True)
        return b"".join(parts), status, headers

    def _record(self, change: Change) -> None:
        self._count += 1
        self._journal.write(pickle.dumps(change))
        self._journal.flush()

    def _replay(self, change: Change) -> None:
        environ = EnvironBuilder().get_environ() | change.environ
        answer, _, _ = self._handle(environ, change.body)
        now = _upload(answer)
        if change.upload is not None and now is not None:
            self._uploads[change.upload] = now
        self._count += 1


def _read(journal: Path) -> Iterator[Change]:
    """All whole entries; what a kill left half written is cut off."""
    with journal.open("r+b") as file:
        whole = 0
        while True:
            try:
                change = pickle.load(file)
            except (EOFError, pickle.UnpicklingError):
                break
            whole = file.tell()
            yield change
        file.truncate(whole)


def _body(environ: dict[str, Any]) -> bytes:
    length = environ.get("CONTENT_LENGTH")
    source = environ["wsgi.input"]
    body: bytes = source.read(int(length)) if length else b""
    if not length and environ.get("wsgi.input_terminated"):
        body = source.read()
    return body


def _plain(environ: dict[str, Any]) -> dict[str, Any]:
    """What the request said, without the open files and sockets of its connection."""
    return {name: value for name, value in environ.items() if isinstance(value, str | dict) and "socket" not in name}


def _upload(answer: bytes) -> str | None:
    found = UPLOAD.search(answer)
    return found[1].decode() if found else None


def main(port: int, journal: Path) -> None:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    application = Durable(create_backend_app("s3"), journal)
    run_simple("127.0.0.1", port, application, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
