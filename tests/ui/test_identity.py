"""Who is let in, and as what: by address, by the proxy's header, by the login; and who is not."""

from __future__ import annotations

from typing import Any

import pytest

from cotlab.core.errors import ConfigError
from cotlab.ui.identity import (
    SECRET_HEADER,
    Client,
    Forbidden,
    LoginRequired,
    Person,
    identify,
    listed_role,
)

SECRET = "a-secret-of-the-proxy"
PROXIED = {
    "COTLAB_TRUSTED_HEADER": "X-Forwarded-User",
    "COTLAB_PROXY_SECRET": SECRET,
    "COTLAB_ADMINS": "ann@x.org",
}
HERE = {"Host": ["127.0.0.1:8501"]}


def ask(
    headers: dict[str, list[str]] | None = None,
    address: str | None = None,
    claims: dict[str, Any] | None = None,
    typed: str = "",
    **settings: str,
) -> Person:
    return identify(
        Client(address, HERE if headers is None else headers), claims or {}, settings, typed
    )


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8501", "localhost:8501", "LOCALHOST", "[::1]:8501", "a.localhost:1"]
)
@pytest.mark.parametrize("address", [None, "127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_whoever_works_on_this_machine_is_its_admin(host: str, address: str | None) -> None:
    assert ask({"Host": [host]}, address) == Person("local", "admin", "local")
    assert ask({"Host": [host]}, address, typed="ann").name == "ann"


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        (HERE, "192.168.1.7"),
        (HERE, "::ffff:192.168.1.7"),
        (HERE, "not an address"),
        (
            {"Host": ["cotlab.example:8501"]},
            None,
        ),  # a name that was made to point at this machine, or a proxy on it
        ({"Host": ["127.0.0.1.example"]}, None),
        ({"Host": ["[::1"]}, None),
        ({"Host": ["127.0.0.1", "localhost"]}, None),
        ({"Cookie": ["a=b"]}, None),
        ({**HERE, "X-Forwarded-For": ["10.0.0.9"]}, None),
        ({**HERE, "x-real-ip": ["10.0.0.9"]}, None),
        ({**HERE, "Forwarded": ["for=10.0.0.9"]}, None),
        ({**HERE, "Via": ["1.1 proxy"]}, None),
    ],
)
def test_without_a_login_nobody_comes_in_from_elsewhere(
    headers: dict[str, list[str]], address: str | None
) -> None:
    with pytest.raises(Forbidden, match="no login"):
        ask(headers, address)
    assert ask(headers, address, COTLAB_OPEN="viewer") == Person("guest", "viewer", "open")
    assert ask(headers, address, COTLAB_OPEN="1").role == "admin"
    with pytest.raises(ConfigError, match="COTLAB_OPEN"):
        ask(headers, address, COTLAB_OPEN="true")


@pytest.mark.parametrize("origin", ["http://localhost:9999", "http://127.0.0.1", "null", "\x1b[2J"])
def test_a_page_of_another_address_may_nothing(origin: str) -> None:
    with pytest.raises(Forbidden, match="may not use this dashboard") as refused:
        ask({**HERE, "Origin": [origin]})
    assert str(refused.value).isprintable()
    with pytest.raises(Forbidden, match="may not use this dashboard"):
        ask({**HERE, "Origin": [origin]}, COTLAB_OPEN="admin")
    with pytest.raises(Forbidden, match="may not use this dashboard"):
        ask({**HERE, "Origin": [origin], SECRET_HEADER: [SECRET]}, **PROXIED)


def test_its_own_pages_and_listed_origins_use_the_dashboard() -> None:
    own = {**HERE, "Origin": ["http://127.0.0.1:8501"]}
    assert ask(own).role == "admin"
    forwarded = {"X-Forwarded-Host": ["cotlab.example"], "Origin": ["https://cotlab.example"]}
    assert ask({**HERE, **forwarded}, COTLAB_OPEN="viewer").role == "viewer"
    listed = Client(None, {**HERE, "Origin": ["https://a.example"]}, ["https://a.example"])
    assert identify(listed, {}, {}).role == "admin"


@pytest.mark.parametrize("gone", [None, Client(None, {})])
@pytest.mark.parametrize("settings", [{}, PROXIED, {"COTLAB_OPEN": "admin"}])
def test_a_connection_that_ended_may_nothing(gone: Client | None, settings: dict[str, str]) -> None:
    with pytest.raises(Forbidden, match="ended"):
        identify(gone, {}, settings)


def test_the_proxy_names_the_user() -> None:
    headers = {
        **HERE,
        "X-Forwarded-User": ["Ann@X.org"],
        SECRET_HEADER: [SECRET],
        "X-Forwarded-For": ["10.0.0.9"],
    }
    assert ask(headers, "10.0.0.2", typed="somebody else", **PROXIED) == Person(
        "ann@x.org", "admin", "header"
    )
    headers["X-Forwarded-User"] = ["bob@x.org"]
    assert ask(headers, **PROXIED).role == "viewer"
    assert ask(headers, **PROXIED, COTLAB_LABELLERS="carl@x.org, BOB@x.org").role == "labeller"
    assert ask(headers, **PROXIED, COTLAB_LABELLERS="*").role == "labeller"


@pytest.mark.parametrize(
    "secret", [[], [""], ["wrong"], [SECRET[:-1]], [SECRET + " "], [SECRET, SECRET], ["ÿ"]]
)
def test_who_does_not_come_through_the_proxy_can_claim_no_name(secret: list[str]) -> None:
    headers = {**HERE, "X-Forwarded-User": ["ann@x.org"], SECRET_HEADER: secret}
    with pytest.raises(Forbidden, match="through its proxy only"):
        ask(headers, **PROXIED, COTLAB_OPEN="admin")


@pytest.mark.parametrize(
    "names", [[], [""], ["  "], ["a", "b"], ["a, b"], ["*"], ["a\nb"], ["‮nna"], ["a" * 201]]
)
def test_a_name_that_is_none_is_refused(names: list[str]) -> None:
    with pytest.raises(Forbidden, match=r"names \d users|no name that can be used"):
        ask({**HERE, "X-Forwarded-User": names, SECRET_HEADER: [SECRET]}, **PROXIED)


@pytest.mark.parametrize(
    ("settings", "claims"),
    [
        ({"COTLAB_TRUSTED_HEADER": "X-User"}, {}),
        ({"COTLAB_TRUSTED_HEADER": "X-User", "COTLAB_PROXY_SECRET": "short"}, {}),
        ({"COTLAB_PROXY_SECRET": SECRET}, {}),
        (PROXIED, {"is_logged_in": True, "email": "ann@x.org"}),
    ],
)
def test_settings_that_cannot_be_trusted_let_nobody_in(
    settings: dict[str, str], claims: dict[str, Any]
) -> None:
    headers = {
        **HERE,
        "X-User": ["ann@x.org"],
        "X-Forwarded-User": ["ann@x.org"],
        SECRET_HEADER: [SECRET],
    }
    with pytest.raises(ConfigError) as told:
        ask(headers, claims=claims, **settings)
    assert SECRET not in str(told.value) and "short" not in str(told.value)


def test_a_login_that_is_set_up_is_asked_of_this_machine_too() -> None:
    for claims in (
        {"is_logged_in": False},
        {"is_logged_in": "true"},
        {"is_logged_in": None, "email": "ann@x.org"},
    ):
        with pytest.raises(LoginRequired):
            ask(claims=claims, COTLAB_OPEN="admin")
    ann = {"is_logged_in": True, "email": "Ann@x.org", "sub": "7"}
    assert ask(claims=ann, typed="bob", COTLAB_ADMINS="ann@x.org") == Person(
        "ann@x.org", "admin", "login"
    )
    assert ask(claims=ann).role == "viewer"


@pytest.mark.parametrize("doubt", [False, "false"])
def test_an_e_mail_that_the_login_does_not_vouch_for_gives_no_role(doubt: object) -> None:
    claims = {"is_logged_in": True, "email": "ann@x.org", "sub": "7", "email_verified": doubt}
    assert ask(claims=claims, COTLAB_ADMINS="ann@x.org") == Person("7", "viewer", "login")
    with pytest.raises(Forbidden):
        ask(
            claims={"is_logged_in": True, "email": "ann@x.org", "email_verified": doubt},
            COTLAB_ADMINS="ann@x.org",
        )


def test_a_letter_that_only_looks_alike_is_another_person() -> None:
    assert "\u212aate@x.org".lower() == "kate@x.org"  # the Kelvin sign, which lower() makes a k
    assert listed_role("\u212aate@x.org", {"COTLAB_ADMINS": "kate@x.org"}) == "viewer"
    assert listed_role("", {"COTLAB_ADMINS": ",, "}) == "viewer"
