"""A page of the dashboard, opened by its address."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.recorded_models import short_model_name
from cotlab.ui.places import PAGE_BY_PLACE, PageLink
from cotlab.ui.text import escape_markdown

ROOT = Path(__file__).parents[2]
PLACES = [place for place, page in PAGE_BY_PLACE.items() if not page.tabs or place in page.tabs]
"""Every tab, and every page without tabs."""


def app_at(place: str, /, **query: str) -> AppTest:
    """Return the app at the address of a page or of one of its tabs, not yet run.

    A browser that opens an address does not draw Home first, and neither does this.
    """
    app = AppTest.from_file(str(ROOT / "cotlab" / "ui" / "main.py"), default_timeout=300)
    link = PageLink(place, tuple(query.items()))
    if link.page.url_path:  # switch_page does not know addresses before a run
        app._page_hash = calc_hash(link.page.url_path)
    for key, value in link.parameters:
        app.query_params[key] = value
    return app


def opened(place: str, title: str | None = None, /, **query: str) -> AppTest:
    """Open a page or a tab with ``query`` in its address, and check its title.

    Of a run it is the run's own, of every other page by default that of the sidebar.
    """
    app = app_at(place, **query).run()
    assert not app.exception, [e.value for e in app.exception]
    page = PAGE_BY_PLACE[place]
    if title is not None or page.name != "run":
        assert titles(app) == [title or page.title]
    return app


def opened_run(run: str, place: str = "verdict", **query: str) -> AppTest:
    """Open a tab of a run and check that its title is the run's name, or its model and suite."""
    row = read.get_run(Store(), run)
    title = row["name"] or f"{short_model_name(row['model'])} on {row['suite_name']}"
    return opened(place, escape_markdown(title), run=run, **query)


def opened_item(run: str, item: str, **query: str) -> AppTest:
    """Open an item of a run and check that its question stands there."""
    app = opened_run(run, "items", item=item, **query)
    store = Store()
    question = read.get_item(store, read.get_run(store, run)["suite"], item).question
    assert component(app, "heading_pieces")["heading"] == question
    return app


def titles(app: AppTest) -> list[str]:
    """Return the titles of the page."""
    return [t.value for t in app.title]


def components(app: AppTest) -> list[dict[str, Any]]:
    """Return the data of each component of the page."""
    return [json.loads(element.proto.json or "{}") for element in app.get("bidi_component")]


def component(app: AppTest, field: str) -> dict[str, Any]:
    """Return the data of the only component whose data has a field."""
    (data,) = [data for data in components(app) if field in data]
    return data


def send(app: AppTest, field: str, state: dict[str, Any]) -> AppTest:
    """Send a state as the component whose data has ``field`` does, and run the page."""
    (element,) = [
        element
        for element in app.get("bidi_component")
        if field in json.loads(element.proto.json or "{}")
    ]
    states: WidgetStates = app._tree.get_widget_states()
    states.widgets.add(id=element.proto.id, json_value=json.dumps(state))
    app._run(states)
    assert not app.exception, [e.value for e in app.exception]
    return app
