"""Where a chain lies under a chat template: in the very text that is generated from, scored and
patched, or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from cotlab.core.errors import Unsupported
from cotlab.core.program import Params, Peers
from cotlab.core.requests import (
    PREFIX_INDEX,
    Complete,
    Failed,
    Locate,
    PatchRow,
    Request,
    Response,
    Source,
    Span,
)
from cotlab.core.types import ModelRef
from cotlab.metrics.mediation.interventions import ChainText
from cotlab.metrics.mediation.scorer import mediation
from cotlab.providers.local.provider import LocalModel, open_local
from cotlab.suites.wordproblems import make_suite
from tests.support.tiny_models import TEMPLATE, byte_tokenizer

SUITE = make_suite(4, seed=5)
ITEM = SUITE.items[0]
STEPS = [step.text for step in ITEM.steps]
TRIMMED = TEMPLATE.replace("{{ m.content }}", "{{ m.content | trim }}")
SPOILT = {
    "upper case": TEMPLATE.replace("{{ m.content }}", "{{ m.content | upper }}"),
    "cut short": TEMPLATE.replace("{{ m.content }}", "{{ m.content[9:] }}"),
    "said twice": TEMPLATE.replace("{{ m.content }}", "{{ m.content }}\n{{ m.content }}"),
    "left out": TEMPLATE.replace("{{ m.content }}", "…"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random chat model with room for a whole word problem."""
    place, tokenizer = tmp_path_factory.mktemp("chat"), byte_tokenizer()
    torch.manual_seed(1)
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=2048,
            initializer_range=0.2,
            bos_token_id=None,
            pad_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
        )
    ).save_pretrained(place)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(place)
    return place


def opened(folder: Path, template: str = TEMPLATE) -> LocalModel:
    model = open_local(ModelRef("local", str(folder)))
    model._loaded_model.tokenizer.chat_template = template
    return model


def params_of(model: LocalModel) -> Params:
    return Params({"subject": model.ref}, options=mediation.options)


def ask(model: LocalModel, request: Request) -> Response:
    (reply,) = model.send_batch([request])
    assert isinstance(reply, Response), reply
    return reply


def refused(model: LocalModel, request: Request) -> str:
    (reply,) = model.send_batch([request])
    assert isinstance(reply, Unsupported), reply
    return str(reply)


@pytest.mark.parametrize("template", [TEMPLATE, TRIMMED], ids=["plain", "trimmed"])
def test_the_chain_is_located_in_the_text_that_is_generated_scored_and_patched(
    folder: Path, template: str
) -> None:
    model = opened(folder, template)
    params, tokenizer = params_of(model), model._loaded_model.tokenizer
    text = ChainText.from_item(ITEM, STEPS, params)
    located = ask(model, text.locate_request(params)).located
    assert located is not None and model.ref.form == "chat"
    seen = f"<user>{text.messages[0].content}\n<assistant>{text.prefix}"
    assert "".join(located.pieces) == seen

    ids = tokenizer(seen, add_special_tokens=False)["input_ids"]
    chain, question, cue = located.positions
    wanted = (
        "".join(f"{step}\n" for step in STEPS),
        ITEM.question,
        text.prefix[text.chain_span.end :],
    )
    for at, words in zip((chain, question, cue), wanted, strict=True):
        assert tokenizer.decode([ids[i] for i in at], clean_up_tokenization_spaces=False) == words
        assert at == tuple(range(at[0], at[-1] + 1))
    assert question[-1] < chain[0] and chain[-1] + 1 == cue[0] and cue[-1] + 1 == len(ids)

    said = ask(model, replace(text.answer_request(params), max_tokens=1, top_logprobs=60))
    answer, likely = next(one for one in said.tokens[0].top if one[0].isascii() and one[0].strip())
    scored = ask(model, text.logprob_request(params, answer)).numbers
    clean, identity = PatchRow((), chain, chain), PatchRow((0, 1), chain, chain)
    patched = ask(
        model, text.patched_request(params, answer, Source("run"), [clean, identity])
    ).numbers
    assert said.usage.tokens_in == len(ids) and scored is not None and patched is not None
    assert tokenizer(seen + answer, add_special_tokens=False)["input_ids"][:-1] == ids
    assert [*scored, *patched] == pytest.approx([likely] * 3, abs=1e-4)


def test_a_part_of_a_trimmed_message_is_where_it_was_and_its_trimmed_ends_are_left_out(
    folder: Path,
) -> None:
    model = opened(folder, TRIMMED)
    content = "  the cat sat on the mat.  \n"
    text = ChainText.from_item(ITEM, STEPS, params_of(model))
    request = Locate(
        model.ref,
        (replace(text.messages[0], content=content),),
        (Span(0, 0, len(content)), Span(0, 6, 9)),
        prefix="so",
    )
    located = ask(model, request).located
    assert located is not None
    whole, word = ("".join(located.pieces[i] for i in at) for at in located.positions)
    assert (whole, word.strip()) == ("the cat sat on the mat.", "cat")


@pytest.mark.parametrize("spoilt", list(SPOILT))
def test_a_text_that_the_template_changes_is_undefined_and_says_why(
    folder: Path, spoilt: str
) -> None:
    model = opened(folder, SPOILT[spoilt])
    params = params_of(model)
    assert "cannot be located" in refused(
        model, ChainText.from_item(ITEM, STEPS, params).locate_request(params)
    )
    program = mediation(ITEM, params, Peers.from_suite(SUITE, 0))
    round_, scores = next(program), ()
    try:
        while True:
            round_ = program.send([_reply(model, request) for request in round_])
    except StopIteration as end:
        scores = end.value
    assert len(scores) > 10
    assert all(
        s.value is None and s.status == "undefined" and "cannot be located" in s.reason
        for s in scores
    )


def _reply(model: LocalModel, request: Request) -> Response | Failed:
    """The model's, but for an answer in words, which a random model has none of."""
    if isinstance(request, Complete):
        return Response(request.key, text=" 5.\n", finish="stop")
    (reply,) = model.send_batch([request])
    if isinstance(reply, Response):
        return reply
    return Failed(request.key, str(reply), 0, unsupported=isinstance(reply, Unsupported))


def test_a_token_that_reaches_over_the_end_is_refused(folder: Path) -> None:
    model = opened(folder)
    message = ChainText.from_item(ITEM, STEPS, params_of(model)).messages
    pieces = ask(
        model,
        Locate(model.ref, message, (Span(PREFIX_INDEX, 0, 23),), prefix="the cat sat on the mat."),
    ).located
    assert pieces is not None
    long = next(piece for piece in pieces.pieces[-9:] if len(piece.strip()) > 1)
    end = "the cat sat on the mat.".index(long.strip()) + 1
    assert "reaches over the end" in refused(
        model,
        Locate(model.ref, message, (Span(PREFIX_INDEX, 0, end),), prefix="the cat sat on the mat."),
    )
    assert "no token of its own" in refused(
        model, Locate(model.ref, message, (Span(PREFIX_INDEX, 3, 3),), prefix="the cat")
    )


def rows_refused(
    model: LocalModel, source: Source, rows: Sequence[PatchRow], answer: str = " 12"
) -> str:
    """What a patched request is refused with; a sound one beside it is answered."""
    text, params = ChainText.from_item(ITEM, STEPS, params_of(model)), params_of(model)
    bad = text.patched_request(params, answer, source, rows)
    good = text.patched_request(params, answer, Source("run"), [PatchRow((0,), (1,), (2,))])
    replies = model.send_batch([good, bad, good])
    assert [isinstance(reply, Response) and len(reply.numbers or ()) for reply in replies] == [
        1,
        False,
        1,
    ]
    assert isinstance(replies[1], Unsupported)
    return str(replies[1])


def test_positions_and_states_of_the_answer_are_barred(folder: Path) -> None:
    model = opened(folder)
    params = params_of(model)
    text = ChainText.from_item(ITEM, STEPS, params)
    back = ChainText.from_item(ITEM, STEPS[:1], params)
    n, short = (len(ask(model, t.locate_request(params)).located.pieces) for t in (text, back))  # type: ignore[union-attr]
    own, other = Source("run"), Source("run", back.messages, back.prefix)
    for at in (
        n,
        n + 1,
        n + 500,
        -1,
    ):  # the answer's first and second token, beyond it, and counted from its end
        assert "positions of the answer" in rows_refused(
            model, own, [PatchRow((0,), (0, 1), (0, 1)), PatchRow((0,), (5, at), (5, 6))]
        )
        assert "outside its source" in rows_refused(model, own, [PatchRow((0,), (5,), (at,))])
        assert "positions of the answer" in rows_refused(
            model, Source("noise", at=(1, 2, 3)), [PatchRow((0,), (at,))]
        )
        assert "positions of the answer" in rows_refused(
            model, Source("mean", at=(1, 2, 3)), [PatchRow((1,), (at,))]
        )
        assert "filler's positions" in rows_refused(
            model, Source("filler", at=(3, at)), [PatchRow((0,), (5,), (5,))]
        )
    assert "outside its source" in rows_refused(model, other, [PatchRow((0,), (5,), (short,))])
    assert "outside its source" in rows_refused(
        model, own, [PatchRow((0,), (5, 6), (5,))]
    )  # no state for one of them
    assert "do not have" in rows_refused(model, own, [PatchRow((2,), (5,), (5,))])
    for kind in ("noise", "mean"):
        for drawn in ((), (3, n), (-1,)):
            assert "draws on lie outside" in rows_refused(
                model, Source(kind, at=drawn), [PatchRow((0,), (5,))]
            )
    once, twice = (
        ask(model, text.patched_request(params, " 12", other, [PatchRow(span, (5,), (3,))]))
        for span in ((0, 1), (0, 1, 1))
    )
    assert (
        isinstance(once, Response) and isinstance(twice, Response) and once.numbers == twice.numbers
    )
    for source in (
        own,
        other,
    ):  # the last state before an answer may be taken, and the last position be patched
        last = (n if source is own else short) - 1
        assert isinstance(
            ask(
                model,
                text.patched_request(params, " 12", source, [PatchRow((0, 1), (n - 1,), (last,))]),
            ),
            Response,
        )


def test_a_source_ends_before_the_answer(folder: Path) -> None:
    """The run of a text gives the same states with any answer behind it, and alone."""
    model = opened(folder)
    params = params_of(model)
    text = ChainText.from_item(ITEM, STEPS, params)
    rows = [PatchRow((0,), (5, 6), (70, 80)), PatchRow((0, 1), (9,), (90,))]
    for answer in (" 12", " the cat", "."):
        numbers = [
            ask(model, text.patched_request(params, answer, source, rows)).numbers
            for source in (Source("run"), Source("run", text.messages, text.prefix))
        ]
        assert numbers[0] == pytest.approx(numbers[1], abs=1e-4)
