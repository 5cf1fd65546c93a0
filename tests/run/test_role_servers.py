"""Roles with servers of their own: which address, key and price each has, and none of another's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import cotlab
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.types import ModelRef
from cotlab.run.config import read_config
from cotlab.run.resolved import ResolvedRun
from cotlab.run.secrets import load_secrets
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.jsonl import load_suite
from tests.support.loopback import Loopback, serving

pytestmark = pytest.mark.usefixtures("environment_as_it_was")

SUBJECT_KEY, VERIFIER_KEY = "key-of-the-subject-0001", "key-of-the-verifier-0002"
SUBJECT = {
    "provider": "openai_compat",
    "model": "m",
    "base_url": "https://subject.example.com/v1",
    "scorer": ["verification"],
}
VERIFIER_URL = "https://verifier.example.com/v1"


@pytest.fixture
def servers() -> Iterator[tuple[Loopback, Loopback]]:
    with serving() as subject, serving() as verifier:
        yield subject, verifier


def suite_of(folder: Path) -> Path:
    steps = ["Ann likes pens.", "So she buys pens.", "She is glad."]
    row = {
        "item_id": "a",
        "prompt": "How many pens has Ann?",
        "ground_truth": "12",
        "reference_cot": [{"index": i, "text": text} for i, text in enumerate(steps)],
    }
    path = folder / "suite.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    return path


def keys_at(server: Loopback) -> set[str]:
    return {call["headers"].get("authorization", "") for call in server.seen()}


def measure(folder: Path, subject: Loopback, **options: Any) -> Any:
    return cotlab.run_suite(
        str(suite_of(folder)),
        store=folder / "store",
        provider="openai_compat",
        model="m",
        base_url=subject.base_url,
        scorer=["verification"],
        max_requests_per_minute=100_000,
        **options,
    )


def test_each_role_is_asked_at_its_own_server_with_its_own_key(
    tmp_path: Path, servers: tuple[Loopback, Loopback], monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, verifier = servers
    for server in servers:
        server.script(then={"text": "0.9"}, prices={"in": "2", "out": "3"})
    monkeypatch.setenv("OPENAI_COMPAT_API_KEY", SUBJECT_KEY)
    monkeypatch.setenv("VERIFIER_API_KEY", VERIFIER_KEY)
    run = measure(
        tmp_path,
        subject,
        verifier="openai_compat/v",
        role={
            "verifier.base_url": verifier.base_url,
            "verifier.key_variable": "VERIFIER_API_KEY",
            "verifier.price": "2/3",
        },
    )
    assert run.status == "done" and verifier.count() > 0
    assert keys_at(verifier) == {f"Bearer {VERIFIER_KEY}"}
    assert keys_at(subject) <= {f"Bearer {SUBJECT_KEY}"}
    assert {call["body"]["model"] for call in verifier.seen()} == {"v"}
    # Both servers bill; only the verifier's price was named, and its model cost what it billed.
    assert read.get_run(Store(tmp_path / "store"), run.run_id)["spent_micro"] == verifier.spend()


def test_the_key_of_the_subject_s_server_does_not_go_to_another_s(
    tmp_path: Path, servers: tuple[Loopback, Loopback], monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, verifier = servers
    for server in servers:
        server.script(then={"text": "0.9"})
    monkeypatch.setenv("OPENAI_COMPAT_API_KEY", SUBJECT_KEY)
    run = measure(
        tmp_path,
        subject,
        verifier="openai_compat/v",
        role_base_url={"verifier": verifier.base_url},
    )
    assert run.status == "done" and verifier.count() > 0
    assert keys_at(verifier) == {"Bearer none"}


def test_no_role_uses_or_needs_the_address_of_another() -> None:
    models = ResolvedRun(read_config({**SUBJECT, "verifier": "openai/gpt-4.1"})).models
    assert models["subject"].base_url == SUBJECT["base_url"]
    assert models["verifier"] == ModelRef("openai", "gpt-4.1")
    with pytest.raises(ConfigError, match="--role verifier.base_url=http"):
        assert ResolvedRun(read_config({**SUBJECT, "verifier": "openai_compat/v"})).models
    models = ResolvedRun(
        read_config(
            {
                "scorer": ["verification"],
                "verifier": "openai_compat/v",
                "role_base_url": {"verifier": VERIFIER_URL},
            }
        )
    ).models
    assert (models["subject"].base_url, models["verifier"].base_url) == (None, VERIFIER_URL)
    with pytest.raises(ConfigError, match="the verifier is the subject"):
        assert ResolvedRun(
            read_config(
                {**SUBJECT, "verifier": "subject", "role_base_url": {"verifier": VERIFIER_URL}}
            )
        ).models


def test_judges_have_addresses_of_their_own() -> None:
    models = ResolvedRun(
        read_config(
            {
                "scorer": ["judge"],
                "judge": ["openai_compat/j", "anthropic/claude-opus-4-1", "openai_compat/j"],
                "role_base_url": {"judge": "http://127.0.0.1:1/v1", "judge_3": VERIFIER_URL},
            }
        )
    ).models
    assert {role: ref.base_url for role, ref in models.items()} == {
        "subject": "http://127.0.0.1:1/v1",
        "judge": "http://127.0.0.1:1/v1",
        "judge_2": None,
        "judge_3": VERIFIER_URL,
    }


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"role_base_url": {"verifyer": "http://a"}}, UnknownName, "'verifier'"),
        ({"role_base_url": {"subject": "http://a"}}, ConfigError, "is no option"),
        ({"role_key_variable": {"judge": "PATH"}}, ConfigError, "role: judge.key_variable=PATH"),
        ({"role_price": {"subject": "1"}}, ConfigError, "role: subject.price=1"),
        ({"role_price": {"subject": "1/-1"}}, ConfigError, "role: subject.price=1/-1"),
        ({"role_price": {"subject": "1/nan"}}, ConfigError, "role: subject.price=1/nan"),
    ],
)
def test_what_is_no_role_variable_or_price_is_refused(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        config = read_config({**SUBJECT, **options})
        ResolvedRun(config).plan(load_suite(suite_of(tmp_path)))


def test_a_price_belongs_to_its_role() -> None:
    config = read_config(
        {
            **SUBJECT,
            "verifier": "openai_compat/m",
            "role_base_url": {"verifier": VERIFIER_URL},
            "role_price": {"subject": "0.5/1.5", "verifier": "2/3"},
        }
    )
    prices = {
        role: ResolvedRun(config).price_of(ref) for role, ref in ResolvedRun(config).models.items()
    }
    assert prices["subject"].output_price == Decimal("1.5")
    assert prices["verifier"].output_price == 3


def test_one_model_at_one_address_has_one_key() -> None:
    config = read_config(
        {
            **SUBJECT,
            "verifier": "openai_compat/m",
            "role_base_url": {"verifier": SUBJECT["base_url"]},
            "role_key_variable": {"verifier": "VERIFIER_API_KEY"},
        }
    )
    with pytest.raises(ConfigError, match="the subject and the verifier at one address"):
        ResolvedRun(config).server_of(ResolvedRun(config).models["verifier"])


# Who names the server and the variable


def opened(options: dict[str, Any], file: Path | None = None) -> None:
    config = read_config({**SUBJECT, "verifier": "openai_compat/v", **options}, file)
    run = ResolvedRun(config)
    run.open_provider(run.models["verifier"])


def test_a_file_chooses_neither_the_key_nor_its_destination(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERIFIER_API_KEY", VERIFIER_KEY)
    address = {"role_base_url": {"verifier": VERIFIER_URL}}
    variable = {"role_key_variable": {"verifier": "VERIFIER_API_KEY"}}
    opened({**address, **variable})
    file = tmp_path / "run.yaml"
    file.write_text(json.dumps(address))
    with pytest.raises(ConfigError, match=r"run\.yaml .*--role verifier.base_url=https://verifier"):
        opened(variable, file)
    opened({**address, **variable}, file)
    file.write_text(json.dumps(variable))
    with pytest.raises(
        ConfigError, match=r"run\.yaml names that variable.*verifier.key_variable=VERIFIER_API_KEY"
    ):
        opened(address, file)
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY is not sent to verifier\.example\.com"):
        monkeypatch.setenv("OPENAI_API_KEY", SUBJECT_KEY)
        opened({**address, "role_key_variable": {"verifier": "OPENAI_API_KEY"}})


def test_a_variable_that_is_named_has_to_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {
        "role_base_url": {"verifier": "http://127.0.0.1:9/v1"},
        "role_key_variable": {"verifier": "VERIFIER_API_KEY"},
    }
    with pytest.raises(ConfigError, match="VERIFIER_API_KEY is not set"):
        opened(options)
    (tmp_path / ".env").write_text(f"VERIFIER_API_KEY={VERIFIER_KEY}\nOTHER_TOKEN=x\n")
    load_secrets(tmp_path)
    assert "VERIFIER_API_KEY" not in os.environ  # a file's key is read once the user names it
    opened(options)
    assert os.environ["VERIFIER_API_KEY"] == VERIFIER_KEY and "OTHER_TOKEN" not in os.environ
