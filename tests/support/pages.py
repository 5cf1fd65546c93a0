"""A page of the dashboard, opened by its address."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]


def opened(page: str, title: str, **query: str) -> AppTest:
    """Open ``pages/<page>.py`` with ``query`` in its address, and check its title."""
    app = AppTest.from_file(str(ROOT / "cotlab" / "ui" / "main.py"), default_timeout=90)
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    app.switch_page(str(ROOT / "pages" / f"{page}.py"))
    app.run()
    assert not app.exception, [e.value for e in app.exception]
    assert [t.value for t in app.title] == [title]
    return app
