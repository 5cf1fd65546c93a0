"""``cotlab doctor``: what is installed, what is missing, and what to type."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import re
import shutil
from typing import Annotated, Optional

import typer

from cotlab.cli import options
from cotlab.cli.backup import check_store, rebuild_store, rescore_store, use_old_store
from cotlab.core.errors import ConfigError
from cotlab.core.installation import DISTRIBUTION, install_command, other_owners

PURPOSES = {
    "": "store and metrics",
    "app": "dashboard",
    "local": "local models and organisms",
    "lens": "--role subject.backend=transformer_lens (optional)",
    "vendors": "vendors",
    "inspect": "Inspect logs (optional)",
    "dev": "tests (optional)",
}
"""Extra, "" for what everybody needs → what its packages are for."""
# "plotly>=7.1; extra == 'app'": the package and its extra
_REQUIREMENT_RE = re.compile(r"""([\w.-]+)[^;]*(?:;.*\bextra == ['"](\w+)['"])?""")


def doctor_command(
    connect: Annotated[
        Optional[str],
        typer.Option(
            metavar="PROVIDER[/MODEL]",
            help="Only test the connection to openai, anthropic, google, …; with a model, check by"
            " four small requests what its server does with them.",
        ),
    ] = None,
    base_url: Annotated[
        Optional[str], typer.Option(help="With --connect: the server's address.")
    ] = None,
    send_key_to: options.SendKeyToOption = None,
    store: Annotated[
        bool, typer.Option("--store", help="Only check the store: read every row of it.")
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Only make cotlab.duckdb again, which asks no model."),
    ] = False,
    rescore: Annotated[
        bool,
        typer.Option(
            "--rescore", help="Only score runs of older scorers again, which asks no model."
        ),
    ] = False,
    use_old: Annotated[
        bool,
        typer.Option(
            "--use-old", help="Only put back the files that an older version of cotlab wrote."
        ),
    ] = False,
) -> None:
    """List what is installed and what is missing, or test a vendor, a server or the store."""
    actions = (
        (use_old, use_old_store),
        (rebuild, rebuild_store),
        (rescore, rescore_store),
        (store, check_store),
    )
    for is_chosen, act in actions:
        if is_chosen:
            act()
            return
    if connect is not None:
        options.allow_key_hosts(send_key_to)
        provider, _, model = connect.partition("/")
        if model:
            _check_model(provider, model, base_url)
        else:
            _check_vendor(provider, base_url)
        return
    if base_url or send_key_to:
        raise ConfigError("--base-url and --send-key-to go with --connect.")
    _print_packages()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    print(
        f"ok       browser: {browser}"
        if browser
        else "missing  browser (optional)   ->  apt-get install chromium"
    )
    from cotlab.core.resources import shipped_organisms
    from cotlab.providers.keys import KEY_VARIABLES
    from cotlab.store.database import Store
    from cotlab.store.read import get_store_totals

    for key_variable in KEY_VARIABLES.values():
        print(f"{'present' if os.environ.get(key_variable) else 'absent '}  {key_variable}")
    print(
        f"organisms: {', '.join(shipped_organisms()) or 'none  ->  cotlab organisms train control'}"
    )
    current_store = Store()
    source = "COTLAB_STORE" if os.environ.get("COTLAB_STORE") else "default; or set COTLAB_STORE"
    print(
        f"store: {current_store.folder} ({source}): "
        + ", ".join(
            f"{total} {name}"
            for name, total in get_store_totals(current_store).items()
            if name != "spent_micro"
        )
    )


def _print_packages() -> None:
    """Print each package that cotlab declares: its version, or the command that installs it."""
    if owners := other_owners():
        print(
            f"other    another project's package is installed as cotlab, too: {', '.join(owners)}"
            f"   ->  pip uninstall {owners[0].partition(' ')[0]}, then {install_command()}"
        )
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        print(f"missing  {DISTRIBUTION}: this folder is not installed   ->  {install_command()}")
        return
    for requirement in requirements:
        match = _REQUIREMENT_RE.match(requirement)
        if match is None or (extra := match[2] or "") not in PURPOSES:
            continue
        try:
            print(f"ok       {PURPOSES[extra]}: {match[1]} {metadata.version(match[1])}")
        except metadata.PackageNotFoundError:
            print(f"missing  {PURPOSES[extra]}: {match[1]}   ->  {install_command(extra)}")


def _check_vendor(provider: str, base_url: str | None) -> None:
    """Print the models that a vendor's key reaches."""
    from cotlab.run.plan import check_connection

    connection = check_connection(provider, base_url)
    print(
        f"{provider}: reached in {connection.duration_s:.1f} s, {len(connection.models)} models:"
        f" {', '.join(connection.models[:20])}"
    )


def _check_model(provider: str, model: str, base_url: str | None) -> None:
    """Print what a model's server does with requests, a line a finding."""
    from cotlab.core.types import ModelRef
    from cotlab.providers.probe import finding_text
    from cotlab.run.server_check import check_model

    check, spent_micro = check_model(ModelRef(provider, model, base_url=base_url))
    print(f"{provider}/{model}: {check.n_requests} requests, ${spent_micro / 1e6:.4f}")
    for name, finding in check.findings.items():
        print(finding_text(name, finding))
