"""New run opens with the scorer or the profile that the link names, also without a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.test_pages import open_page


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))


def links_to_new_run(app: AppTest) -> list[str]:
    return [str(link.proto.query_string) for link in app.get("page_link")]


def test_a_scorer_in_the_address_is_chosen() -> None:
    app = open_page("new_run", measure="unfaithfulness")
    assert app.multiselect(key="new-scorer").value == ["unfaithfulness"]


def test_a_profile_in_the_address_is_chosen() -> None:
    app = open_page("new_run", profile="phase3")
    assert app.selectbox(key="new-profile").value == "phase3"


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("calibrate", "profile=phase3"),
        ("decisions", "measure=composite"),
        ("steps", "measure=ablation"),
        ("unfaithfulness", "measure=unfaithfulness"),
    ],
)
def test_an_empty_page_leads_to_a_run_of_what_it_shows(page: str, query: str) -> None:
    assert query in links_to_new_run(open_page(page))
