"""What a viewer sees of each control, and that none works for them even if it is enabled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.run.secrets import access_settings
from cotlab.store.database import Store
from cotlab.ui import access
from cotlab.ui.identity import SECRET_HEADER, Client, Forbidden
from cotlab.ui.new_run import estimate
from cotlab.ui.new_run import form as new_run
from cotlab.ui.runs import header
from tests.support.pages import app_at

SECRET = "a-secret-of-the-proxy"


@pytest.fixture
def came_as(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let pages be requested by a client of a proxy, with these headers and the proxy's secret."""
    settings = {
        "TRUSTED_HEADER": "X-User",
        "PROXY_SECRET": SECRET,
        "ADMINS": "ann",
        "LABELLERS": "lou",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"COTLAB_{name}", value)

    def come(name: str | None) -> None:
        headers = {"Host": ["cotlab.example"], SECRET_HEADER: [SECRET]} | (
            {} if name is None else {"X-User": [name]}
        )
        monkeypatch.setattr(access, "_is_served", lambda: True)
        monkeypatch.setattr(access, "_client", lambda: Client("10.0.0.2", headers))

    return come


def open_page(name: str) -> AppTest:
    return app_at(name).run()


def pressable(app: AppTest) -> dict[str, Any]:
    return {button.label: button for button in app.button}


WRITES = [
    ("home", "Run the shipped suite on two shipped models"),
    ("settings", "Back up now"),
    ("settings", "Test connection"),
]


@pytest.mark.parametrize(("page", "label"), WRITES)
def test_a_control_is_greyed_with_the_reason(
    came_as: Callable[..., None], page: str, label: str
) -> None:
    came_as("bob")
    control = pressable(open_page(page))[label]
    assert (
        control.disabled
        and control.help == "This needs the role admin. Ask an admin of this dashboard."
    )
    came_as("ann")
    assert not pressable(open_page(page))[label].disabled


@pytest.mark.soak
@pytest.mark.parametrize(("page", "label"), WRITES)
def test_a_press_is_refused_where_it_is_carried_out(
    came_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch, page: str, label: str
) -> None:
    monkeypatch.setattr(
        access,
        "role_control",
        lambda role, disabled=False, help=None: {"disabled": disabled, "help": help},
    )
    need, refused = access.require_role, []

    def told(role: access.Role) -> access.Person:
        try:
            return need(role)
        except Forbidden as error:
            refused.append(str(error))
            raise

    monkeypatch.setattr(access, "require_role", told)
    came_as("bob")
    app = open_page(page)
    before = sorted(Store().folder.rglob("*"))
    pressable(app)[label].click().run()
    assert refused == [
        "bob is viewer here; this needs the role admin. Ask an admin of this dashboard."
    ]
    assert len(app.exception) == 1 and not app.success
    assert sorted(Store().folder.rglob("*")) == before


@pytest.mark.parametrize(
    "act",
    [
        lambda: header._stop_run("r"),
        lambda: header._resume_run("r"),
        lambda: new_run._start_run("wordproblems", {}),
        lambda: estimate.render_estimate("wordproblems", {}, reuses_replies=False),
    ],
)
def test_no_run_is_started_or_stopped_by_a_labeller(
    came_as: Callable[..., None], act: Callable[[], object]
) -> None:
    came_as("lou")
    with pytest.raises(Forbidden, match="lou is labeller here"):
        act()


@pytest.mark.parametrize("page", ["upload", "new_run"])
def test_a_form_that_reads_files_is_for_admins(came_as: Callable[..., None], page: str) -> None:
    came_as("bob")
    app = open_page(page)
    assert not app.exception and any("needs the role admin" in info.value for info in app.info)
    assert not {"Start run"} & set(pressable(app)) and not app.get("file_uploader")


def test_a_role_that_changes_holds_at_the_next_action(
    came_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    came_as("bob")
    app = open_page("settings")
    monkeypatch.setenv("COTLAB_ADMINS", "ann, bob")
    assert not pressable(app.run())["Back up now"].disabled
    monkeypatch.setenv("COTLAB_ADMINS", "ann")
    pressable(app)["Back up now"].click().run()
    assert not list(Store().folder.glob("backups/*")) and not [
        s for s in app.success if "Copied" in s.value
    ]


def test_roles_of_the_file_are_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".env"
    assert access_settings(tmp_path)["COTLAB_ADMINS"] == ""
    file.write_text("COTLAB_ADMINS=ann\n")
    assert access_settings(tmp_path)["COTLAB_ADMINS"] == "ann"
    file.write_text("COTLAB_ADMINS=ann,bob\nCOTLAB_OPEN=viewer\n")
    assert access_settings(tmp_path)["COTLAB_ADMINS"] == "ann,bob"
    monkeypatch.setenv("COTLAB_ADMINS", "of the shell")
    assert access_settings(tmp_path)["COTLAB_ADMINS"] == "of the shell"


@pytest.mark.parametrize("page", ["home", "settings", "items"])
def test_who_is_not_let_in_sees_nothing(came_as: Callable[..., None], page: str) -> None:
    came_as(None)
    app = app_at(page).run()
    assert [title.value for title in app.title] == ["cotlab"] and len(app.error) == 1
    assert not (app.button or app.dataframe or app.text_input or app.selectbox or app.metric)


@pytest.mark.parametrize(
    ("name", "listed"), [("ann", ["ann", "lou"]), ("bob", ["1 listed", "1 listed"])]
)
def test_settings_say_how_people_are_let_in_but_no_secret(
    came_as: Callable[..., None], name: str, listed: list[str]
) -> None:
    came_as(name)
    app = open_page("settings")
    table = app.dataframe[1].value
    assert (
        table["role"].tolist() == ["admin", "labeller", "viewer"]
        and table["who"].tolist()[:2] == listed
    )
    assert any("A proxy names the user in X\\-User" in one.value for one in app.markdown)
    assert SECRET not in str(app) and all(
        SECRET not in one.value for one in (*app.markdown, *app.caption)
    )
