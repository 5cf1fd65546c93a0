"""A login by OpenID Connect in a real browser: nothing before it or after logging out."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ARGUMENTS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
SECRETS = """
[auth]
redirect_uri = "http://localhost:{{port}}/oauth2callback"
cookie_secret = "a-secret-of-this-test-that-signs-cookies"
client_id = "{id}"
client_secret = "{secret}"
server_metadata_url = "{issuer}/.well-known/openid-configuration"
"""


def test_a_login_by_openid_connect(tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    from tests.support.loopback.oidc_wire import CLIENT_ID, CLIENT_SECRET, provider
    from tests.support.served import app

    with provider() as oidc:
        secrets = tmp_path / "secrets.toml"
        secrets.write_text(
            SECRETS.format(id=CLIENT_ID, secret=CLIENT_SECRET, issuer=oidc.issuer), "utf-8"
        )
        with (
            app(
                tmp_path,
                "--secrets.files",
                str(secrets),
                COTLAB_ADMINS="ann@x.org",
                AUTHLIB_INSECURE_TRANSPORT="1",
            ) as server,
            sync_playwright() as playwright,
        ):
            base = f"http://localhost:{server.split(':')[1]}"
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            expect.set_options(timeout=180_000)
            for claims, role in (
                ({"sub": "7", "email": "Ann@x.org", "email_verified": True}, "admin"),
                ({"sub": "8", "email": "bob@x.org", "email_verified": True}, "viewer"),
                ({"sub": "9", "email": "ann@x.org", "email_verified": False}, "viewer"),
            ):
                oidc.person = claims
                context = browser.new_context()
                page = context.new_page()
                page.set_default_timeout(180_000)
                for address in ("settings", "runs", "run?run=x&tab=items", ""):
                    page.goto(f"{base}/{address}")
                    expect(page.get_by_role("button", name="Log in")).to_be_visible()
                    expect(page.get_by_test_id("stDataFrame")).to_have_count(0)
                    expect(page.get_by_role("table")).to_have_count(0)
                    expect(page.get_by_text("There is no run yet")).to_have_count(0)
                page.get_by_role("button", name="Log in").click()
                name = (
                    claims["sub"]
                    if claims["email_verified"] is False
                    else str(claims["email"]).lower()
                )
                expect(page.get_by_text(f"{name}, {role}")).to_be_visible()
                assert page.get_by_role("link", name=name).count() == 0
                page.goto(f"{base}/settings")
                backup = page.get_by_role("button", name="Back up now")
                expect(backup).to_be_visible()
                (
                    expect(backup).to_be_enabled
                    if role == "admin"
                    else expect(backup).to_be_disabled
                )()
                page.get_by_role("button", name="Log out").click()
                expect(page.get_by_role("button", name=re.compile("^.*Log in$"))).to_be_visible()
                context.close()
            browser.close()
