"""``cotlab app``: the dashboard, served on this machine."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from cotlab.core.errors import EXTRAS, MissingExtra
from cotlab.core.resources import dashboard_path


def app_command(
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1 that the dashboard listens on.")
    ] = 8501,
) -> None:
    """Serve the dashboard on this machine until Ctrl-C; the exit code is the server's."""
    for package in EXTRAS["app"]:
        if find_spec(package) is None:
            raise MissingExtra("The dashboard", package)
    entry = str(dashboard_path("app.py"))
    sys.stdout.flush()
    # in the place of this process, so that signals and the exit code are the server's own
    os.execv(
        sys.executable,
        [sys.executable, "-m", "streamlit", "run", entry, "--server.port", str(port)],
    )
