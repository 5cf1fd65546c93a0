"""An echoed prefix is cut from a reply; a server's error may be text alone."""

from __future__ import annotations

import pytest

from cotlab.core.errors import BadReply, Unavailable
from cotlab.core.requests import Complete, Message, Response, Token
from cotlab.core.types import ModelRef
from cotlab.providers.continuation import remove_echo
from cotlab.providers.openai_compat import OpenAICompat
from tests.support.loopback import Loopback

TOP = ((" 7", -0.5), (" 8", -1.5))


async def test_an_error_may_be_text_alone(server: Loopback) -> None:
    server.script(
        {"status": 500, "body": '{"error": "model not loaded"}'},
        {"status": 502, "body": "<html>no</html>"},
        {"status": 500, "body": '{"detail": "no\\u001b[2J \\u0007model"}'},
    )
    model = OpenAICompat(ModelRef("openai_compat", "m", base_url=server.base_url))
    asked = Complete(model.ref, (Message("user", "How many?"),))
    with pytest.raises(Unavailable, match="model not loaded"):
        await model.send(asked)
    with pytest.raises(Unavailable) as raised:
        await model.send(asked)
    assert "html" not in str(raised.value)
    with pytest.raises(Unavailable, match=r"no \[2J model$"):  # nothing that a terminal obeys
        await model.send(asked)
    await model.close()


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
