"""A Chrome that draws figures: started once for many by kaleido, with nothing loaded from the net."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
from types import TracebackType
from typing import Any, Literal

import kaleido
from choreographer.errors import DevtoolsProtocolError
from kaleido.errors import KaleidoError
from PIL import Image

from cotlab.core.errors import CotlabError

NAMES = (
    "chromium",
    "google-chrome",
    "google-chrome-stable",
    "chromium-browser",
    "chrome",
    "chrome-headless-shell",
)
MISSING = (
    "PDF, SVG and PNG need a Chrome or Chromium, and none is here. Install one: apt-get install"
    " chromium"
)
DPI = 300
PX_PER_INCH = 96
TIMEOUT_S = 90.0
"""Longer than a figure of many thousand marks takes on a busy machine."""
Format = Literal["svg", "pdf", "png"]
_FAULTS = (RuntimeError, OSError, TimeoutError, KaleidoError, DevtoolsProtocolError)
"""What a browser that does not start, ends early or refuses a figure raises, there and in kaleido.
"""


class NoChrome(CotlabError):
    """No Chrome is installed, or it does not start."""


class DrawingFailed(CotlabError):
    """A Chrome is there and did not draw a figure."""


def find_chrome() -> str | None:
    """Return the path of a Chrome: COTLAB_CHROME, else the first known name on the PATH.

    None without one.
    """
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
        self._timeout_s = timeout_s
        self._loop: asyncio.Runner | None = None
        self._kaleido: Any = None

    def __enter__(self) -> Chrome:
        path = find_chrome()
        if path is None:
            raise NoChrome(MISSING)
        self._loop = asyncio.Runner()
        try:
            self._kaleido = kaleido.Kaleido(n=1, timeout=self._timeout_s, mathjax=False, path=path)
            self._loop.run(self._kaleido.__aenter__())
        except _FAULTS as failed:
            self._kaleido = None
            self.close()
            raise NoChrome(
                f"{path} does not start ({type(failed).__name__}). Is it a Chrome or Chromium?"
            ) from failed
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
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

    def draw(self, figure: Any, kind: Format) -> bytes:
        """Draw a plotly figure, whose layout has width and height in px, as a file.

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
        opts = {
            "format": kind,
            "width": layout.width,
            "height": layout.height,
            "scale": DPI / PX_PER_INCH if kind == "png" else 1,
        }
        try:
            image: bytes = self._loop.run(self._kaleido.calc_fig(figure, opts))
        except _FAULTS as failed:
            lines = str(failed).strip().splitlines()
            raise DrawingFailed(
                f"the figure was not drawn: {lines[0] if lines else type(failed).__name__}"
            ) from failed
        return with_dpi(image) if kind == "png" else image


def with_dpi(png: bytes, dpi: int = DPI) -> bytes:
    """Return a PNG with its resolution written into it."""
    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.save(out, format="PNG", dpi=(dpi, dpi))
    return out.getvalue()
