"""The app in its own server, and a client that connects by websocket with any headers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

ROOT = Path(__file__).parents[2]
TEXTS = ("heading", "markdown", "alert", "button", "text")


@contextmanager
def app(folder: Path, *options: str, **settings: str) -> Iterator[str]:
    """Serve the app on a free port with its own store, and yield host and port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {
        **os.environ,
        "COTLAB_STORE": str(folder / "store"),
        "OMP_WAIT_POLICY": "PASSIVE",
        **settings,
    }
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app.py",
        "--server.port",
        str(port),
        *options,
    ]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).read()
                break
            except OSError:
                time.sleep(0.25)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


class Shown(NamedTuple):
    """What a page showed."""

    texts: list[str]
    """The page's texts."""
    buttons: dict[str, tuple[str, bool]]
    """Each button's id and whether it is disabled, by its label."""
    raw: bytes
    """The messages as they came."""

    def says(self, part: str) -> bool:
        """Return whether any text of the page has this part."""
        return any(part in text for text in self.texts)


class Client:
    """One connection. The path of its address names the page."""

    def __init__(
        self, server: str, headers: Mapping[str, str] | None = None, host: str | None = None
    ) -> None:
        own = dict(headers or {})
        base = host or server
        sock = socket.create_connection(server.split(":")) if host else None
        self._opened = connect(
            f"ws://{base}/_stcore/stream",
            additional_headers=own,
            sock=sock,
            max_size=None,
            subprotocols=["streamlit"],
            proxy=None,
        )

    def __enter__(self) -> Client:
        self._socket = self._opened.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.__exit__(None, None, None)

    def open(self, page: str = "", query: str = "", press: str | None = None) -> Shown:
        """Run a page as on its first load, or as if the button ``press`` had been pressed."""
        self.send(page, query, press)
        return self.read()

    def send(self, page: str = "", query: str = "", press: str | None = None) -> None:
        """Send a message to the server."""
        message = BackMsg()
        message.rerun_script.page_name, message.rerun_script.query_string = page, query
        if press is not None:
            state = message.rerun_script.widget_states.widgets.add()
            state.id, state.trigger_value = press, True
        self._socket.send(message.SerializeToString())

    def read(self) -> Shown:
        """Read messages until the page has finished."""
        texts: list[str] = []
        buttons: dict[str, tuple[str, bool]] = {}
        raw = b""
        while True:
            data: Any = self._socket.recv(timeout=60)
            raw += data
            message = ForwardMsg.FromString(data)
            kind = message.WhichOneof("type")
            if kind == "script_finished":
                return Shown(texts, buttons, raw)
            if kind != "delta" or message.delta.WhichOneof("type") != "new_element":
                continue
            element = message.delta.new_element
            name = element.WhichOneof("type")
            if name == "button":
                buttons[element.button.label] = (element.button.id, element.button.disabled)
            elif name in TEXTS:
                told = getattr(element, name)
                texts.append(told.body)
