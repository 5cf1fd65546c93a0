"""Models in this process: the same numbers in any batch, the same text as the library's own loop,
and clear refusals."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cotlab.core.errors import ConfigError, UnknownName, Unsupported
from cotlab.core.provider import InProcessProvider
from cotlab.core.requests import Complete, Embed, Locate, LogProb, Message, Request, Response, Span
from cotlab.core.types import ModelRef
from cotlab.organisms.train import make_tokenizer
from cotlab.providers.local.load import max_positions
from cotlab.providers.local.provider import LocalModel, open_local, open_organism
from cotlab.suites.jsonl import load_suite
from cotlab.suites.shipped import find_suite
from cotlab.text.prompts.chain import answer_prompt, continuation_prompt
from tests.support.tiny_models import TEMPLATE, TEXTS, byte_tokenizer, metaspace_tokenizer, save

TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    chat = byte_tokenizer()
    chat.chat_template = TEMPLATE
    return {
        "gpt2": save(root / "gpt2", byte_tokenizer(), "gpt2"),
        "llama": save(root / "llama", metaspace_tokenizer(), "llama"),
        "chat": save(root / "chat", chat, "llama"),
        "language": save(root / "language", make_tokenizer(), "llama"),
    }


@pytest.fixture(scope="module")
def opened(folders: dict[str, Path]) -> dict[str, LocalModel]:
    found = {name: open_local(ModelRef("local", str(folder))) for name, folder in folders.items()}
    return {**found, "faithful-a": open_organism(ModelRef("organism", "faithful-a"))}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


NAMES = ("gpt2", "llama", "chat", "language", "faithful-a")


@pytest.fixture(params=NAMES)
def model(request: pytest.FixtureRequest, opened: dict[str, LocalModel]) -> LocalModel:
    return opened[request.param]


def speaks_english(model: LocalModel) -> bool:
    return model._loaded_model.tokenizer.convert_tokens_to_ids("<pad>") in (
        None,
        model._loaded_model.tokenizer.unk_token_id,
    )


def questions(model: LocalModel) -> list[Complete]:
    """Requests of different lengths that this model's vocabulary covers."""
    if speaks_english(model):
        prompts = [
            ((Message("user", text[:n]),), "the ") for text in TEXTS[:3] for n in (5, 11, 16)
        ]
    else:
        items = load_suite(find_suite("wordproblems")).items[:4]
        built = [
            f(i.question, tuple(s.text for s in i.steps[:k]), "continuation")
            for i in items
            for f, k in ((answer_prompt, 9), (continuation_prompt, 1))
        ]
        prompts = [(prompt.messages, prompt.prefix) for prompt in built]
    return [
        Complete(model.ref, messages, prefix=prefix, max_tokens=12, top_logprobs=4)
        for messages, prefix in prompts
    ]


def ask(model: LocalModel, requests: Sequence[Request]) -> list[Response]:
    replies = model.send_batch(requests)
    assert not [reply for reply in replies if not isinstance(reply, Response)]
    return [reply for reply in replies if isinstance(reply, Response)]


def assert_close(one: Response, other: Response) -> None:
    """Equal but for the last digits of log-probabilities."""
    assert (one.key, one.text, one.finish, one.usage) == (
        other.key,
        other.text,
        other.finish,
        other.usage,
    )
    assert [t.text for t in one.tokens] == [t.text for t in other.tokens]
    for a, b in zip(one.tokens, other.tokens, strict=True):
        assert a.logprob == pytest.approx(b.logprob, abs=TOLERANCE)
        assert [p for _, p in a.top] == pytest.approx([p for _, p in b.top], abs=TOLERANCE)


def test_a_local_model_is_a_batch_provider(model: LocalModel) -> None:
    assert isinstance(model, InProcessProvider)
    assert model.ref.revision and model.ref.form == (
        "chat" if model._loaded_model.has_chat_template else "continuation"
    )


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_batch_gives_what_one_by_one_gives(model: LocalModel, temperature: float) -> None:
    asked = [replace(request, temperature=temperature) for request in questions(model)]
    together = ask(model, asked)
    for request, reply in zip(asked, together, strict=True):
        assert_close(reply, ask(model, [request])[0])
    for request, reply in zip(asked, reversed(ask(model, asked[::-1])), strict=True):
        assert reply.key == request.key


def test_greedy_text_is_that_of_the_library(model: LocalModel) -> None:
    network, tokenizer = model._loaded_model.model, model._loaded_model.tokenizer
    for request, reply in zip(asked := questions(model), ask(model, asked), strict=True):
        text = rendered(model, request)
        ids = tokenizer(
            text, return_tensors="pt", add_special_tokens=not model._loaded_model.has_chat_template
        )["input_ids"]
        made = network.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=12,
            do_sample=False,
            pad_token_id=tokenizer.eos_token_id,
        )[0, ids.shape[1] :].tolist()
        stopped = tokenizer.eos_token_id in made
        made = made[: made.index(tokenizer.eos_token_id)] if stopped else made
        assert reply.usage.tokens_out == len(made) and reply.usage.tokens_in == ids.shape[1]
        assert reply.finish == ("stop" if stopped else "length")
        before = tokenizer.decode(ids[0], clean_up_tokenization_spaces=False)
        whole = tokenizer.decode([*ids[0].tolist(), *made], clean_up_tokenization_spaces=False)
        assert whole == before + reply.text


def rendered(model: LocalModel, request: Complete | LogProb) -> str:
    """The text that the model should see, spelt out a second time."""
    question = request.messages[0].content
    return (
        f"<user>{question}\n<assistant>{request.prefix}"
        if model.ref.form == "chat"
        else f"Q: {question}\n{request.prefix}"
    )


def test_tokens_are_the_text_and_their_logprobs_are_the_models(model: LocalModel) -> None:
    for request, reply in zip(asked := questions(model), ask(model, asked), strict=True):
        joined = "".join(token.text for token in reply.tokens)
        assert joined == reply.text or "\ufffd" in joined  # a token may hold part of a character
        for token in reply.tokens:
            assert token.top[0] == (token.text, token.logprob)  # greedy: the likeliest
            assert [p for _, p in token.top] == sorted((p for _, p in token.top), reverse=True)
        if reply.text and "\ufffd" not in reply.text:
            (first,) = ask(
                model,
                [
                    LogProb(
                        model.ref, request.messages, (reply.tokens[0].text,), prefix=request.prefix
                    )
                ],
            )
            if naive(model, request, reply.tokens[0].text)[1] == 1:
                assert first.numbers == pytest.approx([reply.tokens[0].logprob], abs=TOLERANCE)


@torch.inference_mode()
def naive(model: LocalModel, request: Complete | LogProb, answer: str) -> tuple[float, int]:
    """Log-probability of ``answer`` by one whole forward of its own, and its number of tokens."""
    tokenizer, special = model._loaded_model.tokenizer, not model._loaded_model.has_chat_template
    text = rendered(model, request)
    coded = tokenizer(text + answer, add_special_tokens=special, return_offsets_mapping=True)
    ids = coded["input_ids"]
    n = sum(end > len(text) for _, end in coded["offset_mapping"])
    logp = model._loaded_model.model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(float(logp[i - 1, ids[i]]) for i in range(len(ids) - n, len(ids))), n


def test_the_logprob_of_an_answer_is_that_of_a_naive_forward(model: LocalModel) -> None:
    answers = (
        (" the", "t", " mat. So it is", ".")
        if speaks_english(model)
        else (" 1", " 7", " 1.\n", ".")
    )
    asked = [
        LogProb(model.ref, request.messages, answers[: 1 + k % 4], prefix=request.prefix)
        for k, request in enumerate(questions(model))
    ]
    for request, reply in zip(asked, ask(model, asked), strict=True):
        assert reply.numbers == pytest.approx(
            [naive(model, request, answer)[0] for answer in request.answers], abs=TOLERANCE
        )
        assert reply.text is None


def test_a_draw_depends_on_its_request_alone(opened: dict[str, LocalModel]) -> None:
    model = opened["gpt2"]
    asked = [replace(request, temperature=1.0) for request in questions(model)]
    alone = ask(model, asked[:1])[0]
    assert ask(model, asked)[0].text == alone.text
    torch.manual_seed(99)  # nobody's generator matters
    assert ask(model, [*asked[4:], asked[0]])[-1].text == alone.text
    others = {reply.text for reply in ask(model, [replace(asked[0], sample=k) for k in range(8)])}
    assert len(others) > 4
    assert ask(model, [replace(asked[0], seed=5)])[0].text != alone.text


def test_draws_follow_the_models_distribution(opened: dict[str, LocalModel]) -> None:
    model = opened["llama"]
    one = replace(questions(model)[0], max_tokens=1, top_logprobs=0, temperature=1.0)
    listed = replace(one, temperature=0.0, top_logprobs=3)
    top = ask(model, [listed])[0].tokens[0].top
    n = 400
    drawn = [reply.text for reply in ask(model, [replace(one, sample=k) for k in range(n)])]
    for text, logprob in top:
        p = float(torch.tensor(logprob).exp())
        assert (
            abs(drawn.count(text) - n * p) <= 5 * (n * p * (1 - p)) ** 0.5 + 1
        )  # five standard errors


@pytest.mark.parametrize("name", NAMES)
def test_generation_ends_at_a_stop_text(opened: dict[str, LocalModel], name: str) -> None:
    model = opened[name]
    for request, whole in zip(asked := questions(model), ask(model, asked), strict=True):
        text = whole.text or ""
        for stop in {text[k : k + n] for k, n in ((1, 1), (2, 3), (0, 30)) if len(text) > k + 1}:
            (reply,) = ask(model, [replace(request, stop=(stop, "never in it"))])
            assert reply.text == text[: text.index(stop)]
            assert reply.finish == "stop"
            assert (reply.usage.tokens_out or 0) <= (whole.usage.tokens_out or 0)
        (reply,) = ask(model, [replace(request, stop=("never in it",))])
        assert reply.text == text


def test_a_word_outside_the_vocabulary_is_named(opened: dict[str, LocalModel]) -> None:
    model = opened["faithful-a"]
    good = questions(model)[0]
    strange = replace(good, messages=(Message("user", "How many zeppelins has Mia now?"),))
    replies = model.send_batch(
        [strange, good, LogProb(model.ref, good.messages, (" quux",), prefix=good.prefix)]
    )
    assert isinstance(replies[1], Response)
    assert isinstance(replies[0], Unsupported) and "zeppelins" in str(replies[0])
    assert isinstance(replies[2], Unsupported) and "quux" in str(replies[2])


def test_what_cannot_be_answered_is_unsupported(opened: dict[str, LocalModel]) -> None:
    model = opened["gpt2"]
    request = questions(model)[0]
    long = replace(request, prefix="x ! " * 96)
    empty = LogProb(model.ref, request.messages, ("a", ""))
    for asked, why in (
        (long, "takes fewer than 96"),
        (empty, "empty"),
        (Embed(model.ref, ("a",)), "'embed'"),
    ):
        (reply,) = model.send_batch([asked])
        assert isinstance(reply, Unsupported) and why in str(reply)


def test_a_reply_ends_where_the_model_has_no_more_room(opened: dict[str, LocalModel]) -> None:
    model = opened["gpt2"]
    request = replace(questions(model)[0], prefix="!?" * 40, max_tokens=500)
    (reply,) = ask(model, [request])
    assert reply.usage.tokens_in is not None and reply.usage.tokens_out is not None
    assert (
        reply.finish in ("length", "stop") and reply.usage.tokens_in + reply.usage.tokens_out <= 96
    )


def test_turns_that_a_template_refuses_are_unsupported(opened: dict[str, LocalModel]) -> None:
    (reply,) = opened["chat"].send_batch([replace(questions(opened["chat"])[0], system="be brief")])
    assert isinstance(reply, Unsupported) and "no system turns" in str(reply)


def test_a_tokenizer_that_ends_every_text_does_not_end_the_prompt(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    from tokenizers.processors import TemplateProcessing

    shutil.copytree(folders["gpt2"], tmp_path / "m")
    tokenizer = byte_tokenizer()
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        "$A <end>", special_tokens=[("<end>", 0)]
    )
    tokenizer.save_pretrained(tmp_path / "m")
    ends = open_local(ModelRef("local", str(tmp_path / "m")))
    plain = open_local(ModelRef("local", str(folders["gpt2"])))
    request = questions(plain)[0]
    scored = LogProb(plain.ref, request.messages, (" the", "cat"), prefix=request.prefix)
    assert ask(ends, [request])[0].text == ask(plain, [request])[0].text
    assert ask(ends, [scored])[0].numbers == ask(plain, [scored])[0].numbers


def test_without_character_offsets_text_is_written_and_what_needs_them_is_refused(
    tmp_path: Path,
) -> None:
    from transformers import ByT5Tokenizer

    model = open_local(ModelRef("local", str(save(tmp_path / "m", ByT5Tokenizer(), "llama"))))
    message = (Message("user", "the cat"),)
    requests = [
        Complete(model.ref, message, max_tokens=3),
        LogProb(model.ref, message, (" sat",)),
        LogProb(model.ref, message, (" sat",), top_logprobs=5),
        Locate(model.ref, message, (Span(0, 0, 3),)),
    ]
    written, *refused = model.send_batch(requests)
    assert isinstance(written, Response) and written.usage.tokens_out
    assert all(
        isinstance(reply, Unsupported) and "gives no character offsets" in str(reply)
        for reply in refused
    )


@pytest.mark.parametrize("told", [-1, 0])
def test_a_model_that_tells_no_longest_text_takes_any(
    opened: dict[str, LocalModel], told: int
) -> None:
    config = opened["gpt2"]._loaded_model.model.config
    own = config.n_positions
    config.n_positions = told
    try:
        assert max_positions(opened["gpt2"]._loaded_model.model) == 1 << 20
    finally:
        config.n_positions = own


@pytest.mark.parametrize(
    "name",
    ["/no/such/folder", "./nowhere", "~/nowhere-at-all", "no-such-owner/no-such-model", "", "a b"],
)
def test_a_model_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be loaded|not a Hugging Face model folder"):
        open_local(ModelRef("local", name))


def test_a_broken_weight_file_is_told(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["gpt2"], tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00garbage")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        open_local(ModelRef("local", str(tmp_path / "m")))


def test_an_unknown_organism_is_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'faithful-a'"):
        open_organism(ModelRef("organism", "faithful-aa"))


def test_the_revision_names_the_weights(folders: dict[str, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folders["gpt2"], copy)
    first = open_local(ModelRef("local", str(folders["gpt2"]))).ref.revision
    assert open_local(ModelRef("local", str(copy))).ref.revision == first
    weights = load_file(copy / "model.safetensors")
    name = next(iter(weights))
    weights[name] = weights[name] + 1e-3
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    second = open_local(ModelRef("local", str(copy))).ref.revision
    assert second != first
    (copy / "generation_config.json").write_text('{"eos_token_id": 5}')
    assert open_local(ModelRef("local", str(copy))).ref.revision not in (first, second)


@pytest.mark.parametrize("change", ["missing", "shape"])
def test_a_folder_without_all_weights_is_refused(change: str, tmp_path: Path) -> None:
    """The library makes up what is missing: numbers of such a model would say nothing."""
    folder = save(tmp_path, byte_tokenizer(), "llama")
    weights = load_file(folder / "model.safetensors")
    name = "model.layers.1.mlp.down_proj.weight"
    changed = weights.pop(name)
    if change == "shape":
        weights[name] = changed[:, :-1].contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match="missing or of another shape") as refused:
        open_local(ModelRef("local", str(folder)))
    assert "down_proj" in str(refused.value)
