"""Process reward models of the three kinds, tiny and random, against plain forward passes."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForTokenClassification, Qwen2Model

from cotlab.core.errors import ConfigError, Unsupported
from cotlab.core.provider import InProcessProvider
from cotlab.core.requests import Embed, Response, StepRewards
from cotlab.core.types import ModelRef
from cotlab.providers.local.process_reward import ProcessRewardModel, open_process_reward
from tests.support.tiny_models import PROCESS_REWARD_KINDS, save_process_reward

QUESTION = "how many? three, four; five!"
CHAINS = [
    ("the cat sat on the mat.", "So the answer is 12."),
    ("Step 1: three, four.", "it is.", "naïve café 🙂 ¿qué?"),
    ("So it is.",),
]


@pytest.fixture(scope="module", params=PROCESS_REWARD_KINDS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = save_process_reward(tmp_path_factory.mktemp(request.param), request.param)
    return request.param, folder, open_process_reward(ModelRef("prm", str(folder)))


def plain_probabilities(kind: str, folder: Path, tokenizer: Any, steps: Sequence[str]) -> Any:
    """What the published usage of each kind computes, one chain at a time, without padding."""
    with torch.inference_mode():
        if kind == "head":
            network = AutoModelForTokenClassification.from_pretrained(folder)
            ids = tokenizer(QUESTION, add_special_tokens=False)["input_ids"]
            ends = []
            for step in steps:
                ids += tokenizer(step, add_special_tokens=False)["input_ids"]
                ids += tokenizer("\n", add_special_tokens=False)["input_ids"]
                ends.append(len(ids) - 1)
            return network(torch.tensor([ids])).logits.softmax(-1)[0, ends, 1].tolist()
        if kind == "token":
            network = AutoModelForCausalLM.from_pretrained(folder)
            numbered = [
                s if s.startswith("Step") else f"Step {i}: {s}" for i, s in enumerate(steps, 1)
            ]
            ids = tokenizer(QUESTION + " " + "\n".join(f"{s} ки" for s in numbered))["input_ids"]
            pair = [tokenizer.encode(text)[-1] for text in ("a +", "a -")]
            scores = network(torch.tensor([ids])).logits[:, :, pair].softmax(-1)[:, :, 0]
            return scores[torch.tensor([ids]) == tokenizer.encode("a ки")[-1]].tolist()
        text = (
            "<system>Please reason step by step, and put your final answer within \\boxed{}.\n"
            f"<user>{QUESTION}\n<assistant>" + "".join(f"{s}<extra_0>" for s in steps) + "\n"
        )
        from safetensors.torch import load_file

        weights = load_file(folder / "model.safetensors")
        base = Qwen2Model.from_pretrained(folder, key_mapping={"^model.": ""})
        ids = torch.tensor([tokenizer.encode(text)])
        hidden = base(ids).last_hidden_state[0]
        first = torch.relu(hidden @ weights["score.0.weight"].T + weights["score.0.bias"])
        logits = first @ weights["score.2.weight"].T + weights["score.2.bias"]
        return logits.softmax(-1)[:, 1][ids[0] == tokenizer.encode("<extra_0>")[0]].tolist()


def test_each_kind_gives_the_probabilities_of_a_plain_forward_pass(model: Any) -> None:
    kind, folder, provider = model
    assert isinstance(provider, ProcessRewardModel) and provider.answers == {"step_rewards"}
    in_process: InProcessProvider = provider
    assert in_process.ref.revision
    requests = [StepRewards(provider.ref, QUESTION, steps) for steps in CHAINS]
    seen = []
    for request, reply in zip(requests, provider.send_batch(requests), strict=True):
        assert isinstance(reply, Response) and reply.key == request.key, reply
        expected = plain_probabilities(
            kind, folder, provider._reward_model.tokenizer, request.steps
        )
        assert len(expected) == len(request.steps)
        assert reply.numbers == pytest.approx(expected, abs=1e-5)  # padding moves it by less
        seen += list(reply.numbers or ())
    assert max(seen) - min(seen) > 0.01  # a constant would pass too


def test_neighbours_change_no_bit(model: Any) -> None:
    _, _, provider = model
    rng = random.Random(1)
    words = ["the", "cat", "sat", "on", "the", "mat", "three", "four", "five", "So", "it", "is"]
    requests = [
        StepRewards(
            provider.ref,
            QUESTION,
            tuple(
                " ".join(rng.choices(words, k=rng.randint(1, 9))) for _ in range(rng.randint(1, 4))
            ),
        )
        for _ in range(13)
    ]
    together = [reply.numbers for reply in provider.send_batch(requests)]
    alone = [provider.send_batch([request])[0].numbers for request in requests]
    assert together == alone


def test_a_chain_that_does_not_fit_is_not_cut(model: Any) -> None:
    _, _, provider = model
    long_chain = StepRewards(provider.ref, QUESTION, ("the cat sat " * 200, "it is."))
    replies = provider.send_batch(
        [long_chain, StepRewards(provider.ref, QUESTION, CHAINS[0]), Embed(provider.ref, ("x",))]
    )
    assert isinstance(replies[0], Unsupported) and "tokens, the model takes" in str(replies[0])
    assert isinstance(replies[1], Response) and isinstance(replies[2], Unsupported)
    (empty,) = provider.send_batch([StepRewards(provider.ref, QUESTION, ())])
    assert isinstance(empty, Unsupported)


def test_a_step_that_holds_the_step_token_is_refused(model: Any) -> None:
    kind, _, provider = model
    step_end = provider._reward_model.layout.step_end
    (reply,) = provider.send_batch([StepRewards(provider.ref, QUESTION, (f"it {step_end} is",))])
    if kind == "head":  # positions are counted, not searched
        assert isinstance(reply, Response) and len(reply.numbers or ()) == 1
    else:
        assert isinstance(reply, Unsupported) and "2 times for 1 steps" in str(reply)


def test_the_folder_says_how_its_texts_are_written(tmp_path: Path) -> None:
    folder = save_process_reward(tmp_path, "head")
    plain = open_process_reward(ModelRef("prm", str(folder)))
    (folder / "process_reward.json").write_text('{"question": "Q: {question}", "step_end": "!"}')
    other = open_process_reward(ModelRef("prm", str(folder)))
    assert other.ref.revision != plain.ref.revision
    assert numbers(other) != numbers(plain)
    (folder / "process_reward.json").write_text('{"separator": "!"}')
    with pytest.raises(ConfigError, match="may give texts for question, step_end"):
        open_process_reward(ModelRef("prm", str(folder)))


def numbers(provider: ProcessRewardModel) -> tuple[float, ...] | None:
    (reply,) = provider.send_batch([StepRewards(provider.ref, QUESTION, CHAINS[0])])
    assert isinstance(reply, Response)
    return reply.numbers


@pytest.mark.parametrize("kind", PROCESS_REWARD_KINDS)
def test_code_in_a_folder_is_never_run(kind: str, tmp_path: Path) -> None:
    folder = save_process_reward(tmp_path / "model", kind)
    config = json.loads((folder / "config.json").read_text())
    names = ("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForTokenClassification")
    config["auto_map"] = dict.fromkeys(names, "remote.Anything")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "remote.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Anything: pass\n"
    )
    assert numbers(open_process_reward(ModelRef("prm", str(folder)))) is not None
    assert not (tmp_path / "ran").exists()


def test_what_is_no_process_reward_model_is_refused(tmp_path: Path) -> None:
    folder = save_process_reward(tmp_path / "a", "token", tokens=("ки", "+"))
    with pytest.raises(ConfigError, match="are not two tokens"):
        open_process_reward(ModelRef("prm", str(folder)))
    folder = save_process_reward(tmp_path / "b", "token", tokens=("+", "-"))
    with pytest.raises(ConfigError, match="the step token, is no token of its own"):
        open_process_reward(ModelRef("prm", str(folder)))
    folder = save_process_reward(tmp_path / "c", "qwen", n_labels=3)
    with pytest.raises(ConfigError, match="must have two labels"):
        open_process_reward(ModelRef("prm", str(folder)))
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["BertModel"]}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="BertModel is no process reward model"):
        open_process_reward(ModelRef("prm", str(folder)))
    with pytest.raises(ConfigError, match="--verifier prm:"):
        open_process_reward(ModelRef("prm", str(tmp_path)))


def test_missing_weights_of_the_head_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_process_reward(tmp_path, "qwen")
    weights = load_file(folder / "model.safetensors")
    del weights["score.2.bias"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match=r"score\.2\.bias"):
        open_process_reward(ModelRef("prm", str(folder)))
