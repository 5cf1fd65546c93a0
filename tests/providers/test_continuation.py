"""Whether a server continues an assistant prefix: found out before the first one is sent; an echoed
one is cut."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.errors import BadReply, ProviderError, SelfTestFailed, Unavailable, Unsupported
from cotlab.core.provider import Finding
from cotlab.core.requests import Complete, Failed, Message, Reply, Response, Token
from cotlab.core.types import ModelRef
from cotlab.providers.continuation import check_continuation, remove_echo
from cotlab.providers.openai_compat import OpenAICompat
from tests.support.loopback import Loopback

CHAIN = "Step 1: 3 + 1 = 4.\nStep 2: 4 + 3 = 7.\nSo the answer is 7."
PREFIX = "Step 1: 9 + 9 = 18.\nSo the answer is"
ASKED = Complete(
    ModelRef("openai_compat", "m", form="prefill"), (Message("user", "How many?"),), prefix=PREFIX
)
TOP = ((" 7", -0.5), (" 8", -1.5))


def writer(prefix: str, text: str = CHAIN) -> dict[str, str]:
    return {"text": text, "prefix": prefix, "answer": " 7."}


async def checked(model: OpenAICompat) -> object:
    """Ask the model's server what the check asks; the verdict."""
    program = check_continuation(ASKED, 1)
    try:
        request = next(program)
        while True:
            try:
                reply: Reply = await model.send(request)
            except ProviderError as error:
                reply = Failed(request.key, str(error), 1, isinstance(error, Unsupported))
            request = program.send(reply)
    except StopIteration as end:
        model.use_findings({"prefix": Finding(end.value)})
        return end.value


async def reply_of(
    server: Loopback, script: Mapping[str, Any], then: Mapping[str, Any] | None = None
) -> tuple[object, Response]:
    """The verdict on a scripted server, and its reply to a prefix after that."""
    server.script(**script)
    model = OpenAICompat(ModelRef("openai_compat", "m", base_url=server.base_url, form="prefill"))
    try:
        verdict = await checked(model)
        if then is not None:
            server.script(then)
        return verdict, await model.send(ASKED)
    finally:
        await model.close()


@pytest.mark.parametrize(("prefix", "verdict"), [("continue", "continued"), ("echo", "echoed")])
async def test_a_reply_is_the_continuation_alone(
    server: Loopback, prefix: str, verdict: str
) -> None:
    told, reply = await reply_of(server, {"writer": writer(prefix)})
    assert (told, reply.text) == (verdict, " 7.")
    assert server.count() == 3


@pytest.mark.parametrize(
    ("prefix", "words"),
    [("new", "starts a new turn"), ("trim", "could not be established.*white space")],
)
async def test_a_server_that_does_not_continue_is_refused(
    server: Loopback, prefix: str, words: str
) -> None:
    with pytest.raises(SelfTestFailed, match=f"{words}.*--given user"):
        await reply_of(server, {"writer": writer(prefix)})


@pytest.mark.parametrize(
    "text",
    ["7.", "", "7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,", f"<think>{CHAIN}"],
)
@pytest.mark.parametrize(("prefix", "verdict"), [("continue", "unknown"), ("new", "unknown")])
async def test_a_reply_that_cannot_be_cut_proves_nothing(
    server: Loopback, text: str, prefix: str, verdict: str
) -> None:
    assert (await reply_of(server, {"writer": writer(prefix, text)}))[0] == verdict


async def test_an_echo_is_seen_also_where_the_models_own_reply_is_short(server: Loopback) -> None:
    verdict, reply = await reply_of(server, {"writer": writer("echo", "7.")})
    assert (verdict, reply.text) == ("echoed", " 7.")


async def test_a_model_that_repeats_the_prefix_itself_is_not_cut(server: Loopback) -> None:
    """A loop: a server that continues may write the prefix again, as text of the model."""
    verdict, reply = await reply_of(
        server, {"writer": writer("continue")}, {"text": f"{PREFIX} 7."}
    )
    assert (verdict, reply.text) == ("continued", f"{PREFIX} 7.")


@pytest.mark.parametrize(
    "detail", ["no continue_final_message", [{"loc": ["body"], "msg": "no continue_final_message"}]]
)
@pytest.mark.parametrize("text", [CHAIN, "7."])
async def test_a_server_that_rejects_prefixes_is_refused_with_its_reason(
    server: Loopback, detail: Any, text: str
) -> None:
    """Whether or not the model's own reply is long enough to be cut."""
    server.script({"text": text}, then={"status": 422, "body": json.dumps({"detail": detail})})
    model = OpenAICompat(ModelRef("openai_compat", "m", base_url=server.base_url, form="prefill"))
    with pytest.raises(
        SelfTestFailed,
        match="takes no assistant prefix.*422.*no continue_final_message.*--given user",
    ):
        await checked(model)
    await model.close()


async def test_an_error_may_be_text_alone(server: Loopback) -> None:
    server.script(
        {"status": 500, "body": '{"error": "model not loaded"}'},
        {"status": 502, "body": "<html>no</html>"},
        {"status": 500, "body": '{"detail": "no\\u001b[2J \\u0007model"}'},
    )
    model = OpenAICompat(ModelRef("openai_compat", "m", base_url=server.base_url))
    with pytest.raises(Unavailable, match="model not loaded"):
        await model.send(ASKED)
    with pytest.raises(Unavailable) as raised:
        await model.send(ASKED)
    assert "html" not in str(raised.value)
    with pytest.raises(Unavailable, match=r"no \[2J model$"):  # nothing that a terminal obeys
        await model.send(ASKED)
    await model.close()


@pytest.mark.parametrize("answered", [0, 1])
def test_without_a_reply_nothing_is_known(answered: int) -> None:
    program = check_continuation(ASKED, 1)
    request = next(program)
    if answered:
        request = program.send(Response(request.key, text=CHAIN))
    failed = Failed(request.key, "the server cannot be reached", 3)
    with pytest.raises(StopIteration) as end:
        program.send(failed)
    assert end.value.value is failed


def babble(seed: int, context: str, vocabulary: int) -> str:
    """The next word of a deterministic model: it follows from what stands before it."""
    draw = Random(f"{seed}/{context}")
    blank, end = draw.choice((" ", " ", " ", "\n")), draw.choice(("", ",", "."))
    return f"{blank}{draw.randrange(vocabulary)}{end}"


@given(
    st.integers(0, 10**9),
    st.sampled_from(["continue", "echo", "drop", "close"]),
    st.sampled_from([(0, 10**6), (1, 4), (3, 9)]),
)
def test_a_model_that_babbles_is_judged_by_its_server(
    seed: int, server: str, model: tuple[int, int]
) -> None:
    """``model``: how many of the last words a word follows from (0: all), and the vocabulary; small
    ones run in circles."""
    memory, vocabulary = model

    def said(request: Complete) -> str:
        end = " <end>" if server == "close" and request.prefix else ""
        given = "" if server == "drop" else request.prefix + end
        out = ""
        for _ in range(request.max_tokens):
            words = re.findall(r"\s*\S+", given + out)
            out += babble(seed, "".join(words[-memory:]), vocabulary)
        return request.prefix + out if server == "echo" else out

    program = check_continuation(ASKED, 1)
    try:
        request = next(program)
        while True:
            request = program.send(Response(request.key, text=said(request)))
    except StopIteration as end:
        verdict = end.value
    except SelfTestFailed as failed:
        verdict = str(failed)
    if server in ("continue", "echo"):
        assert verdict in {"continue": ("continued", "unknown"), "echo": ("echoed",)}[server]
    elif not memory:  # in circles a model may come to the same place from anywhere
        assert verdict == "unknown" or "--given user" in verdict
        assert server != "drop" or "starts a new turn" in verdict


def tokens(*words: str) -> tuple[Token, ...]:
    return tuple(Token(word, -0.5, TOP) for word in words)


@pytest.mark.parametrize(
    ("text", "listed", "rest", "left"),
    [
        (
            "So is 7.",
            (" 7", "."),
            " 7.",
            (" 7", "."),
        ),  # llama.cpp: the tokens are of the continuation alone
        ("So is 7.", ("So", " is", " 7", "."), " 7.", (" 7", ".")),
        ("So is 7.", ("So", " is 7", "."), " 7.", ()),  # one token holds both
        ("So is", ("So", " is"), "", ()),
        ("So isSo is 7", ("So", " is", " 7"), "So is 7", ("So", " is", " 7")),
        ("So is 7.", (), " 7.", ()),
    ],
)
def test_what_is_cut_is_the_prefix_and_its_tokens(
    text: str, listed: tuple[str, ...], rest: str, left: tuple[str, ...]
) -> None:
    reply = remove_echo("So is", Response("k", text=text, tokens=tokens(*listed)))
    assert reply.text == rest and tuple(token.text for token in reply.tokens) == left
    assert all(token.top == TOP for token in reply.tokens)


@pytest.mark.parametrize(
    ("prefix", "text", "rest"),
    [
        ("A.\n", "A.\nB.", "B."),
        ("A.\n", "A. B.", " B."),
        (" A.", "A. B.", " B."),
        ("\nA.\n", "A. B.", " B."),
        ("A. ", "A.  7", " 7"),
        ("A", "", ""),
    ],
)
def test_white_space_that_a_template_trims_is_no_part_of_the_echo(
    prefix: str, text: str, rest: str
) -> None:
    assert remove_echo(prefix, Response("k", text=text)).text == rest


def test_a_reply_of_a_server_that_echoes_begins_with_the_prefix() -> None:
    with pytest.raises(BadReply, match="not in this reply"):
        remove_echo("So is", Response("k", text=" 7."))
    refused = Response("k", text=None, refused=True)
    assert remove_echo("So is", refused) is refused
