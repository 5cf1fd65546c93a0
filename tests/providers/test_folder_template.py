"""Raw text by the chat template of a tokenizer's folder: what a server is sent, what it has to
count, and that nothing of the folder is executed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from cotlab.core.errors import ConfigError, Unsupported
from cotlab.core.requests import Complete, Message, Response
from cotlab.core.resources import ORGANISMS_FOLDER
from cotlab.core.types import ModelRef
from cotlab.providers.local.folder_template import FolderTemplate
from cotlab.providers.local.provider import open_organism
from cotlab.providers.openai_compat import OpenAICompat
from tests.support.loopback import Loopback
from tests.support.served_organism import serving_llama_cpp

QUESTION = "Ann has 3 pens. She buys 4 more. How many pens does she have now?"
TEMPLATE = "{% for m in messages %}{{ 'Q: ' + m.content + '\n' }}{% endfor %}"
"""As an organism reads a question."""
INSTRUCTED = TEMPLATE.replace("m.content", "m.content.split('\\n\\n')[0]")
"""The same without the instructions below the question, as the served organism has it."""
WORDS = ("<s>", "<unk>", "<|user|>", "<|assistant|>", "How", "many", "?", "So", "7", ".")


def organism_folder(folder: Path, template: str = TEMPLATE) -> Path:
    """The tokenizer of an organism, with a chat template."""
    folder.mkdir(exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(ORGANISMS_FOLDER / "faithful-a" / name, folder)
    (folder / "chat_template.jinja").write_text(template)
    return folder


def chat_folder(folder: Path, *, adds_first_token: bool, template: str = "") -> Path:
    """A tokenizer that may add its first token, with a template that writes it."""
    tokenizer = Tokenizer(WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    if adds_first_token:
        tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        unk_token="<unk>",
        additional_special_tokens=["<|user|>", "<|assistant|>"],
    )
    fast.chat_template = template or (
        "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    fast.save_pretrained(folder)
    return folder


def asked(**fields: Any) -> Complete:
    ref = ModelRef("openai_compat", "m", endpoint="completions", form="prefill")
    return Complete(ref, (Message("user", "How many?"),), **fields)


def opened(server: Loopback, folder: Path) -> OpenAICompat:
    ref = replace(asked().model, base_url=server.base_url)
    return OpenAICompat(ref, template_folder=str(folder))


@pytest.mark.parametrize("adds_first_token", [True, False])
async def test_the_first_token_stands_in_the_text_where_no_tokenizer_adds_it(
    adds_first_token: bool, tmp_path: Path
) -> None:
    folder = chat_folder(tmp_path / "t", adds_first_token=adds_first_token)
    prompt = await FolderTemplate(str(folder)).prompt(asked(prefix="So 7"))
    first = "" if adds_first_token else "<s>"
    assert prompt.text == f"{first}<|user|>How many?<|assistant|>So 7"
    assert not prompt.has_special_tokens
    assert prompt.n_tokens == 8  # <s> <|user|> How many ? <|assistant|> So 7


async def test_a_server_that_counts_other_tokens_gives_no_reply(
    server: Loopback, tmp_path: Path
) -> None:
    model = opened(server, chat_folder(tmp_path / "t", adds_first_token=True))
    server.script(then={"text": " 7.", "usage": {"in": 8, "out": 2}})
    reply = await model.send(asked(prefix="So 7"))
    assert reply.text == " 7." and server.seen()[0]["path"] == "/v1/completions"
    assert len(server.seen()) == 1  # no template of the server is asked for
    for counted in (9, 7):  # a second first token, or another tokenizer
        server.script(then={"text": " 7.", "usage": {"in": counted, "out": 2}})
        with pytest.raises(Unsupported, match=f"counted {counted} tokens of a prompt that has 8"):
            await model.send(asked(prefix="So 7"))
    server.script({"body": json.dumps({"choices": [{"text": " 7.", "finish_reason": "stop"}]})})
    assert (await model.send(asked(prefix="So 7"))).text == " 7."  # it counts none
    await model.close()


def test_the_folder_is_the_revision_of_the_model(server: Loopback, tmp_path: Path) -> None:
    one, same = (organism_folder(tmp_path / name) for name in ("one", "same"))
    other = organism_folder(tmp_path / "other", TEMPLATE + " ")
    refs = [opened(server, folder).ref for folder in (one, same, other)]
    assert refs[0] == refs[1] != refs[2] and str(refs[0].revision).startswith("template ")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('only one turn') }}", "does not take these turns: only one turn"),
        ("{{ ''.__class__.__mro__ }}", "does not take these turns.*unsafe"),
        ("{% for", "does not take these turns"),
        ("Q<think>\n", "begins its turn with hidden reasoning"),
    ],
)
async def test_a_template_that_fails_or_breaks_out_gives_no_text(
    template: str, message: str, tmp_path: Path
) -> None:
    opened_template = FolderTemplate(str(organism_folder(tmp_path / "t", template)))
    with pytest.raises(Unsupported, match=message):
        await opened_template.prompt(asked(prefix="So"))


def test_code_in_the_folder_is_not_executed(tmp_path: Path) -> None:
    folder, mark = organism_folder(tmp_path / "t"), tmp_path / "executed"
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass T: pass\n")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config |= {"tokenizer_class": "T", "auto_map": {"AutoTokenizer": ["own.T", "own.T"]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="its tokenizer cannot be loaded"):
        FolderTemplate(str(folder))
    assert not mark.exists()


def test_what_is_no_tokenizer_with_a_template_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        FolderTemplate(str(tmp_path / "none-there"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="its tokenizer cannot be loaded"):
        FolderTemplate(str(tmp_path / "empty"))
    folder = organism_folder(tmp_path / "t")
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ConfigError, match="has no chat template.*subject.chat_template=none"):
        FolderTemplate(str(folder))


def test_without_the_library_the_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['transformers'] = None\n"
        "from cotlab.core.types import ModelRef\n"
        "from cotlab.providers.openai_compat import OpenAICompat\n"
        "ref = ModelRef('openai_compat', 'm', base_url='http://127.0.0.1:1/v1')\n"
        f"OpenAICompat(ref, template_folder={str(tmp_path)!r})\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "subject.chat_template=FOLDER needs" in ended.stderr and "[local]" in ended.stderr


@pytest.fixture(scope="module")
def llama_cpp() -> Iterator[str]:
    with serving_llama_cpp("faithful-a", "--no-template") as address:
        yield f"{address}/v1"


async def test_a_server_without_a_template_continues_as_the_model_does_in_this_process(
    llama_cpp: str, tmp_path: Path
) -> None:
    local = open_organism(ModelRef("organism", "faithful-a"))
    ref = replace(asked().model, base_url=llama_cpp)
    served = OpenAICompat(ref, template_folder=str(organism_folder(tmp_path / "t")))
    for prefix in ("", "Step 1: 3 + 4 = 7.\n", "Step 1: 3 + 4 = 7.\nSo the answer is"):
        request = Complete(
            local.ref, (Message("user", QUESTION),), prefix=prefix, max_tokens=40, top_logprobs=5
        )
        (here,) = local.send_batch([request])
        there = await served.send(replace(request, model=served.ref))
        assert isinstance(here, Response) and here.text == there.text
        for one, other in zip(here.tokens, there.tokens, strict=False):
            assert one.text == other.text and abs(one.logprob - other.logprob) < 1e-3
    await served.close()
