"""``cotlab doctor --connect PROVIDER/MODEL`` with a name that the server does not list."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotlab.providers.keys import KEY_VARIABLES
from tests.support.command import cotlab
from tests.support.loopback import serving


def test_a_model_that_the_server_does_not_list_is_named(tmp_path: Path) -> None:
    with serving() as server:
        names = ["qwen-7b", "llama3:latest"]
        unknown = {"status": 404, "error": {"message": "no such model"}}
        server.script(models=names, then=unknown)

        def connect(name: str, code: int) -> str:
            words = ("doctor", "--connect", f"openai_compat/{name}")
            done = cotlab(*words, "--base-url", server.base_url, store=tmp_path, code=code)
            return done.stdout + done.stderr

        assert (
            "The server does not list the model qwen-70b; it lists: llama3:latest, qwen-7b. Give"
            " one of these names." in connect("qwen-70b", 2)
        )
        server.script(models=names, then={"text": "3 + 4 = 7."})
        on_demand = " ".join(connect("qwen-70b", 0).split())
        assert "does not list the model qwen-70b" in on_demand
        assert "It answers to that name" in on_demand and "may load models on demand" in on_demand
        for name in ("qwen-7b", "llama3"):  # Ollama's names go without their tag
            assert "does not list" not in connect(name, 0)
        server.script(models={"status": 500}, then={"text": "3 + 4 = 7."})
        assert "does not list" not in connect("qwen-70b", 0)


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
