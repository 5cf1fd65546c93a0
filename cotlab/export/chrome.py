"""A Chrome that draws figures: started once for many, spoken to through a pipe, with no port open and nothing from the net."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from types import TracebackType
from typing import Any

from cotlab.core.errors import CotlabError
from cotlab.figures.offline import library

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser", "chrome", "chrome-headless-shell")
MISSING = "PDF, SVG and PNG need a Chrome or Chromium, and none is here. Install one: apt-get install chromium"
DPI = 300
PX_PER_INCH = 96
TIMEOUT_S = 90.0
"""Longer than a figure of many thousand marks takes on a busy machine."""
_FLAGS = (
    "--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-extensions", "--hide-scrollbars", "--disable-dev-shm-usage", "--font-render-hinting=none",
)  # fmt: skip
_PAGE = """<!doctype html><html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"
content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<style>html, body { margin: 0; padding: 0; background: #fff; overflow: hidden } svg { display: block }</style></head>
<body></body></html>"""
_BEGIN = """import os, sys
from fcntl import F_DUPFD, fcntl
read, write = (fcntl(int(end), F_DUPFD, 10) for end in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])"""
"""The browser reads from 3 and writes to 4; a dash can name no descriptor above 9, and a fork with threads runs no code."""
_DRAW = """(async () => {
  const told = JSON.parse(%s);
  const uri = await Plotly.toImage(told, {format: "svg", width: told.layout.width, height: told.layout.height});
  return decodeURIComponent(uri.slice(uri.indexOf(",") + 1));
})()"""
_SHOW = """(() => {
  const parsed = new DOMParser().parseFromString(%s, "image/svg+xml");
  document.body.replaceChildren(document.importNode(parsed.documentElement, true));
  return document.fonts.ready.then(() => true);
})()"""


class NoChrome(CotlabError):
    """No Chrome is installed, or it does not start."""


class DrawingFailed(CotlabError):
    """A Chrome is there and did not draw a figure."""


def find_chrome() -> str | None:
    """The path of a Chrome: COTLAB_CHROME where it is set, else the first known name on the PATH; None without one."""
    chosen = os.environ.get("COTLAB_CHROME")
    if chosen is not None:
        return shutil.which(chosen)
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chrome:
    """A headless browser that turns figures into SVG, PDF and PNG; to be used in a ``with``.

    Raises
    ------
    NoChrome
        On entering, if there is none or it does not start.
    """

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s, self._asked, self._unread = timeout_s, 0, b""
        self._profile: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._session = ""

    def __enter__(self) -> Chrome:
        path = find_chrome()
        if path is None:
            raise NoChrome(MISSING)
        self._profile = tempfile.TemporaryDirectory(prefix="cotlab-chrome-", ignore_cleanup_errors=True)
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        flags = [*_FLAGS, f"--user-data-dir={self._profile.name}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        begin = [sys.executable, "-I", "-S", "-c", _BEGIN, str(read), str(write)]
        try:
            self._process = subprocess.Popen(
                [*begin, path, *flags, "about:blank"],
                pass_fds=(read, write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            os.close(read)
            os.close(write)
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and remove its profile."""
        if self._process is not None:
            for end in (self._to, self._from):
                os.close(end)
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._profile is not None:
            self._profile.cleanup()
            self._profile = None

    def _open(self) -> None:
        try:
            target = self._call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            frame = self._call("Page.getFrameTree")["frameTree"]["frame"]["id"]
            self._call("Page.setDocumentContent", frameId=frame, html=_PAGE)
            self._run(library() + "\n;true")
        except DrawingFailed as failed:
            raise NoChrome(f"{find_chrome()} does not start: {failed}") from failed

    def svg(self, spec: str) -> str:
        """A figure (its JSON, with width and height in px) as the text of an SVG file."""
        drawn: str = self._run(_DRAW % _literal(spec))
        return drawn

    def pdf(self, svg: str, width: float, height: float) -> bytes:
        """An SVG as a page of ``width`` and ``height`` px, 0.75 pt each."""
        self._show(svg, width, height)
        told = self._call(
            "Page.printToPDF", printBackground=True, paperWidth=width / PX_PER_INCH, paperHeight=height / PX_PER_INCH,
            marginTop=0, marginBottom=0, marginLeft=0, marginRight=0, pageRanges="1", preferCSSPageSize=False,
        )  # fmt: skip
        return base64.b64decode(told["data"])

    def png(self, svg: str, width: float, height: float) -> bytes:
        """An SVG as an image of 300 dots per inch at print size, which it names itself."""
        self._show(svg, width, height)
        told = self._call(
            "Page.captureScreenshot", format="png", clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
        )  # fmt: skip
        return with_dpi(base64.b64decode(told["data"]))

    def _show(self, svg: str, width: float, height: float) -> None:
        self._call(
            "Emulation.setDeviceMetricsOverride", width=round(width), height=round(height), mobile=False,
            deviceScaleFactor=DPI / PX_PER_INCH,
        )  # fmt: skip
        self._run(_SHOW % _literal(svg))

    def _run(self, expression: str) -> Any:
        told = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            why = told["exceptionDetails"]
            text = why.get("exception", {}).get("description") or why.get("text")
            raise DrawingFailed(f"the figure was not drawn: {str(text).splitlines()[0]}")
        return told["result"].get("value")

    def _call(self, method: str, **params: Any) -> Any:
        """Ask the browser and wait for its reply; what it tells in between is not needed."""
        self._asked += 1
        message: dict[str, Any] = {"id": self._asked, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        left = json.dumps(message).encode() + b"\0"
        until = time.monotonic() + self._timeout_s
        try:
            while left:
                left = left[os.write(self._to, left) :]
            while True:
                told = self._next(until)
                if told.get("id") == self._asked:
                    break
        except BrokenPipeError as broken:
            raise DrawingFailed("the browser has ended") from broken
        if "error" in told:
            raise DrawingFailed(f"{method}: {told['error'].get('message')}")
        return told["result"]

    def _next(self, until: float) -> Any:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise DrawingFailed(f"no reply within {self._timeout_s:g} s")
            read = os.read(self._from, 1 << 20)
            if not read:
                raise DrawingFailed("the browser has ended")
            self._unread += read
        one, _, self._unread = self._unread.partition(b"\0")
        return json.loads(one)


def with_dpi(png: bytes, dpi: int = DPI) -> bytes:
    """A PNG with its resolution written into it: a chunk pHYs before the first chunk of pixels."""
    body = b"pHYs" + struct.pack(">IIB", round(dpi / 0.0254), round(dpi / 0.0254), 1)
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    at = png.index(b"IDAT") - 4
    return png[:at] + chunk + png[at:]


def _literal(text: str) -> str:
    """A text as a literal of JavaScript."""
    return json.dumps(text)
