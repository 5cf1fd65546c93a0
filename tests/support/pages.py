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
from cotlab.ui.main import SECTIONS
from cotlab.ui.text import escape_markdown

ROOT = Path(__file__).parents[2]


def app_at(page: str, /, **query: str) -> AppTest:
    """Return the app at the address of ``pages/<page>.py``, not yet run.

    A browser that opens an address does not draw Home first, and neither does this.
    """
    app = AppTest.from_file(str(ROOT / "cotlab" / "ui" / "main.py"), default_timeout=300)
    (entry,) = [entry for section in SECTIONS.values() for entry in section if entry.name == page]
    if (address := page if entry.address is None else entry.address) != "":
        app._page_hash = calc_hash(address)  # switch_page does not know addresses before a run
    for key, value in query.items():
        app.query_params[key] = value
    return app


def opened(page: str, title: str, /, **query: str) -> AppTest:
    """Open ``pages/<page>.py`` with ``query`` in its address, and check its title."""
    app = app_at(page, **query).run()
    assert not app.exception, [e.value for e in app.exception]
    assert titles(app) == [title]
    return app


def opened_run(run: str, **query: str) -> AppTest:
    """Open the page Run and check that its title is the run's name, or its model and suite."""
    row = read.get_run(Store(), run)
    title = row["name"] or f"{short_model_name(row['model'])} on {row['suite_name']}"
    return opened("run", escape_markdown(title), run=run, **query)


def opened_item(run: str, item: str, **query: str) -> AppTest:
    """Open the page Item and check that its title is the item's question."""
    store = Store()
    question = read.get_item(store, read.get_run(store, run)["suite"], item).question
    return opened("item", question, run=run, item=item, **query)


def titles(app: AppTest) -> list[str]:
    """Return the titles of the page: of Streamlit, and of the component of the page Item."""
    headings = [data["heading"] for data in components(app) if "heading" in data]
    return [t.value for t in app.title] + headings


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
