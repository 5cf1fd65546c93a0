"""The component of the page Label: its data, the actions that a browser would send, and queues."""

from __future__ import annotations

import json
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.testing.v1 import AppTest

from cotlab.review.labelling.queue import make_queue
from cotlab.store.database import Store


def desk(app: AppTest) -> dict[str, Any]:
    """Return the data of the labelling component; empty where the page does not show it."""
    return dict(json.loads(_component(app).json)) if _component(app) else {}


def _component(app: AppTest) -> Any:
    """Return the labelling component of the page; None where there is none."""
    protos = [found.proto for found in app.get("bidi_component")]
    return next((proto for proto in protos if "queue" in json.loads(proto.json)), None)


def label(app: AppTest, verdict: str, **more: Any) -> dict[str, Any]:
    """Return a label action on the current item."""
    item = desk(app)["items"][0]
    said = {
        "kind": "label",
        "id": item["id"],
        "run": item["run"],
        "item": item["item"],
        "verdict": verdict,
    }
    return {
        **said,
        "answer": item["answer"],
        "modes": item["modes"],
        "note": item["note"],
        "flagged": False,
        **more,
    }


def tell(app: AppTest, *acts: dict[str, Any], client: str = "browser") -> AppTest:
    """Send actions as the component does, and run the page.

    Actions without ``seq`` get the next numbers.
    """
    ack = desk(app)["ack"] or {}
    seq = ack["seq"] if ack.get("client") == client else 0
    queue = desk(app)["queue"]
    numbered = [{"seq": seq + k, "queue": queue, **act} for k, act in enumerate(acts, start=1)]
    batch = {"batch": {"client": client, "time": seq, "acts": numbered}}
    states: WidgetStates = app._tree.get_widget_states()
    states.widgets.add(id=_component(app).id, json_value=json.dumps(batch))
    app._run(states)
    assert not app.exception, [e.value for e in app.exception]
    return app


def queue_of(store: Store, name: str, **more: Any) -> str:
    """Return a new queue of six items."""
    return make_queue(
        store, name, [("run-1", f"i-{k:02}", "") for k in range(6)], author="test", **more
    )


def press(app: AppTest, label: str) -> AppTest:
    """Press a button by its label, and run the page."""
    next(b for b in app.button if b.label == label).click()
    app.run()
    assert not app.exception, [e.value for e in app.exception]
    return app
