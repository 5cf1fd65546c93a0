"""A shared dashboard over real connections: no address skips the login, disabled means disabled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cotlab.ui.identity import SECRET_HEADER
from tests.support.served import Client, Shown, app

pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SECRET = "a-secret-of-the-proxy"
PAGES = (
    "",
    "suites",
    "new",
    "runs",
    "run",
    "compare",
    "figures",
    "settings",
    "validation",
)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Serve the app behind a proxy that names its users; yield it and its folder."""
    folder = tmp_path_factory.mktemp("proxied")
    settings = {
        "COTLAB_TRUSTED_HEADER": "X-Forwarded-User",
        "COTLAB_PROXY_SECRET": SECRET,
        "COTLAB_ADMINS": "ann@x.org",
    }
    with app(folder, **settings) as server:
        yield server, folder


def named(name: str) -> dict[str, str]:
    return {"X-Forwarded-User": name, SECRET_HEADER: SECRET}


def draw(server: str, page: str, headers: dict[str, str] | None = None, **more: str) -> Shown:
    with Client(server, headers, **more) as client:
        return client.open(page)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Forwarded-User": "ann@x.org"},
        {"X-Forwarded-User": "ann@x.org", SECRET_HEADER: "guessed-guessed-guessed"},
    ],
)
def test_no_page_is_drawn_for_who_skips_the_proxy(
    proxied: tuple[str, Path], page: str, headers: dict[str, str]
) -> None:
    shown = draw(proxied[0], page, headers)
    assert shown.says("reached through its proxy only") and shown.buttons == {}
    assert SECRET.encode() not in shown.raw
    assert [text for text in shown.texts if text != "cotlab" and "proxy only" not in text] == []


def test_the_proxys_users_see_pages_by_their_roles(proxied: tuple[str, Path]) -> None:
    server, _ = proxied
    admin = draw(server, "settings", named("Ann@X.org"))
    viewer = draw(server, "settings", named("bob@x.org"))
    assert admin.says("ann@x.org, admin") and viewer.says("bob@x.org, viewer")
    assert not admin.buttons["Back up now"][1] and viewer.buttons["Back up now"][1]
    assert SECRET.encode() not in admin.raw + viewer.raw


def backups(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "store").glob("backups/*"))


def test_a_forged_press_of_a_greyed_button_does_nothing(proxied: tuple[str, Path]) -> None:
    server, folder = proxied
    buttons = [
        draw(server, "settings", named(name)).buttons["Back up now"][0]
        for name in ("ann@x.org", "bob@x.org")
    ]
    for button in buttons:
        with Client(server, named("bob@x.org")) as client:
            assert not client.open("settings", press=button).says("Copied to")
    assert backups(folder) == []
    with Client(server, named("ann@x.org")) as client:
        assert client.open("settings", press=buttons[0]).says("Copied to")
    assert len(backups(folder)) == 1


def test_without_a_login_only_this_machine_is_let_in(tmp_path: Path) -> None:
    with app(tmp_path) as server:
        assert "Back up now" in draw(server, "settings").buttons
        for headers in ({"X-Forwarded-For": "10.0.0.9"}, {"Via": "1.1 proxy"}):
            shown = draw(server, "settings", headers)
            assert shown.says("has no login") and shown.buttons == {}
        port = server.split(":")[1]
        assert draw(server, "settings", host=f"cotlab.example:{port}").says("has no login")


def test_a_page_of_another_port_of_this_machine_presses_nothing(tmp_path: Path) -> None:
    with app(tmp_path) as server:
        button = draw(server, "settings", {"Origin": f"http://{server}"}).buttons["Back up now"][0]
        with Client(server, {"Origin": "http://localhost:9999"}) as client:
            shown = client.open("settings", press=button)
        assert shown.says("may not use this dashboard") and shown.buttons == {}
        assert backups(tmp_path) == []


def test_no_page_is_drawn_for_a_page_of_another_port(tmp_path: Path) -> None:
    with app(tmp_path) as server:
        for page in PAGES:
            shown = draw(server, page, {"Origin": "http://127.0.0.1:9999"})
            assert shown.says("may not use this dashboard") and shown.buttons == {}, page
            assert [
                text for text in shown.texts if text != "cotlab" and "may not" not in text
            ] == []


def test_everybody_may_do_what_an_open_dashboard_says(tmp_path: Path) -> None:
    with app(tmp_path, COTLAB_OPEN="viewer") as server:
        shown = draw(server, "settings", {"X-Forwarded-For": "10.0.0.9"})
        assert (
            shown.says("everybody who reaches this address is viewer here")
            and shown.buttons["Back up now"][1]
        )
        assert not draw(server, "settings").buttons["Back up now"][1]


def test_a_login_without_its_secret_starts_closed(tmp_path: Path) -> None:
    with app(tmp_path, COTLAB_TRUSTED_HEADER="X-Forwarded-User") as server:
        shown = draw(server, "", {"X-Forwarded-User": "ann@x.org"})
        assert shown.says("COTLAB\\_PROXY\\_SECRET") and shown.buttons == {}
