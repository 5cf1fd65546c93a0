"""The three published kinds of process reward model: how each is loaded, and where it is read.

- ``head``: a model with a classification head on each token, read at the token that ends a step
  (``*ForTokenClassification``, as TRL's PRMTrainer writes them).
- ``token``: a causal language model, read at a step tag: the probability of "+" against "-" as the
  next token (Math-Shepherd, Wang et al. 2024, arXiv:2312.08935).
- ``qwen``: Qwen2.5-Math-PRM (Zhang et al. 2025, arXiv:2501.07301), read at ``<extra_0>``. Its two
  layers are built here and filled from the weights' file: no code of a model folder is ever run.

A file ``process_reward.json`` in the folder overrides how texts are written (`Layout`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForTokenClassification,
    Qwen2Config,
    Qwen2Model,
    Qwen2PreTrainedModel,
)
from transformers.modeling_outputs import TokenClassifierOutput

from cotlab.core.errors import ConfigError, Unsupported
from cotlab.providers.local.load import load_config, load_pretrained, model_source

Kind = Literal["head", "token", "qwen"]
LAYOUT_FILE = "process_reward.json"
"""File of a model folder that says how its texts are written."""
_QWEN_SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."
_STEP_NUMBER = re.compile(r"\s*Step\s+\d+")  # "Step 1: 7 + 5 = 12."
_RIGHT_LABELS = frozenset({"correct", "right", "good", "positive", "true", "+", "label_1"})


@dataclass(frozen=True, slots=True)
class Layout:
    """How question and steps are written for a model."""

    question: str
    """Template of the text before the steps; ``{question}`` is replaced."""
    step_end: str
    """Text after each step, at whose last token the model is read."""
    right: str = "+"
    """Token that stands for a right step, of the kind ``token``."""
    wrong: str = "-"
    """Token that stands for a wrong step, of the kind ``token``."""
    system: str = ""
    """System turn, of the kind ``qwen``."""


LAYOUTS: dict[Kind, Layout] = {
    "head": Layout("{question}", "\n"),
    "token": Layout("{question} ", "ки"),
    "qwen": Layout("{question}", "<extra_0>", system=_QWEN_SYSTEM),
}
"""The published layout of each kind."""


class QwenProcessRewardModel(Qwen2PreTrainedModel):  # type: ignore[misc]
    """Qwen2 with the head of Qwen2.5-Math-PRM: two linear layers on the last hidden states."""

    _keys_to_ignore_on_load_unexpected = [r"lm_head\..*"]

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__(config)
        self.model = Qwen2Model(config)
        width = config.hidden_size
        self.score = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, config.num_labels)
        )
        self.post_init()

    def forward(self, **inputs: Any) -> TokenClassifierOutput:
        """Return the logits of wrong and right at each token."""
        hidden_states = self.model(**inputs).last_hidden_state
        return TokenClassifierOutput(logits=self.score(hidden_states))


@dataclass(frozen=True, slots=True)
class RewardModel:
    """A loaded process reward model."""

    kind: Kind
    """How it is read."""
    model: Any
    """The transformers model; its logits are those of the labels alone."""
    tokenizer: Any
    """Its tokenizer."""
    layout: Layout
    """How its texts are written."""
    label_index: int | None
    """Index of the label "right"; None where the only logit is that of a sigmoid."""

    def encode(self, question: str, steps: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the tokens of a chain, and for each step the position where the model is read.

        Raises
        ------
        Unsupported
            If the positions are not one a step, or a word is unknown to the tokenizer.
        """
        encode = {"head": _encode_head, "token": _encode_token, "qwen": _encode_qwen}[self.kind]
        token_ids, positions = encode(self.tokenizer, self.layout, question, steps)
        if len(positions) != len(steps):
            raise Unsupported(
                f"the text has the step token {self.layout.step_end!r} {len(positions)} times for"
                f" {len(steps)} steps"
            )
        unknown_id = self.tokenizer.unk_token_id
        if (
            unknown_id is not None
            and unknown_id in token_ids
            and self.tokenizer.eos_token_id != (unknown_id)
        ):
            raise Unsupported("the text has a word that the model's tokenizer does not know")
        return token_ids, positions

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the probability of "right" from logits whose last axis is the labels."""
        if self.label_index is None:
            return torch.sigmoid(logits[..., 0].float())
        return torch.softmax(logits.float(), dim=-1)[..., self.label_index]


def load_reward_model(name: str, flag: str, dtype: str = "float32") -> RewardModel:
    """Load a process reward model by folder or hub id; its architecture says of which kind it is.

    Raises
    ------
    ConfigError
        If it cannot be loaded, is of none of the kinds, or lacks weights or tokens.
    """
    source = model_source(name, flag)
    config = load_config(source, flag)
    kind = _kind_of(config, flag)
    model_class: Any = {
        "head": AutoModelForTokenClassification,
        "token": AutoModelForCausalLM,
        "qwen": QwenProcessRewardModel,
    }[kind]
    model, tokenizer = load_pretrained(model_class, source, flag, config, dtype)
    layout = _read_layout(Path(source), LAYOUTS[kind], flag)
    if kind == "qwen" and not getattr(tokenizer, "chat_template", None):
        raise ConfigError(f"{flag}: its tokenizer has no chat template.")
    if kind == "token":
        _keep_two_rows(model, tokenizer, layout, flag)
        label_index: int | None = 0
    else:
        label_index = _right_label(config, flag)
    if kind != "head" and _step_token(tokenizer, layout.step_end, kind) is None:
        raise ConfigError(f"{flag}: {layout.step_end!r}, the step token, is no token of its own.")
    return RewardModel(kind, model, tokenizer, layout, label_index)


def _kind_of(config: Any, flag: str) -> Kind:
    architecture = (getattr(config, "architectures", None) or [""])[0] or ""
    if architecture.endswith("ForTokenClassification"):
        return "head"
    if architecture == "Qwen2ForProcessRewardModel":
        return "qwen"
    if architecture.endswith(("ForCausalLM", "LMHeadModel")):
        return "token"
    raise ConfigError(
        f"{flag}: {architecture or 'a model without an architecture'} is no process reward model"
        " that can be read. Read are token classifiers, causal models with a step tag, and"
        " Qwen2ForProcessRewardModel."
    )


def _read_layout(folder: Path, layout: Layout, flag: str) -> Layout:
    """Return the layout with what the folder's file says otherwise."""
    path = folder / LAYOUT_FILE
    if not path.is_file():
        return layout
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{flag}: {LAYOUT_FILE} is not JSON ({error}).") from error
    names = [field.name for field in fields(Layout)]
    if not isinstance(values, dict) or not all(
        name in names and isinstance(text, str) for name, text in values.items()
    ):
        raise ConfigError(f"{flag}: {LAYOUT_FILE} may give texts for {', '.join(names)} only.")
    return replace(layout, **values)


def _right_label(config: Any, flag: str) -> int | None:
    """Return the index of the label "right"; None with one label."""
    labels = {int(i): str(label).lower() for i, label in config.id2label.items()}
    if len(labels) == 1:
        return None
    matches = [i for i, label in labels.items() if label in _RIGHT_LABELS]
    if len(labels) != 2 or len(matches) != 1:
        raise ConfigError(
            f"{flag}: it must have two labels, one of them for a right step (correct, LABEL_1); it"
            f" has {', '.join(map(str, config.id2label.values()))}."
        )
    return matches[0]


def _keep_two_rows(model: Any, tokenizer: Any, layout: Layout, flag: str) -> None:
    """Reduce the output layer to the tokens for right and wrong, in that order.

    The probability of one against the other needs no other logit, of which there may be 150,000.
    """
    ids = [_last_token(tokenizer, text) for text in (layout.right, layout.wrong)]
    output_layer = model.get_output_embeddings()
    if None in ids or ids[0] == ids[1] or output_layer is None:
        raise ConfigError(
            f"{flag}: {layout.right!r} and {layout.wrong!r} are not two tokens of its tokenizer."
        )
    two_rows = nn.Linear(output_layer.in_features, 2, bias=output_layer.bias is not None)
    two_rows.to(output_layer.weight.dtype)
    with torch.no_grad():
        two_rows.weight.copy_(output_layer.weight[ids])
        if output_layer.bias is not None:
            two_rows.bias.copy_(output_layer.bias[ids])
    model.set_output_embeddings(two_rows)


def _last_token(tokenizer: Any, text: str) -> int | None:
    """Return the one token that ``text`` is after a word and a space; None where it is several."""
    before = tokenizer.encode("a", add_special_tokens=False)
    after = tokenizer.encode(f"a {text}", add_special_tokens=False)
    is_one = after[:-1] == before and after[-1] != tokenizer.unk_token_id
    return int(after[-1]) if is_one else None


def _step_token(tokenizer: Any, text: str, kind: Kind) -> int | None:
    if kind == "token":
        return _last_token(tokenizer, text)
    token_ids = tokenizer.encode(text, add_special_tokens=False)
    is_one = len(token_ids) == 1 and token_ids[0] != tokenizer.unk_token_id
    return int(token_ids[0]) if is_one else None


def _encode_head(
    tokenizer: Any, layout: Layout, question: str, steps: Sequence[str]
) -> tuple[list[int], list[int]]:
    """Return tokens that are joined piece by piece, as TRL does: the last of each step is read."""
    encode: Callable[[str], list[int]] = lambda text: tokenizer.encode(  # noqa: E731
        text, add_special_tokens=False
    )
    begin = [tokenizer.bos_token_id] if tokenizer.bos_token_id is not None else []
    token_ids = begin + encode(layout.question.replace("{question}", question))
    step_end, positions = encode(layout.step_end), []
    for step in steps:
        token_ids += encode(step) + step_end
        positions.append(len(token_ids) - 1)
    return token_ids, positions


def _encode_token(
    tokenizer: Any, layout: Layout, question: str, steps: Sequence[str]
) -> tuple[list[int], list[int]]:
    """Return the tokens of "Step 1: … ки" lines; a step without a number gets its number."""
    lines = [
        f"{step if _STEP_NUMBER.match(step) else f'Step {i}: {step}'} {layout.step_end}"
        for i, step in enumerate(steps, start=1)
    ]
    text = layout.question.replace("{question}", question) + "\n".join(lines)
    token_ids = list(tokenizer.encode(text))
    step_token = _step_token(tokenizer, layout.step_end, "token")
    return token_ids, [i for i, token in enumerate(token_ids) if token == step_token]


def _encode_qwen(
    tokenizer: Any, layout: Layout, question: str, steps: Sequence[str]
) -> tuple[list[int], list[int]]:
    """Return the tokens of a conversation whose reply is the steps, each with its step token."""
    text = tokenizer.apply_chat_template(
        [
            {"role": "system", "content": layout.system},
            {"role": "user", "content": layout.question.replace("{question}", question)},
            {"role": "assistant", "content": "".join(f"{step}{layout.step_end}" for step in steps)},
        ],
        tokenize=False,
        add_generation_prompt=False,
    )
    token_ids = list(tokenizer.encode(text))
    step_token = _step_token(tokenizer, layout.step_end, "qwen")
    return token_ids, [i for i, token in enumerate(token_ids) if token == step_token]
