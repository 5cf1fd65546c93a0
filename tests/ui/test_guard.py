"""What the dashboard's server says to who is not logged in, and to pages of other addresses."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

from tests.support.served import app


def answer(server: str, path: str) -> HTTPResponse:
    with closing(HTTPConnection(server, timeout=60)) as connection:
        connection.request("GET", path)
        reply = connection.getresponse()
        reply.read()
        return reply


def test_no_other_page_frames_it_and_its_metrics_are_nobodys(tmp_path: Path) -> None:
    page = "https://lab.example"
    settings = {"COTLAB_TRUSTED_HEADER": "X-Forwarded-User", "COTLAB_PROXY_SECRET": "s" * 16}
    with app(tmp_path, "--server.corsAllowedOrigins", page, **settings) as server:
        for path in ("/", "/settings", "/static/no-such", "/_stcore/health", "/_stcore/metrics"):
            headers = answer(server, path).headers
            assert headers.get_all("X-Frame-Options") == ["SAMEORIGIN"], path
            assert headers.get_all("Content-Security-Policy") == [f"frame-ancestors 'self' {page}"]
        for tail in ("", "/", "?families=cache_memory_bytes", "/?x"):
            assert answer(server, f"/_stcore/metrics{tail}").status == 404
        assert answer(server, "/_stcore/health").status == 200
