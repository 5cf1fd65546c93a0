"""A key goes only where the user sends it: not to a server, and not through a program, that a file
of the folder names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.core.errors import ConfigError
from cotlab.providers import keys
from cotlab.run.config import read_config
from cotlab.run.plan import check_connection
from cotlab.run.resolved import ResolvedRun
from cotlab.run.secrets import load_secrets
from cotlab.store.database import Store
from cotlab.ui.new_run import processes as launching
from tests.run.test_attack import small_suite
from tests.support.forked import Forking
from tests.support.loopback import Loopback

pytestmark = pytest.mark.usefixtures("environment_as_it_was")

ROOT = Path(__file__).parents[2]
SECRET = "sk-of-the-user-0123456789"
SEVEN = {"text": "So the answer is 7."}
STRANGER = "https://stranger.example.com/v1"


def cotlab(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The real command, typed in ``folder``."""
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "COTLAB_STORE": str(folder / "store"),
        **environment,
    }
    return subprocess.run(
        [sys.executable, "-m", "cotlab", *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def arrived(server: Loopback) -> set[str]:
    return {call["headers"].get("authorization", "") for call in server.seen()}


def refused(done: subprocess.CompletedProcess[str], *words: str) -> bool:
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert SECRET not in done.stdout + done.stderr and done.stderr.count("error:") == 1
    return all(word in done.stderr for word in words)


@pytest.mark.soak
def test_an_address_of_the_folder_s_file_does_not_get_the_user_s_key(
    tmp_path: Path, server: Loopback
) -> None:
    server.script(then=SEVEN)
    (tmp_path / ".env").write_text(
        f"COTLAB_PROVIDER=openai\nCOTLAB_MODEL=gpt-4o-mini\nCOTLAB_BASE_URL={server.base_url}\n"
    )
    words = ("run", "--task-suite", small_suite(tmp_path, 1, 1))
    done = cotlab(tmp_path, *words, OPENAI_API_KEY=SECRET)
    assert refused(done, "OPENAI_API_KEY is not sent to 127.0.0.1", "--send-key-to 127.0.0.1")
    assert server.seen() == []
    done = cotlab(tmp_path, *words, "--send-key-to", "127.0.0.1", OPENAI_API_KEY=SECRET)
    assert done.returncode == 0 and arrived(server) == {f"Bearer {SECRET}"}, done.stderr


def test_a_configuration_file_cannot_send_a_key_elsewhere(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then=SEVEN)
    file = tmp_path / "run.yaml"
    told = (
        f"provider: openai\nmodel: gpt-4o-mini\nbase_url: {server.base_url}\ntask_suite:"
        f" {small_suite(tmp_path, 1, 1)}\n"
    )
    file.write_text(told)
    environment = {"OPENAI_API_KEY": SECRET, keys.SEND_KEY_TO_VARIABLE: ""}
    code, out, err = runs.outcome(tmp_path, "--config", str(file), **environment)
    assert code == 2 and "--send-key-to 127.0.0.1" in err and SECRET not in out + err
    file.write_text(f"{told}send_key_to: 127.0.0.1\n")
    code, _, err = runs.outcome(tmp_path, "--config", str(file), **environment)
    assert code == 2 and "send_key_to" in err and server.seen() == []
    file.write_text(told)
    code, _, err = runs.outcome(
        tmp_path,
        "--config",
        str(file),
        "--send-key-to",
        "127.0.0.1",
        "--run-id",
        "r",
        **environment,
    )
    assert code == 0 and arrived(server) == {f"Bearer {SECRET}"}, err
    assert (
        b"send_key_to" not in (tmp_path / "reports" / "r" / "run.yaml").read_bytes()
    )  # it is asked for at each start


@pytest.mark.parametrize(
    "host", ["http://127.0.0.1", "127.0.0.1:8000", "a b", "", "*", "127.0.0.1/v1", "me@127.0.0.1"]
)
def test_what_is_no_host_is_refused(tmp_path: Path, runs: Forking, host: str) -> None:
    code, _, err = runs.outcome(tmp_path, "--send-key-to", host, "--provider", "echo", "--dry-run")
    assert code == 2 and "--send-key-to takes a host" in err


@pytest.mark.soak
def test_a_connection_takes_the_same_road(
    server: Loopback, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.script()
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(ConfigError, match="--send-key-to 127.0.0.1"):
        check_connection("openai", server.base_url)
    assert server.seen() == []
    words = ("doctor", "--connect", "openai", "--base-url", server.base_url)
    assert refused(cotlab(tmp_path, *words), "--send-key-to 127.0.0.1") and server.seen() == []
    done = cotlab(tmp_path, *words, "--send-key-to", "127.0.0.1")
    assert done.returncode == 0 and arrived(server) == {f"Bearer {SECRET}"}, done.stderr


# The key of a server that only the user knows


def opened_with(flags: Mapping[str, object], file: Path | None = None) -> None:
    config = read_config({"provider": "openai_compat", "model": "m", **flags}, file)
    ResolvedRun(config).open_providers()


def test_the_key_of_a_server_goes_where_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_COMPAT_API_KEY", SECRET)
    opened_with({"base_url": STRANGER})
    file = tmp_path / "run.yaml"
    file.write_text(f"base_url: {STRANGER}\n")
    with pytest.raises(
        ConfigError,
        match=r"OPENAI_COMPAT_API_KEY .*run\.yaml .*--base-url https://stranger\.example\.com/v1",
    ):
        opened_with({}, file)
    opened_with({"base_url": STRANGER}, file)
    with monkeypatch.context() as patch:
        patch.setenv("COTLAB_BASE_URL", STRANGER)
        opened_with({}, file)
    with monkeypatch.context() as patch:
        patch.setenv(keys.SEND_KEY_TO_VARIABLE, "other.example.com, Stranger.example.com")
        opened_with({}, file)
    file.write_text("base_url: http://127.0.0.1:8000/v1\n")  # nobody else's
    opened_with({}, file)


def test_a_file_that_holds_the_key_may_name_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text(f"COTLAB_BASE_URL={STRANGER}\nOPENAI_COMPAT_API_KEY={SECRET}\n")
    load_secrets(tmp_path)
    opened_with({})
    file = tmp_path / "run.yaml"
    file.write_text("base_url: https://another.example.com/v1\n")
    monkeypatch.delenv("COTLAB_BASE_URL")
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        opened_with({}, file)


@pytest.mark.parametrize("where", ["environment", "secrets.toml"])
def test_a_key_of_elsewhere_does_not_follow_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    (tmp_path / ".env").write_text(f"COTLAB_BASE_URL={STRANGER}\n")
    if where == "environment":
        monkeypatch.setenv("OPENAI_COMPAT_API_KEY", SECRET)
    else:
        (tmp_path / ".streamlit").mkdir()
        (tmp_path / ".streamlit" / "secrets.toml").write_text(
            f'OPENAI_COMPAT_API_KEY = "{SECRET}"\n'
        )
    load_secrets(tmp_path)
    with pytest.raises(ConfigError, match=r"(?s)OPENAI_COMPAT_API_KEY.*\.env"):
        opened_with({})
    monkeypatch.delenv("OPENAI_COMPAT_API_KEY")
    opened_with({})  # nothing to lose


# The page New run


def _start_from_the_form() -> None:
    import os

    from cotlab.ui.new_run import form as new_run

    told = {
        **new_run.render_run_form(None)[1],
        "provider": "openai_compat",
        "model": "m",
        "base_url": os.environ["COTLAB_BASE_URL"],
    }
    new_run.render_start_buttons("wordproblems", told, 60)


def test_the_form_does_not_send_a_key_to_the_address_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_COMPAT_API_KEY", SECRET)
    (tmp_path / ".env").write_text(f"COTLAB_PROVIDER=openai_compat\nCOTLAB_BASE_URL={STRANGER}\n")
    load_secrets(tmp_path)
    app = AppTest.from_function(_start_from_the_form, default_timeout=300).run()
    next(button for button in app.button if button.label == "Start run").click().run()
    assert not app.exception
    assert ["stranger.example.com" in error.value.replace("\\", "") for error in app.error] == [
        True
    ]
    assert not (Store().folder / "processes").exists()


@pytest.mark.soak
def test_a_run_of_the_form_sends_a_vendor_s_key_only_where_the_environment_says(
    tmp_path: Path, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script(then=SEVEN)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    told = {"provider": "openai", "model": "gpt-4o-mini", "base_url": server.base_url}
    config = read_config({**told, "task_suite": small_suite(tmp_path, 1, 1)}).model_dump(
        mode="json"
    )
    store = Store()
    launching.spawn_run(store, "a", config)
    assert launching._PROCESS_BY_RUN["a"].wait(timeout=600) == 2 and server.seen() == []
    assert "--send-key-to 127.0.0.1" in launching.process_output(store, "a")
    assert list(launching._PROCESS_BY_RUN["a"].args)[-2:] == [
        "--base-url",
        server.base_url,
    ]  # typed, not of the file
    monkeypatch.setenv(keys.SEND_KEY_TO_VARIABLE, "127.0.0.1")
    launching.spawn_run(store, "b", config)
    assert launching._PROCESS_BY_RUN["b"].wait(timeout=600) == 0, launching.process_output(
        store, "b"
    )
    assert arrived(server) == {f"Bearer {SECRET}"}
