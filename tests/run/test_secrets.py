"""Keys: the environment wins over .env, which wins over secrets.toml; what is wrong with a file
never repeats it."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import pytest

from cotlab.core.errors import ConfigError
from cotlab.providers.keys import KEY_VARIABLES
from cotlab.run.secrets import load_secrets

pytestmark = pytest.mark.usefixtures("environment_as_it_was")


def after(
    folder: Path, env: str | bytes | None = None, toml: str | bytes | None = None
) -> dict[str, str]:
    """The keys that are set once both files were read."""
    (folder / ".streamlit").mkdir()
    for path, text in ((folder / ".env", env), (folder / ".streamlit" / "secrets.toml", toml)):
        if text is not None:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    load_secrets(folder)
    return {name: os.environ[name] for name in KEY_VARIABLES.values() if name in os.environ}


def test_the_environment_wins_over_env_which_wins_over_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-shell")
    env = "OPENAI_API_KEY=of-env\nANTHROPIC_API_KEY=of-env\n"
    toml = "".join(f'{name} = "of-toml"\n' for name in KEY_VARIABLES.values())
    assert after(tmp_path, env, toml) == {
        "OPENAI_API_KEY": "of-the-shell",
        "ANTHROPIC_API_KEY": "of-env",
        "GOOGLE_API_KEY": "of-toml",
        "OPENAI_COMPAT_API_KEY": "of-toml",
    }


def test_env_may_hold_options_and_secrets_only_keys(tmp_path: Path) -> None:
    toml = (
        'COTLAB_METRIC = "answer_change"\nOPENAI_API_KEY = 7\nGOOGLE_API_KEY ='
        ' ""\n[table]\nANTHROPIC_API_KEY = "within"\n'
    )
    assert (
        after(tmp_path, "COTLAB_SEED=7\n", toml) == {}
    )  # a number, nothing, and a key of a table are no keys
    assert os.environ["COTLAB_SEED"] == "7" and "COTLAB_METRIC" not in os.environ


def test_env_brings_keys_and_options_of_a_run_and_nothing_else(tmp_path: Path) -> None:
    before = dict(os.environ)
    taken = {
        "OPENAI_API_KEY": "k",
        "COTLAB_SEED": "7",
        "COTLAB_BASE_URL": "http://h",
        "FAITHCHECK_MAX_COST": "1",
    }
    other = (
        "PYTHONPATH",
        "LD_PRELOAD",
        "BROWSER_PATH",
        "HF_HOME",
        "OPENAI_BASE_URL",
        "ANTHROPIC_CUSTOM_HEADERS",
        "COTLAB_X",
    )
    after(
        tmp_path,
        "".join(f"{name}={value}\n" for name, value in taken.items())
        + "".join(f"{n}=/evil\n" for n in other),
    )
    assert dict(os.environ) == before | taken


@pytest.mark.parametrize(
    "name",
    [
        "COTLAB_CHROME",
        "COTLAB_STORE",
        "COTLAB_SEND_KEY_TO",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "https_proxy",
        "All_Proxy",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
    ],
)
def test_what_only_the_user_may_set_is_refused_with_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    with pytest.raises(ConfigError, match=rf"\.env: {name} .*export {name}=VALUE") as caught:
        after(tmp_path, f"OPENAI_API_KEY=k\n{name}=/evil\n")
    assert "evil" not in str(caught.value) and dict(os.environ) == before
    monkeypatch.setenv(name, "of-the-user")
    load_secrets(tmp_path)
    assert (os.environ[name], os.environ["OPENAI_API_KEY"]) == ("of-the-user", "k")


def test_a_key_is_not_filled_into_another_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an address could carry it: http://stranger/${OPENAI_API_KEY}/v1."""
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-shell")
    for text in (
        "http://h/${OPENAI_API_KEY}/v1",
        "'${OPENAI_API_KEY}'",
        "${NONE:-${OPENAI_API_KEY}}",
    ):
        (tmp_path / ".env").write_text(f"COTLAB_BASE_URL={text}\n")
        with pytest.raises(
            ConfigError, match=r"\.env: variables are not filled in there: .*COTLAB_BASE_URL"
        ):
            load_secrets(tmp_path)
        assert "COTLAB_BASE_URL" not in os.environ
    (tmp_path / ".env").write_text("COTLAB_MODEL=$OPENAI_API_KEY\n")
    load_secrets(tmp_path)
    assert os.environ["COTLAB_MODEL"] == "$OPENAI_API_KEY"


def test_what_streamlit_brings_from_secrets_toml_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        after(tmp_path, toml='COTLAB_SEND_KEY_TO = "evil"\nHTTPS_PROXY = "http://evil"\n') == {}
    )  # read by nobody
    monkeypatch.setenv("COTLAB_SEND_KEY_TO", "evil")
    with pytest.raises(ConfigError, match=r"secrets\.toml: COTLAB_SEND_KEY_TO cannot be set there"):
        load_secrets(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("secrets.toml", "OPENAI_API_KEY = sk-planted-1"),
        ("secrets.toml", 'OPENAI_API_KEY = "sk-planted-1'),
        ("secrets.toml", 'sk-planted-1 = "a"\nsk-planted-1 = "b"\n'),
        ("secrets.toml", b'OPENAI_API_KEY = "sk-planted-1\xff"'),
        (".env", b"OPENAI_API_KEY=sk-planted-1\xff"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_not_repeated(
    tmp_path: Path, name: str, text: str | bytes
) -> None:
    with pytest.raises(ConfigError) as caught:
        after(tmp_path, **{"env" if name == ".env" else "toml": text})
    assert name in str(caught.value)
    assert "planted" not in "".join(traceback.format_exception(caught.value))
