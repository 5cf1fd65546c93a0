"""Model folders of any kind: numbers as in one pass, or one message; nothing in them runs."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as library
from safetensors.torch import load_file, save_file

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Complete, LogProb, Message, Response
from cotlab.core.types import ModelRef
from cotlab.providers.local.embedder import open_embedder
from cotlab.providers.local.nli import open_nli
from cotlab.providers.local.process_reward import open_process_reward
from cotlab.providers.local.provider import open_local
from tests.support.tiny_models import byte_tokenizer, save, save_process_reward

PROMPTS = ("the cat", "So the answer is 12. the cat sat on the mat. Q: how many?")
ANSWERS = (" the mat.", " 12")
_STATE: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2}
_BLOCKS: dict[str, Any] = {**_STATE, "num_attention_heads": 2, "intermediate_size": 32}
_WIDE = {"initializer_range": 0.3}


def save_kind(folder: Path, model_name: str, config_name: str, **config: Any) -> str:
    tokenizer = byte_tokenizer()
    torch.manual_seed(1)
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 0}
    settings = getattr(library, config_name)(vocab_size=len(tokenizer), **ids, **config)
    getattr(library, model_name)(settings).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize(
    ("model_name", "config_name", "config"),
    [
        ("MambaForCausalLM", "MambaConfig", {**_STATE, **_WIDE, "state_size": 4}),
        ("RwkvForCausalLM", "RwkvConfig", {**_STATE, "attention_hidden_size": 16}),
        (
            "RecurrentGemmaForCausalLM",
            "RecurrentGemmaConfig",
            {**_BLOCKS, "num_hidden_layers": 3, "lru_width": 16, "attention_window_size": 12},
        ),
        (
            "Lfm2ForCausalLM",
            "Lfm2Config",
            {**_BLOCKS, **_WIDE, "num_key_value_heads": 2, "layer_types": ["conv"] * 2},
        ),
        ("RobertaForCausalLM", "RobertaConfig", {**_BLOCKS, **_WIDE, "is_decoder": True}),
    ],
)
def test_where_padding_or_the_cache_changes_numbers_each_text_is_read_whole(
    model_name: str, config_name: str, config: dict[str, Any], tmp_path: Path
) -> None:
    model = open_local(
        ModelRef("local", save_kind(tmp_path / "m", model_name, config_name, **config))
    )
    network, tokenizer = model._loaded_model.model, model._loaded_model.tokenizer
    turns = [(Message("user", prompt),) for prompt in PROMPTS]
    asked = [Complete(model.ref, turn, max_tokens=6) for turn in turns]
    scored = [LogProb(model.ref, turn, ANSWERS) for turn in turns]
    replies = model.send_batch([*asked, *scored])
    assert (model.ref.revision or "").endswith(":whole")
    for prompt, reply, scores in zip(PROMPTS, replies[:2], replies[2:], strict=True):
        assert isinstance(reply, Response) and isinstance(scores, Response)
        ids = tokenizer(f"Q: {prompt}\n")["input_ids"]
        greedy_ids = list(ids)
        for _ in range(6):
            greedy_ids.append(int(one_pass(network, greedy_ids)[-1].argmax()))
        made = greedy_ids[len(ids) :]
        made = made[: made.index(0)] if 0 in made else made
        assert reply.text == model._token_texts.text(made)
        expected = []
        for answer in ANSWERS:
            full = tokenizer(f"Q: {prompt}\n{answer}")["input_ids"]
            log_probs = one_pass(network, full).log_softmax(-1)
            expected.append(
                sum(float(log_probs[i - 1, full[i]]) for i in range(len(ids), len(full)))
            )
        assert scores.numbers == pytest.approx(expected, abs=1e-4)


@torch.inference_mode()
def one_pass(network: Any, ids: list[int]) -> torch.Tensor:
    logits: torch.Tensor = network(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    return logits


def test_other_models_keep_padding_and_cache(tmp_path: Path) -> None:
    for kind in ("gpt2", "llama"):
        for dtype in ("float32", "bfloat16", "float16"):
            folder = save(tmp_path / kind, byte_tokenizer(), kind)
            model = open_local(ModelRef("local", str(folder)), dtype=dtype)
            assert not model._loaded_model.reads_whole


@pytest.mark.parametrize(
    ("model_name", "config_name", "config", "named"),
    [
        ("BertForMaskedLM", "BertConfig", _BLOCKS, "BertForMaskedLM"),
        ("BertLMHeadModel", "BertConfig", {**_BLOCKS, **_WIDE}, "bert models are not causal"),
        (
            "XLNetLMHeadModel",
            "XLNetConfig",
            {"n_layer": 1, "d_model": 16, "n_head": 2, **_WIDE},
            "xlnet",
        ),
        (
            "BartForConditionalGeneration",
            "BartConfig",
            {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1},
            "BartForConditionalGeneration",
        ),
    ],
)
def test_what_is_not_a_causal_model_is_refused_by_its_kind(
    model_name: str, config_name: str, config: dict[str, Any], named: str, tmp_path: Path
) -> None:
    folder = save_kind(tmp_path / "m", model_name, config_name, **config)
    with pytest.raises(ConfigError, match=named):
        open_local(ModelRef("local", folder))


def save_classifier(folder: Path) -> str:
    labels = {"id2label": {0: "entailment", 1: "neutral"}}
    return save_kind(folder, "BertForSequenceClassification", "BertConfig", **_BLOCKS, **labels)


def save_embedder(folder: Path) -> str:
    save_kind(folder, "BertModel", "BertConfig", **_BLOCKS)
    names = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (path, name) in enumerate(names.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"word_embedding_dimension": 16}')
    return str(folder)


KINDS: dict[str, tuple[Callable[[Path], str], Callable[[ModelRef], Any]]] = {
    "local": (lambda folder: str(save(folder, byte_tokenizer(), "llama")), open_local),
    "prm": (lambda folder: str(save_process_reward(folder, "head")), open_process_reward),
    "nli": (save_classifier, open_nli),
    "embedder": (save_embedder, open_embedder),
}
"""Each kind of model: what saves a folder of it, and what opens it."""


def change_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("kind", "place"), [("local", "tokenizer"), *((kind, "model") for kind in KINDS)]
)
def test_code_of_a_folder_is_refused_and_nobody_is_asked(
    kind: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved, opened = KINDS[kind]
    folder = Path(saved(tmp_path / "m"))
    opened(ModelRef(kind, str(folder)))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass T: pass\n")
    if place == "model":
        names = ("Config", "Model", "ModelForCausalLM", "ModelForTokenClassification")
        own = {f"Auto{name}": "own.T" for name in (*names, "ModelForSequenceClassification")}
        change_json(folder / "config.json", model_type="own", auto_map=own)
    else:
        own_tokenizer = {"AutoTokenizer": ["own.T", "own.T"]}
        change_json(folder / "tokenizer_config.json", tokenizer_class="T", auto_map=own_tokenizer)
    questions: list[str] = []

    def answer_yes(question: str = "") -> str:
        questions.append(question)
        return "y"

    monkeypatch.setattr(builtins, "input", answer_yes)
    with pytest.raises(ConfigError, match="code of its own, which is never run"):
        opened(ModelRef(kind, str(folder)))
    assert not questions and not (tmp_path / "ran").exists()


def test_a_module_of_an_embedders_folder_is_not_run(tmp_path: Path) -> None:
    folder = Path(save_embedder(tmp_path / "m"))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass T: pass\n")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "own.T"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ConfigError, match="code of its own, which is never run"):
        open_embedder(ModelRef("embedder", str(folder)))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_not_finite_are_refused_by_name(
    kind: str, value: float, tmp_path: Path
) -> None:
    saved, opened = KINDS[kind]
    folder = Path(saved(tmp_path / "m"))
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in sorted(weights) if "layer" in name)
    weights[name].view(-1)[0] = value
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match="NaN or infinite in") as refused:
        opened(ModelRef(kind, str(folder)))
    assert name.rpartition(".layer")[2] in str(refused.value)


def test_a_weight_beyond_half_precision_is_refused_in_half_precision(tmp_path: Path) -> None:
    folder = save(tmp_path, byte_tokenizer(), "llama")
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][0] = 1e5
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    open_local(ModelRef("local", str(folder)))
    with pytest.raises(ConfigError, match=r"float16 \(1: model\.norm\.weight\)"):
        open_local(ModelRef("local", str(folder)), dtype="float16")
