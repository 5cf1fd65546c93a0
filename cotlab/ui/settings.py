"""The page Settings: API keys, access, the store, and model prices."""

from __future__ import annotations

import importlib.metadata as metadata
import math
import os
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.types import ModelRef
from cotlab.providers.keys import KEY_VARIABLES
from cotlab.run.plan import check_connection, code_version
from cotlab.run.transport.budget import price_of, read_prices
from cotlab.store import read
from cotlab.store.backup import back_up
from cotlab.ui import access, cached, components
from cotlab.ui.text import display_errors, escape_markdown, shorten


def render_api_keys() -> None:
    """Show which API keys are present, never their values."""
    st.header("Keys")
    states = ["present" if os.environ.get(name) else "absent" for name in KEY_VARIABLES.values()]
    frame = pd.DataFrame(
        {"provider": KEY_VARIABLES.keys(), "variable": KEY_VARIABLES.values(), "state": states}
    )
    components.show_table(frame, "keys")
    st.caption(
        "Keys are read from the environment, from .env or from .streamlit/secrets.toml, in this"
        " order. They are not stored, logged or shown."
    )


def render_access() -> None:
    """Show how users log in and who has which role.

    The proxy's secret is never shown, and names only to an admin.
    """
    st.header("Sharing")
    settings, user = access.login_settings(), access.current_person()
    login_text = {
        "login": "Login by OpenID Connect, as [auth] of .streamlit/secrets.toml says.",
        "header": (
            f"A proxy names the user in {settings['COTLAB_TRUSTED_HEADER']}, and shows by a secret"
            " that it is the proxy."
        ),
        "open": "No login: everybody who reaches this address is let in.",
        "local": "No login: only the machine it runs on is let in.",
    }[user.source]
    st.markdown(escape_markdown(login_text))
    frame = pd.DataFrame(
        [
            ("admin", "everything", "COTLAB_ADMINS", _listed_names_text(settings, "COTLAB_ADMINS")),
            (
                "labeller",
                "label",
                "COTLAB_LABELLERS",
                _listed_names_text(settings, "COTLAB_LABELLERS"),
            ),
            ("viewer", "look and download", "everybody else who is logged in", "all others"),
        ],
        columns=["role", "may", "set by", "who"],
    )
    components.show_table(frame, "roles")
    st.caption(
        escape_markdown(
            f"You are {shorten(user.name)}, {user.role}. A change of a list in .env takes"
            " effect at the next action."
        )
    )


def _listed_names_text(settings: Mapping[str, str], variable: str) -> str:
    """Describe who is listed in a variable; the names only to an admin."""
    names = [part.strip() for part in settings.get(variable, "").split(",") if part.strip()]
    if not names:
        return "nobody is listed"
    return ", ".join(names) if access.has_role("admin") else f"{len(names)} listed"


def render_connection_test() -> None:
    """Test a connection by listing a provider's models.

    It costs nothing but sends the provider's key, so only an admin may name the server.
    """
    st.header("Test a connection")
    left_column, right_column = st.columns(2)
    provider = left_column.selectbox("Provider", list(KEY_VARIABLES), key="connect-provider")
    url = right_column.text_input(
        "Server's address (empty: the vendor's own)",
        key=f"connect-url-{provider}",
        placeholder="http://127.0.0.1:8000/v1",
    )
    if not st.button("Test connection", icon=":material/cable:", **access.role_control("admin")):
        return
    access.require_role("admin")
    try:
        with st.spinner("Asking for the list of models"):
            result = check_connection(provider, url.strip() or None)
    except CotlabError as error:
        st.error(escape_markdown(f"{provider}: {error}"))
        return
    st.success(f"Reached in {result.duration_s:.1f} s: {len(result.models)} models.")
    frame = pd.DataFrame({"model": result.models})
    components.show_table(frame, "connect-models")


def render_store() -> None:
    """Show the size of the store and of the response log, and offer a backup."""
    store = cached.store()
    totals = read.get_store_totals(store)
    st.header("Store")
    components.show_numbers(
        (
            ("Scores", f"{totals['scores']:,}"),
            ("Runs", str(totals["runs"])),
            ("Database", _file_size_text(store.path)),
            ("Response log", _file_size_text(store.log_path)),
        )
    )
    st.caption(escape_markdown(f"{store.folder}, cotlab {code_version()}"))
    if st.button("Back up now", icon=":material/backup:", **access.role_control("admin")):
        access.require_role("admin")
        with display_errors():
            st.success(escape_markdown(f"Copied to {back_up(store).folder}"))


def render_prices() -> None:
    """Show what a model costs, from the bundled table."""
    st.header("Prices")
    left_column, right_column = st.columns(2)
    provider = left_column.selectbox(
        "Vendor", ("openai", "anthropic", "google"), key="price-vendor"
    )
    model_name = right_column.text_input(
        "Model", _DEFAULT_MODEL_BY_VENDOR[provider], key=f"price-model-{provider}"
    )
    if model_name:
        with display_errors(st.warning):
            _show_prices(ModelRef(provider, model_name))
    st.caption(
        f"The table is that of genai-prices {metadata.version('genai-prices')}, bundled; no"
        " network is used. A YAML file named by --prices or COTLAB_PRICES overrides it."
    )


def _show_prices(model_ref: ModelRef) -> None:
    price_overrides = read_prices(os.environ.get("COTLAB_PRICES") or None)
    price = price_of(model_ref, prices=price_overrides)
    batch_price = price_of(model_ref, prices=price_overrides, batch=True)
    components.show_numbers(
        (
            ("Input", f"${price.input_price:.4g}"),
            ("Cached input", "n/a" if price.cached_price is None else f"${price.cached_price:.4g}"),
            ("Output", f"${price.output_price:.4g}"),
            (
                "Batch: input · output",
                f"${batch_price.input_price:.4g} · ${batch_price.output_price:.4g}",
            ),
        )
    )
    st.caption(escape_markdown(f"US dollars per million tokens. Source: {price.source}."))


_DEFAULT_MODEL_BY_VENDOR = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-sonnet-4-5",
    "google": "gemini-2.5-flash",
}


def _file_size_text(path: Path) -> str:
    if not path.exists():
        return "n/a"
    size = path.stat().st_size
    if size < 1000:
        return f"{size} B"
    exponent = min(3, int(math.log10(size)) // 3)
    return f"{size / 1000**exponent:.1f} {('KB', 'MB', 'GB')[exponent - 1]}"
