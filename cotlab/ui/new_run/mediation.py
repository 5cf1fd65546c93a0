"""What the form of New run asks about mediation and local models."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.core.vocabulary import SOURCES

DTYPES = ("float32", "bfloat16", "float16")
BACKENDS = ("auto", "fast", "hooks", "transformer_lens")
SOURCE_HELP = (
    "Where the states come from that replace the chain's. filler: the same text with dots for the"
    " chain. interchange: another item's chain. right: the run without a chain, right-aligned."
    " mean: the mean of the question. literal: the published formula, kept for comparison; its"
    " control changes nothing."
)


def mediation_options(before: dict[str, Any]) -> dict[str, Any]:
    """The widgets; settings as fields of a configuration."""
    a, b, c = st.columns(3)
    spans = ", ".join(before.get("layers") or [])
    same_item, sources = before.get("control") == "own", before.get("source") or ["filler"]
    return {
        "source": (
            a.multiselect("Sources of states", SOURCES, sources, key="new-source", help=SOURCE_HELP)
            or ["filler"]
        ),
        "control": (
            "own"
            if b.checkbox("Control from the item's own run", same_item, key="new-control")
            else "other"
        ),
        "layers": _listed(
            c.text_input(
                "Layers (empty: each, thirds, all)", spans, key="new-layers", placeholder="3, 0-7"
            )
        ),
        "donors": a.number_input("Donors", 2, 64, before.get("donors", 4), key="new-donors"),
        "draws": b.number_input("Draws a donor", 1, 64, before.get("draws", 2), key="new-draws"),
        "subsets": c.number_input(
            "Subsets and shuffles", 1, 256, before.get("subsets", 8), key="new-subsets"
        ),
        "device": a.text_input(
            "Device", before.get("device") or "cpu", key="new-device", help="cpu, cuda, cuda:1"
        ),
        "dtype": b.selectbox(
            "Type of numbers", DTYPES, _at(DTYPES, before.get("dtype")), key="new-dtype"
        ),
        "backend": c.selectbox(
            "Patched by", BACKENDS, _at(BACKENDS, before.get("backend")), key="new-backend"
        ),
    }


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _at(options: tuple[str, ...], value: Any) -> int:
    return options.index(value) if value in options else 0
