"""The components of linked texts on a page: what each of them shows, and where it links."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from streamlit.testing.v1 import AppTest


def linked_view(app: AppTest, view: str) -> dict[str, Any]:
    """Return the data of the first component with this view; KeyError where there is none."""
    for element in app.get("bidi_component"):
        data = json.loads(element.proto.json)
        if data.get("view") == view:
            return dict(data)
    raise KeyError(view)


def _text(cell: dict[str, Any], *, with_small: bool) -> str:
    """Return the text of a cell, of a number with its interval."""
    small = str(cell.get("small") or "") if with_small else ""
    return f"{cell['text']} {small}".strip()


def linked_frames(app: AppTest) -> list[pd.DataFrame]:
    """Return the tables of linked texts on a page: their texts, and each link as "NAME →"."""
    frames = []
    for element in app.get("bidi_component"):
        data = json.loads(element.proto.json)
        if data.get("view") != "table":
            continue
        names = [column["title"] for column in data["columns"]]
        columns: dict[str, list[Any]] = {}
        for k, name in enumerate(names):
            is_number = data["columns"][k].get("is_number")
            columns[name] = [_text(row[k], with_small=bool(is_number)) for row in data["rows"]]
            if any(row[k].get("link") is not None for row in data["rows"]):
                links = [row[k].get("link") for row in data["rows"]]
                columns[f"{name} →"] = [
                    None if link is None else data["addresses"][link] for link in links
                ]
        frames.append(pd.DataFrame(columns))
    return frames
