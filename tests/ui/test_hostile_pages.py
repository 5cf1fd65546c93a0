"""Text from suites, models and tags is never Markdown, HTML, a link, an icon or a formula."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.store.database import Store
from cotlab.store.read import list_run_items
from cotlab.ui.places import PAGE_BY_PLACE
from tests.support import hostile
from tests.support.label_widget import desk, label, tell
from tests.support.pages import app_at

ROOT = Path(__file__).parents[2]
PAGES = sorted(PAGE_BY_PLACE)
pytestmark = pytest.mark.soak
LIVE = re.compile(
    r"(?<!\\)<(?:script|img|a |b>|br>)|(?<!\\)\]\(|(?<!\\)\*\*bold|(?<!\\):(?:red\[|material/home)|"
    rf"(?:https?:|\]\(|)//{re.escape(hostile.HOST)}|www\\?\.evil|a\\?@evil|(?<!\\)\$\\",
)
"""What Markdown would read in the hostile texts; ``escape_markdown`` leaves none of it."""
PLAIN = (
    "text",
    "code",
    "json",
    "arrow_data_frame",
    "text_input",
    "text_area",
    "number_input",
    "bidi_component",
)
"""Elements that show text as it is."""
PLAIN_FIELDS = (
    "options",
    "default",
    "url",
    "page",
    "id",
    "key",
    "set_value",
    "raw_value",
    "raw_values",
    "element_id",
    "query_string",
    "icon",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("hostile") / "store"
    return folder, hostile.filled(
        folder, "ablation", "unfaithfulness", "robustness", "flags", "consistency", "diversity"
    )


def strings(message: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a protobuf message, with its field names."""
    for field, value in message.ListFields():
        single = (
            isinstance(value, str | bytes)
            or hasattr(value, "ListFields")
            or not hasattr(value, "__len__")
        )
        for one in [value] if single else value:
            if isinstance(one, str):
                yield f"{path}.{field.name}", one
            elif hasattr(one, "ListFields"):
                yield from strings(one, f"{path}.{field.name}")


def drawn(figure: Any) -> Iterator[str]:
    """Return every text that a figure shows, also on hover; custom data and meta are not shown."""
    if isinstance(figure, dict):
        for name, value in figure.items():
            if name not in ("customdata", "meta", "uid"):
                yield from drawn(value)
    elif isinstance(figure, list):
        for value in figure:
            yield from drawn(value)
    elif isinstance(figure, str):
        yield figure


def live(app: AppTest) -> list[str]:
    """Return what of the page would be rendered as markup: element, field and text."""
    found = []
    for element in _all(app):
        if element.type == "plotly_chart":
            texts = drawn(json.loads(element.proto.spec))
            found += [f"figure: {text}" for text in texts if re.search("<(script|img|a )", text)]
        elif element.type not in PLAIN and hasattr(element.proto, "ListFields"):
            for path, text in strings(element.proto):
                if path.rsplit(".", 1)[-1] not in PLAIN_FIELDS and LIVE.search(text):
                    found.append(f"{element.type}{path}: {text[:200]}")
    return found


def _all(block: Any) -> Iterator[Any]:
    for node in getattr(block, "children", {}).values():
        if hasattr(node, "children"):
            if getattr(node, "proto", None) is not None:
                yield node
            yield from _all(node)
        else:
            yield node


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("people") / "store"
    return folder, hostile.judged(folder)


OF_PEOPLE = ("label", "agreement", "calibrate", "decisions", "drift")
"""Pages that show nothing without labels or a composite."""
SHIPPED = ("home", "settings", "validation", "shipped", "upload", "mediation")
"""Pages that show no text from outside here."""


@pytest.mark.parametrize("page", [*OF_PEOPLE, "items", "home", "reliability"])
def test_no_text_of_people_is_markup(
    page: str, people: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, runs = people
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    item = list_run_items(Store(folder), runs[0])["id"].tolist()[1]
    domain = list_run_items(Store(folder), runs[0])["category"].tolist()[1]
    seen: list[bytes] = []
    for asked in (
        {"run": runs[0], "item": item, "domain": domain},
        {"reference": runs[0], "current": runs[1], "on": "target"},
        {"run": hostile.ALL, "queue": hostile.ALL, "domain": hostile.ALL, "version": hostile.ALL},
    ):
        app = app_at(page, **asked, more="true")
        app.session_state["local_rater"] = f"{hostile.SCRIPT} ann"
        app.run()
        for toggle in app.toggle:
            toggle.set_value(True)
        app.run()
        assert not app.exception, [error.message for error in app.exception]
        assert live(app._tree) == []
        if page == "label" and "run" in asked and asked["run"] == runs[0]:
            tell(app, label(app, "not_acceptable", note=hostile.ALL))
            assert live(app._tree) == []
            tell(app, {"kind": "undo", "of": desk(app)["last"]})
            assert live(app._tree) == []
        seen += [
            e.proto.SerializeToString()
            for e in _all(app._tree)
            if hasattr(e.proto, "SerializeToString")
        ]
    assert any(b"evil" in one for one in seen) or page in ("home", "items", "reliability")


@pytest.mark.parametrize("page", PAGES)
def test_no_text_from_outside_is_markup(
    page: str, store: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, runs = store
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    seen = 0
    for run in runs:
        for item in (hostile.suite().items[0].id, hostile.suite().items[2].id):
            asked = {
                "run": run,
                "item": item,
                "suite": hostile.suite().digest,
                "from": run,
                "base": runs[0],
                "other": runs[1],
                "more": "true",
            }
            app = app_at(page, **asked).run()
            assert not app.exception, [error.message for error in app.exception]
            assert live(app._tree) == []
            shown = (
                element.proto
                for element in _all(app._tree)
                if hasattr(element.proto, "SerializeToString")
            )
            seen += sum(b"evil" in proto.SerializeToString() for proto in shown)
    is_of_people = PAGE_BY_PLACE[page].name in ("label", "decide")
    if not is_of_people and page not in SHIPPED:
        assert seen, "nothing hostile was on this page: the test would not see it rendered"
