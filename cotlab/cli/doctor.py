"""``cotlab doctor``: what is installed, what is missing, and what to type."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import shutil
from typing import Annotated, Optional

import typer

from cotlab.cli import options as o

REQUIREMENTS = (
    (
        "store and metrics",
        ("duckdb", "pyarrow", "pandas", "numpy", "scipy", "statsmodels"),
        "pip install -r requirements.txt",
    ),
    ("dashboard", ("streamlit", "plotly"), "pip install -r requirements.txt"),
    (
        "local models and organisms",
        ("torch", "transformers", "tokenizers", "safetensors"),
        "pip install -r requirements.txt",
    ),
    (
        "vendors",
        ("openai", "anthropic", "google-genai", "genai-prices"),
        "pip install -r requirements.txt",
    ),
    ("Inspect logs (optional)", ("inspect-ai",), "pip install inspect-ai"),
    ("browser tests (optional)", ("playwright",), "pip install -r requirements.txt"),
)


def doctor_command(
    connect: Annotated[
        Optional[str],
        typer.Option(
            metavar="PROVIDER", help="Only test the connection to openai, anthropic, google, …"
        ),
    ] = None,
    base_url: Annotated[
        Optional[str], typer.Option(help="With --connect: the server's address.")
    ] = None,
    send_key_to: o.SendKeyTo = None,
) -> None:
    """Say what is installed, what is missing, and what to type for it; or whether a vendor can be reached."""
    if connect is not None:
        from cotlab.run import connect as connecting

        o.send_key_to(send_key_to)
        connection = connecting.check_connection(connect, base_url)
        print(
            f"{connect}: reached in {connection.took_s:.1f} s, {len(connection.models)} models:"
            f" {', '.join(connection.models[:20])}"
        )
        return
    for part, packages, command in REQUIREMENTS:
        for package in packages:
            try:
                print(f"ok       {part}: {package} {metadata.version(package)}")
            except metadata.PackageNotFoundError:
                print(f"missing  {part}: {package}   ->  {command}")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    print(
        f"ok       browser: {browser}"
        if browser
        else "missing  browser (optional)   ->  apt-get install chromium"
    )
    from cotlab.providers.keys import KEY_VARIABLES
    from cotlab.providers.local.organisms import organism_names
    from cotlab.store.database import Store
    from cotlab.store.read import store_totals

    for key in KEY_VARIABLES.values():
        print(f"{'present' if os.environ.get(key) else 'absent '}  {key}")
    print(f"organisms: {', '.join(organism_names()) or 'none  ->  cotlab organisms train control'}")
    store = Store()
    print(
        f"store: {store.folder}: "
        + ", ".join(f"{v} {k}" for k, v in store_totals(store).items() if k != "spent_micro")
    )
