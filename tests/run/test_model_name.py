"""``cotlab doctor --connect PROVIDER/MODEL`` with a name that the server does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotlab.providers.keys import KEY_VARIABLES
from tests.support.command import cotlab
from tests.support.loopback import serving


def test_a_model_that_the_server_does_not_know_is_an_error_with_its_words(tmp_path: Path) -> None:
    with serving() as server:
        server.script(then={"status": 404, "error": {"message": "no such model"}})
        words = ("doctor", "--connect", "openai_compat/qwen-70b", "--base-url", server.base_url)
        assert "no such model" in cotlab(*words, store=tmp_path, code=2).stderr


@pytest.mark.parametrize("provider", ["openai_compat", "anthropic", "google"])
def test_a_server_without_a_list_of_models_has_to_be_given_a_name(
    provider: str, tmp_path: Path
) -> None:
    with serving() as server:
        base = server.root if provider != "openai_compat" else server.base_url

        def connect() -> str:
            words = ("doctor", "--connect", provider, "--base-url", base)
            words += ("--send-key-to", "127.0.0.1")
            return cotlab(*words, store=tmp_path, code=2, **keys).stderr

        keys = {KEY_VARIABLES[provider]: "sk-none"}
        advice = f"cotlab doctor --connect {provider}/MODEL --base-url {base}"
        for status in (
            500,
            404,
        ):  # `transformers serve` without a cache of the hub, and no such path
            server.script(models={"status": status})
            assert advice in connect() and str(status) in connect()
        server.script(models=[])
        assert advice in connect()
        server.script(models={"status": 401})
        assert "refused the key" in connect() and advice not in connect()
    assert advice not in connect()  # nobody is there
