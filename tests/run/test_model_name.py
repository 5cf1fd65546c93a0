"""``cotlab doctor --connect PROVIDER/MODEL`` with a name that the server does not list."""

from __future__ import annotations

from pathlib import Path

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
