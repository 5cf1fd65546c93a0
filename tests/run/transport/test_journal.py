"""run.log: a line of JSON for each thing a run did, and no words of anybody where texts are
redacted."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.errors import ProviderError, RateLimited, Unavailable, Unsupported
from cotlab.core.requests import Response, Usage
from cotlab.run.transport.budget import Price
from cotlab.run.transport.context import LOG_FILE_NAME, Journal
from cotlab.run.transport.dispatcher import Dispatcher
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog
from tests.run.transport.test_dispatcher import LIMITS, REF, Server, ask_all, ask_for

ANY_TEXT = st.text(st.characters(exclude_categories=[]))  # line ends and lone surrogates too
FACTS = st.dictionaries(
    st.sampled_from(["requests", "batch", "pause_s"]),
    st.none() | st.integers() | ANY_TEXT,
    max_size=3,
)


def lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / LOG_FILE_NAME).read_bytes()
    assert text.endswith(b"\n") and text.isascii()
    return [json.loads(line) for line in text.splitlines()]


@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT, FACTS), min_size=1, max_size=4), st.booleans())
@settings(max_examples=30, deadline=None)
def test_each_event_is_one_object_on_a_line(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[str, str, dict[str, Any]]],
    redact: bool,
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    journal = Journal(folder, redact=redact)
    for event, words, facts in events:
        journal.note(event, error_text=words, **facts)
    journal.close()
    for told, (event, words, facts) in zip(lines(folder), events, strict=True):
        assert datetime.fromisoformat(told.pop("at")).utcoffset() is not None
        expected = {
            "event": event,
            **{name: value for name, value in facts.items() if value is not None},
        }
        assert told == expected | ({"words": words} if words and not redact else {})


@pytest.mark.parametrize("redact", [False, True])
async def test_a_run_tells_every_call_and_a_redacted_one_no_word(
    tmp_path: Path, redact: bool
) -> None:
    def outcome(n: int) -> ProviderError | Response:
        errors = (
            RateLimited("secret wait", 0.001),
            Unavailable("secret server"),
            None,
            Unsupported("secret reason"),
        )
        return errors[n] or Response("", "secret reply", usage=Usage(3, 2))

    log = ResponseLog(tmp_path / "log.sqlite", redact=redact)
    journal = Journal(tmp_path, redact=redact)
    prices = {REF: Price(Decimal(1), Decimal(1))}
    dispatcher = Dispatcher(
        "r", {REF: Server(outcome)}, prices, log, LIMITS, RunProgress(), journal
    )
    await ask_all(dispatcher, "secret question")
    await ask_all(dispatcher, "secret too")
    journal.close()
    log.close()
    told = lines(tmp_path)
    assert [(line["event"], line.get("outcome")) for line in told] == [
        ("no reply", "RateLimited"),
        ("429", None),
        ("no reply", "Unavailable"),
        ("reply", None),
        ("no reply", "Unsupported"),
        ("given up", None),
    ]
    keys = [ask_for(text).key for text in ("secret question", "secret too")]
    assert [line["key"] for line in told if "key" in line] == [keys[0]] * 3 + [keys[1]] * 2
    assert (told[3]["cost_micro"], told[3]["tokens_in"], told[3]["tokens_out"]) == (5, 3, 2)
    words = [line["words"] for line in told if "words" in line]
    assert words == (
        [] if redact else ["secret wait", "secret server", "secret reason", "secret reason"]
    )
    assert (b"secret" in (tmp_path / LOG_FILE_NAME).read_bytes()) is not redact
