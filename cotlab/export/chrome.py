"""One Chrome that draws many figures, through kaleido, with nothing loaded from the net."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import re
import shutil
from typing import Any, Literal

import choreographer
import kaleido
from choreographer.errors import DevtoolsProtocolError
from kaleido.errors import KaleidoError
from PIL import Image

from cotlab.core.errors import CotlabError

CHROME_COMMANDS = (
    "chromium",
    "google-chrome",
    "google-chrome-stable",
    "chromium-browser",
    "chrome",
    "chrome-headless-shell",
)
NO_CHROME_MESSAGE = (
    "PDF, SVG and PNG need a Chrome or Chromium, and none is here. Install one: apt-get install"
    " chromium"
)
NO_START_MESSAGE = "{} does not start ({}). Is it a Chrome or Chromium?"
PNG_DPI = 300
PX_PER_INCH = 96
DRAWING_TIMEOUT_S = 90.0
"""Longer than a figure of many thousand marks takes on a busy machine."""
A4_INCHES = (210 / 25.4, 297 / 25.4)
_PRINT_SCALES = range(100, 49, -4)
"""Sizes in percent at which a page is printed until it fits its sheet."""
_PDF_PAGE = re.compile(rb"/Type\s*/Page\b(?!s)")
"""The object of one page: "/Type /Page", not "/Type /Pages"."""
ImageFormat = Literal["svg", "pdf", "png"]
_DRAWING_ERRORS = (RuntimeError, OSError, TimeoutError, KaleidoError, DevtoolsProtocolError)
"""What a browser that does not start, ends early or refuses a figure raises, there and in kaleido.
"""


class NoChrome(CotlabError):
    """No Chrome is installed, or it does not start."""


class DrawingError(CotlabError):
    """A Chrome is there and did not draw a figure."""


def find_chrome() -> str | None:
    """Return the path of a Chrome: COTLAB_CHROME, else the first known name on the PATH.

    None without one.
    """
    configured_path = os.environ.get("COTLAB_CHROME")
    if configured_path is not None:
        return shutil.which(configured_path)
    return next((path for name in CHROME_COMMANDS if (path := shutil.which(name))), None)


class Chrome:
    """A headless browser that turns figures into SVG, PDF and PNG; to be used in a ``with``.

    Raises
    ------
    NoChrome
        On entering, if there is none or it does not start.
    """

    def __init__(self, timeout_s: float = DRAWING_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._loop: asyncio.Runner | None = None
        self._kaleido: Any = None

    def __enter__(self) -> Chrome:
        path = find_chrome()
        if path is None:
            raise NoChrome(NO_CHROME_MESSAGE)
        self._loop = asyncio.Runner()
        try:
            self._kaleido = kaleido.Kaleido(n=1, timeout=self._timeout_s, mathjax=False, path=path)
            self._loop.run(self._kaleido.__aenter__())
        except _DRAWING_ERRORS as failed:
            self._kaleido = None
            self.close()
            raise NoChrome(NO_START_MESSAGE.format(path, type(failed).__name__)) from failed
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and remove its profile."""
        if self._loop is None:
            return
        try:
            if self._kaleido is not None:
                self._loop.run(self._kaleido.__aexit__(None, None, None))
        finally:
            self._loop.close()
            self._loop = self._kaleido = None

    def draw(self, figure: Any, image_format: ImageFormat, scale: float = 1) -> bytes:
        """Draw a plotly figure, whose layout has width and height in px, scaled, as a file.

        Returns
        -------
        bytes
            A PDF's page has 0.75 pt a px; a PNG has 300 dots an inch at print size and names them.

        Raises
        ------
        DrawingFailed
            If plotly.js cannot draw it, or not within the time.
        """
        if self._loop is None:
            raise RuntimeError("a Chrome draws inside its with block")
        layout = figure.layout
        options = {
            "format": image_format,
            "width": layout.width,
            "height": layout.height,
            "scale": scale * (PNG_DPI / PX_PER_INCH if image_format == "png" else 1),
        }
        try:
            image: bytes = self._loop.run(self._kaleido.calc_fig(figure, options))
        except _DRAWING_ERRORS as failed:
            raise DrawingError(f"the figure was not drawn: {_first_line(failed)}") from failed
        return set_png_dpi(image) if image_format == "png" else image


def print_page(page_html: str, timeout_s: float = DRAWING_TIMEOUT_S) -> bytes:
    """Print a page of HTML that loads nothing as a PDF of one A4 sheet.

    It is made smaller where it is longer than the sheet.

    Raises
    ------
    NoChrome
        If there is none or it does not start.
    DrawingError
        If it does not print the page, or not within the time.
    """
    path = find_chrome()
    if path is None:
        raise NoChrome(NO_CHROME_MESSAGE)
    try:
        return asyncio.run(asyncio.wait_for(_print_with(path, page_html), timeout_s))
    except _DRAWING_ERRORS as failed:
        raise DrawingError(f"the page was not printed: {_first_line(failed)}") from failed


def _first_line(failed: Exception) -> str:
    lines = str(failed).strip().splitlines()
    return lines[0] if lines else type(failed).__name__


async def _print_with(path: str, page_html: str) -> bytes:
    browser = choreographer.Browser(path=path, headless=True)
    try:
        await browser.open()
    except _DRAWING_ERRORS as failed:
        await browser.close()
        raise NoChrome(NO_START_MESSAGE.format(path, type(failed).__name__)) from failed
    try:
        return await _print_in(await browser.create_tab("about:blank"), page_html)
    finally:
        await browser.close()


async def _print_in(tab: choreographer.Tab, page_html: str) -> bytes:
    async def send(command: str, **params: Any) -> dict[str, Any]:
        response = await tab.send_command(command, params or None)
        if "error" in response:
            raise RuntimeError(str(response["error"].get("message", command)))
        return dict(response["result"])

    frame = (await send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
    await send("Page.setDocumentContent", frameId=frame, html=page_html)
    for percent in _PRINT_SCALES:
        printed = await send(
            "Page.printToPDF",
            paperWidth=A4_INCHES[0],
            paperHeight=A4_INCHES[1],
            marginTop=0,
            marginBottom=0,
            marginLeft=0,
            marginRight=0,
            printBackground=True,
            preferCSSPageSize=False,
            scale=percent / 100,
        )
        pdf = base64.b64decode(printed["data"])
        if len(_PDF_PAGE.findall(pdf)) == 1:
            break
    return pdf


def set_png_dpi(png: bytes, dpi: int = PNG_DPI) -> bytes:
    """Return a PNG with its resolution written into it."""
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.save(buffer, format="PNG", dpi=(dpi, dpi))
    return buffer.getvalue()
