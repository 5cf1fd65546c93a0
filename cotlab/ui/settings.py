"""The parts of the page Settings."""

from __future__ import annotations

import importlib.metadata as metadata
import os
from pathlib import Path

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.types import ModelRef
from cotlab.providers.keys import KEY_VARIABLES
from cotlab.run.connect import check_connection
from cotlab.run.plan import code_version
from cotlab.run.transport.budget import price_of, read_prices
from cotlab.store import read
from cotlab.store.database import back_up
from cotlab.ui import access
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.text import as_code, shorten


def render_keys() -> None:
    """Present or absent, never the value."""
    st.subheader("Keys")
    states = ["present" if os.environ.get(name) else "absent" for name in KEY_VARIABLES.values()]
    frame = pd.DataFrame(
        {"provider": KEY_VARIABLES.keys(), "variable": KEY_VARIABLES.values(), "state": states}
    )
    st.dataframe(frame, hide_index=True, key="keys")
    st.caption(
        "Keys are read from the environment, from .env or from .streamlit/secrets.toml, in this"
        " order. They are not stored, logged or shown."
    )


def render_sharing() -> None:
    """How people are let in, and who may do what; the proxy's secret is never shown, and names only to an admin."""
    st.subheader("Sharing")
    settings, who = access.login_settings(), access.person()
    how = {
        "login": "Login by OpenID Connect, as [auth] of .streamlit/secrets.toml says.",
        "header": (
            f"A proxy names the user in {settings['COTLAB_TRUSTED_HEADER']}, and shows by a secret"
            " that it is the proxy."
        ),
        "open": "No login: everybody who reaches this address is let in.",
        "local": "No login: only the machine it runs on is let in.",
    }[who.source]
    st.markdown(as_code(how))
    lists = {"admin": "COTLAB_ADMINS", "labeller": "COTLAB_LABELLERS", "viewer": ""}
    listed = {
        role: [part.strip() for part in settings.get(name, "").split(",") if part.strip()]
        for role, name in lists.items()
    }
    frame = pd.DataFrame(
        {
            "role": listed.keys(),
            "may": ["everything", "label", "look and download"],
            "set by": ["COTLAB_ADMINS", "COTLAB_LABELLERS", "everybody else who is logged in"],
            "who": [
                *(_listed(names) for role, names in listed.items() if role != "viewer"),
                "all others",
            ],
        }
    )
    st.dataframe(frame, hide_index=True, key="roles")
    st.caption(
        as_code(
            f"You are {shorten(who.name)}, {who.role}. A list that changes in .env holds at the"
            " next action."
        )
    )


def _listed(names: list[str]) -> str:
    if not names:
        return "nobody is listed"
    return ", ".join(names) if access.may("admin") else f"{len(names)} listed"


def render_connection_test() -> None:
    """Ask a vendor for its list of models: free, but it sends the vendor's key, so only an admin may name the server."""
    st.subheader("Test a connection")
    left, right = st.columns(2)
    provider = left.selectbox("Provider", list(KEY_VARIABLES), key="connect-provider")
    url = right.text_input(
        "Server's address (empty: the vendor's own)",
        key=f"connect-url-{provider}",
        placeholder="http://127.0.0.1:8000/v1",
    )
    if not st.button("Test connection", icon=":material/cable:", **access.only("admin")):
        return
    access.need("admin")
    try:
        with st.spinner("Asking for the list of models"):
            result = check_connection(provider, url.strip() or None)
    except CotlabError as error:
        st.error(as_code(f"{provider}: {error}"))
        return
    st.success(f"Reached in {result.took_s:.1f} s: {len(result.models)} models.")
    st.dataframe(
        pd.DataFrame({"model": result.models}),
        hide_index=True,
        key="connect-models",
        height=min(420, 40 + 35 * len(result.models)),
    )


def render_store() -> None:
    store = data.store()
    totals = read.store_totals(store)
    st.subheader("Store")
    parts.show_numbers(
        (
            ("Scores", f"{totals['scores']:,}"),
            ("Runs", str(totals["runs"])),
            ("Database", _size(store.path)),
            ("Response log", _size(store.log_path)),
        )
    )
    st.caption(as_code(f"{store.folder}, cotlab {code_version()}"))
    if st.button("Back up now", icon=":material/backup:", **access.only("admin")):
        access.need("admin")
        try:
            st.success(as_code(f"Copied to {back_up(store)}"))
        except CotlabError as error:
            st.error(as_code(str(error)))


def render_prices() -> None:
    """What a model costs, from the bundled table."""
    st.subheader("Prices")
    left, right = st.columns(2)
    provider = left.selectbox("Vendor", ("openai", "anthropic", "google"), key="price-vendor")
    name = right.text_input("Model", _USUAL[provider], key=f"price-model-{provider}")
    if name:
        ref = ModelRef(provider, name)
        try:
            overrides = read_prices(os.environ.get("COTLAB_PRICES") or None)
            price, batch = (
                price_of(ref, prices=overrides),
                price_of(ref, prices=overrides, batch=True),
            )
        except CotlabError as error:
            st.warning(as_code(str(error)))
        else:
            cached = "n/a" if price.cached is None else f"${price.cached:.4g}"
            parts.show_numbers(
                (
                    ("Input", f"${price.tokens_in:.4g}"),
                    ("Cached input", cached),
                    ("Output", f"${price.tokens_out:.4g}"),
                    ("Batch: input · output", f"${batch.tokens_in:.4g} · ${batch.tokens_out:.4g}"),
                )
            )
            st.caption(as_code(f"US dollars a million tokens. Source: {price.source}."))
    st.caption(
        f"The table is that of genai-prices {metadata.version('genai-prices')}, bundled; no network"
        " is used. A YAML file named by --prices or COTLAB_PRICES wins over it."
    )


_USUAL = {"openai": "gpt-4o-mini", "anthropic": "claude-sonnet-4-5", "google": "gemini-2.5-flash"}


def _size(path: Path) -> str:
    if not path.exists():
        return "n/a"
    size = float(path.stat().st_size)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return "n/a"
