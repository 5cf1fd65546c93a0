"""What the dashboard's server adds to its answers and keeps back, around Streamlit's own."""

from __future__ import annotations

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METRICS_PATH = "/_stcore/metrics"
"""Streamlit's counts of sessions and memory, which it shows to everybody, logged in or not."""


class Guard:
    """Lets no page of another address show the dashboard in a frame, and nobody read its metrics.

    Pages in ``server.corsAllowedOrigins`` may use the dashboard, and so may frame it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                framing_origins = ["'self'", *st.get_option("server.corsAllowedOrigins")]
                headers = MutableHeaders(scope=message)
                headers["X-Frame-Options"] = "SAMEORIGIN"  # of browsers that do not know the next
                headers["Content-Security-Policy"] = f"frame-ancestors {' '.join(framing_origins)}"
            await send(message)

        is_metrics = scope["type"] == "http" and scope["path"].rstrip("/").endswith(_METRICS_PATH)
        await (PlainTextResponse("Not Found", 404) if is_metrics else self._app)(
            scope, receive, send_guarded
        )
