"""The parts of the page Settings."""

from __future__ import annotations

import importlib.metadata as metadata
import os
from pathlib import Path

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.types import ModelRef
from cotlab.providers.keys import KEYS
from cotlab.run.budget import price_of
from cotlab.run.plan import code_version
from cotlab.store import read
from cotlab.store.backup import back_up
from cotlab.ui import data, parts
from cotlab.ui.text import as_code


def keys() -> None:
    """Present or absent, never the value."""
    st.subheader("Keys")
    frame = pd.DataFrame({"variable": KEYS.values(), "state": ["present" if os.environ.get(key) else "absent" for key in KEYS.values()]})
    st.dataframe(frame, hide_index=True, key="keys")
    st.caption("Keys are read from the environment only. They are not stored, logged or shown.")


def the_store() -> None:
    store = data.store()
    found = read.totals(store)
    st.subheader("Store")
    parts.show_numbers(
        (
            ("Scores", f"{found['scores']:,}"),
            ("Runs", str(found["runs"])),
            ("Database", _size(store.path)),
            ("Response log", _size(store.log_path)),
        )
    )
    st.caption(as_code(f"{store.folder}, cotlab {code_version()}"))
    if st.button("Back up now", icon=":material/backup:"):
        try:
            st.success(as_code(f"Copied to {back_up(store)}"))
        except CotlabError as error:
            st.error(as_code(str(error)))


def prices() -> None:
    """What a model costs, from the bundled table."""
    st.subheader("Prices")
    left, right = st.columns(2)
    provider = left.selectbox("Vendor", ("openai", "anthropic", "google"), key="price-vendor")
    name = right.text_input("Model", "gpt-4o" if provider == "openai" else "", key=f"price-model-{provider}")
    if name:
        try:
            price = price_of(ModelRef(provider, name))
            st.write(f"${price.tokens_in:.2f} in, ${price.tokens_out:.2f} out, per million tokens")
        except CotlabError as error:
            st.warning(as_code(str(error)))
    st.caption(f"Source: genai-prices {metadata.version('genai-prices')}, bundled; no network is used.")


def _size(path: Path) -> str:
    if not path.exists():
        return "n/a"
    size = float(path.stat().st_size)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return "n/a"
