"""A page of another port of this machine, in a real browser, drives no dashboard here."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.support.browser import settle
from tests.support.served import Client, app

pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PRESS = """([server, message]) => new Promise((resolve) => {
  const socket = new WebSocket(`ws://${server}/_stcore/stream`, ['streamlit']);
  socket.binaryType = 'arraybuffer';
  let told = '';
  const end = () => resolve(told);
  socket.onopen = () => socket.send(Uint8Array.from(atob(message), (c) => c.charCodeAt(0)));
  socket.onmessage = (event) => {
    told += new TextDecoder('utf-8').decode(event.data);
    if (told.includes('Copied to') || told.includes('may not use')) socket.close();
  };
  socket.onclose = end;
  socket.onerror = end;
})"""
"""Sends one message to a dashboard's websocket; resolves with what it answers."""


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>another page</title>")

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def other_page() -> Iterator[int]:
    """Serve an empty page, as any program of this machine may; yield its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def press_of(button: str) -> str:
    """Return the message that says that a button of the page Settings was pressed, in base64."""
    message = BackMsg()
    message.rerun_script.page_name = "settings"
    state = message.rerun_script.widget_states.widgets.add()
    state.id, state.trigger_value = button, True
    return base64.b64encode(message.SerializeToString()).decode()


def test_a_page_of_another_port_presses_nothing(browser: Any, tmp_path: Path) -> None:
    def backups() -> int:
        return len(list((tmp_path / "store").glob("backups/*")))

    with app(tmp_path) as server, other_page() as port:
        with Client(server) as client:
            message = press_of(client.open("settings").buttons["Back up now"][0])
        page = browser.new_page()
        page.set_default_timeout(180_000)
        for address in (f"http://127.0.0.1:{port}", f"http://localhost:{port}"):
            page.goto(address)
            for target in (server, server.replace("127.0.0.1", "localhost")):
                told = page.evaluate(PRESS, [target, message])
                assert "Copied to" not in told and backups() == 0, (address, target)
                assert "may not use this dashboard" in told or not told
        page.goto(f"http://{server}/settings")  # the same message from the dashboard's own page
        settle(page)
        assert "Copied to" in page.evaluate(PRESS, [server, message]) and backups() == 1
        page.close()
