"""A provider of another package declares its key, hosts, prices and capabilities, and is treated
like a vendor that ships with cotlab."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cotlab.core.errors import ConfigError, Unsupported
from cotlab.core.registry import PROVIDERS
from cotlab.core.requests import Complete, Message
from cotlab.core.types import ModelRef
from cotlab.providers.capabilities import (
    ProviderInfo,
    _declared_info,
    family_of,
    provider_info,
    supported_params,
)
from cotlab.providers.keys import (
    KEY_VARIABLES,
    PLACEHOLDER_KEY,
    SEND_KEY_TO_VARIABLE,
    key_for,
    mask_known_keys,
)
from cotlab.run.transport.budget import price_of

ROOT = Path(__file__).parents[2]
SECRET = "their-secret-0123456789"
PROVIDER = '''\
"""Answers every question with its own key, as a careless server may."""

from cotlab.core.requests import Complete, Response, Usage
from cotlab.providers.capabilities import Family, ProviderInfo, family_of, supported_params
from cotlab.providers.keys import key_for


class Theirs:
    answers = frozenset({Complete.kind})
    info = ProviderInfo(
        key_variable="THEIRS_API_KEY",
        hosts=("api.theirs.example",),
        price_family="mistral",
        families=(
            (r"plain", Family("plain", temperature=1.0, seed=False)),
            (r"", Family("new", None, headroom=9)),
        ),
    )

    def __init__(self, ref):
        self.ref, self._key = ref, key_for(ref.provider, ref.base_url)

    async def send(self, request):
        supported = supported_params(request, family_of(self.ref.provider, self.ref.name))
        text = f"The key is {self._key}. So the answer is 1."
        sent = {"not_sent": list(supported.not_sent)}
        return Response(request.key, text, usage=Usage(9, 9), finish="stop", sent=sent)

    async def close(self): ...
'''
BROKEN = "raise RuntimeError('no licence')\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder as pip would leave it: two modules and the metadata that names their providers."""
    folder = tmp_path / "site"
    info = folder / "cotlab_theirs-0.1.dist-info"
    info.mkdir(parents=True)
    (folder / "their_api.py").write_text(PROVIDER)
    (folder / "broken_api.py").write_text(BROKEN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cotlab-theirs\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(
        "[cotlab.providers]\ntheirs = their_api:Theirs\nbroken = broken_api:Broken\n"
    )
    return folder


@pytest.fixture
def installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package on this process's path, with the registry's entry points read anew."""
    monkeypatch.syspath_prepend(package)
    monkeypatch.setattr(PROVIDERS, "_outside", None)
    monkeypatch.delitem(sys.modules, "their_api", raising=False)
    monkeypatch.delenv("THEIRS_API_KEY", raising=False)
    return package


def cotlab(package: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    folder = package.parent
    env = {
        **{name: value for name, value in os.environ.items() if name != "THEIRS_API_KEY"},
        "PYTHONPATH": f"{package}{os.pathsep}{ROOT}",
        "COTLAB_STORE": str(folder / "store"),
        **variables,
    }
    return subprocess.run(
        [sys.executable, "-m", "cotlab", *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_a_provider_with_a_key_is_small() -> None:
    assert len(PROVIDER.splitlines()) <= 32


def test_its_key_is_read_protected_and_required(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = ModelRef("theirs", "plain-1")
    assert KEY_VARIABLES["theirs"] == "THEIRS_API_KEY" and "theirs" in set(KEY_VARIABLES)
    with pytest.raises(ConfigError, match=r"theirs needs a key: set THEIRS_API_KEY in .*\.env"):
        PROVIDERS["theirs"](ref)
    assert key_for("theirs", "http://127.0.0.1:8000") == PLACEHOLDER_KEY
    monkeypatch.setenv("THEIRS_API_KEY", SECRET)
    assert key_for("theirs", None) == key_for("theirs", "https://eu.api.theirs.example") == SECRET
    with pytest.raises(ConfigError, match="the host of theirs is api.theirs.example") as caught:
        key_for("theirs", "https://elsewhere.example")
    assert SECRET not in str(caught.value)
    monkeypatch.setenv(SEND_KEY_TO_VARIABLE, "elsewhere.example")
    assert key_for("theirs", "https://elsewhere.example") == SECRET
    assert mask_known_keys(f"key {SECRET}.") == "key ***."


def test_its_prices_are_those_of_its_family(installed: Path) -> None:
    price = price_of(ModelRef("theirs", "mistral-large-latest"))
    assert price.is_known and price.output_price > price.input_price > 0 and price.headroom == 9
    with pytest.raises(ConfigError, match="No price is known for theirs/gpt-4o-mini"):
        price_of(ModelRef("theirs", "gpt-4o-mini"))  # another vendor's model


def test_its_models_get_what_they_accept(installed: Path) -> None:
    asked = Complete(
        ModelRef("theirs", "plain-1"), (Message("user", "?"),), max_tokens=5, seed=3, temperature=1
    )
    plain = supported_params(asked, family_of("theirs", "plain-1"))
    assert (plain.temperature, plain.seed, plain.not_sent) == (1, None, ("seed",))
    new = supported_params(asked, family_of("theirs", "other"))
    assert (new.max_tokens, new.seed, new.not_sent) == (14, 3, ("temperature",))
    with pytest.raises(Unsupported, match="plain"):
        supported_params(
            Complete(asked.model, asked.messages, prefix="So"), family_of("theirs", "plain-1")
        )


BROKEN_CODE = {
    "ModuleNotFoundError: No module named 'no_such_module'": "import no_such_module",
    "ImportError: cannot import name 'NoSuchClass'": "from cotlab.core.types import NoSuchClass",
    "AttributeError: module 'os' has no attribute 'nothing'": "import os; os.nothing",
    "SyntaxError: ": "class",
    "NameError: name 'Broken' is not defined": "Broken()",
    "TypeError: ": "from cotlab.core.types import ModelRef; ModelRef()",
    "ValueError: key_variable 'nokey'": (
        "from cotlab.providers.capabilities import ProviderInfo; ProviderInfo('nokey')"
    ),
    "KeyError: 'NO_SUCH_VARIABLE'": "import os; os.environ['NO_SUCH_VARIABLE']",
    "FileNotFoundError: ": "open('/no/such/file')",
    "RuntimeError: no licence": "raise RuntimeError('no licence')",
    "AssertionError: ": "assert False",
    "ConfigError: no account": (
        "from cotlab.core.errors import ConfigError; raise ConfigError('no account')"
    ),
}


@pytest.mark.parametrize("failure", BROKEN_CODE)
def test_a_package_that_fails_hides_no_other_and_is_named_in_one_warning(
    failure: str, installed: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed / "broken_api.py").write_text(BROKEN_CODE[failure] + "\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    _declared_info.cache_clear()
    importlib.invalidate_caches()
    assert provider_info("broken") == provider_info("nobody") == ProviderInfo()
    assert set(KEY_VARIABLES) > {"openai", "theirs"} and "broken" not in KEY_VARIABLES
    (warning,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    start = "The package of the provider 'broken' (broken_api:Broken) cannot be imported: "
    if failure.startswith("ModuleNotFound"):
        failure = "MissingExtra: provider 'broken' needs the package 'no_such_module'"
    assert warning.startswith(start + failure)


def test_a_package_that_fails_says_why_when_it_is_opened(package: Path, installed: Path) -> None:
    with pytest.raises(RuntimeError, match="no licence"):
        PROVIDERS["broken"](ModelRef("broken", "x"))
    doctor = cotlab(package, "doctor")
    assert doctor.stderr.count("provider 'broken' (broken_api:Broken) cannot be imported") == 1
    assert "Traceback" not in doctor.stderr and "THEIRS_API_KEY" in doctor.stdout


@pytest.mark.parametrize("name", ["PATH", "their_key", "KEY", "HOME_KEY_X"])
def test_a_variable_that_holds_no_key_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="MISTRAL_API_KEY"):
        ProviderInfo(key_variable=name)


def test_what_is_shipped_is_read_without_its_packages() -> None:
    code = (
        "import sys; from cotlab.providers.keys import KEY_VARIABLES; print(len(KEY_VARIABLES));"
        "print([m for m in ('openai', 'anthropic', 'google.genai', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.stdout.split("\n")[:2] == ["4", "[]"], done.stdout + done.stderr


@pytest.mark.soak
def test_the_command_runs_it_with_a_key_from_a_file_of_the_folder(package: Path) -> None:
    folder = package.parent
    item = {"item_id": "a", "prompt": "How many?", "ground_truth": "1"}
    step = {"index": 0, "text": "One."}
    (folder / "suite.jsonl").write_text(json.dumps({**item, "reference_cot": [step]}) + "\n")
    run = ("run", "--task-suite", "suite.jsonl", "--provider", "theirs", "--run-id", "one")
    model = ("--model", "mistral-large-latest", "--scorer", "ablation", "--max-cost", "1")

    without = cotlab(package, *run, *model)
    assert without.returncode == 2 and "set THEIRS_API_KEY" in without.stderr

    (folder / ".env").write_text(f"THEIRS_API_KEY={SECRET}\n")
    assert "present  THEIRS_API_KEY" in cotlab(package, "doctor").stdout
    done = cotlab(package, *run, *model)
    assert done.returncode == 0, done.stdout + done.stderr
    stored = b"".join(p.read_bytes() for p in (folder / "store").rglob("*") if p.is_file())
    assert b"The key is ***." in stored and SECRET.encode() not in stored
