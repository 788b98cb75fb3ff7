"""A node's connection to the manager: it comes back whenever it breaks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from understudy.model.messages import Hello, to_node
from understudy.model.run import Frozen

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class Link:
    """`beat` is called for every heartbeat, `receive` for every message; neither may block for long. A node that is not
    `fit` for work does not call the manager: it was given up for that, and would be again."""

    def __init__(
        self,
        url: str,
        hello: Hello,
        beat: Callable[[], Frozen],
        receive: Callable[[Any], None],
        fit: Callable[[], bool] = lambda: True,
    ) -> None:
        self._url, self._hello, self._beat, self._receive, self._fit = url, hello, beat, receive, fit
        self._socket: ClientConnection | None = None
        self._closed = threading.Event()
        self.interval_s = 0.1

    def start(self) -> None:
        threading.Thread(target=self._connect_forever, name="link", daemon=True).start()
        threading.Thread(target=self._beat_forever, name="heartbeat", daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        if self._socket is not None:
            self._socket.close()

    def send(self, message: Frozen) -> None:
        """Sends if there is a connection; otherwise the next heartbeat says how things stand."""
        socket = self._socket
        if socket is None:
            return
        try:
            socket.send(message.model_dump_json())
        except ConnectionClosed:
            self._socket = None

    def _beat_forever(self) -> None:
        while not self._closed.wait(self.interval_s):
            if self._socket is not None:
                self.send(self._beat())

    def _connect_forever(self) -> None:
        while not self._closed.is_set():
            if not self._fit():
                self._closed.wait(RETRY_S)
                continue
            try:
                with connect(self._url, max_size=None, compression=None) as socket:
                    socket.send(self._hello.model_dump_json())
                    self._socket = socket
                    self._hear(socket)
            except (OSError, InvalidHandshake, ConnectionClosed):
                pass
            self._socket = None
            self._closed.wait(RETRY_S)

    def _hear(self, socket: ClientConnection) -> None:
        for text in socket:
            try:
                self._receive(to_node.validate_json(text))
            except ValidationError:
                logger.exception("a message from the manager was not understood")
