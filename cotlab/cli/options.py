"""The flags of ``cotlab run`` and ``cotlab plan``, each once. None means: not given, so the environment may say."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from cotlab.core.errors import ConfigError
from cotlab.providers.keys import SEND_TO

Suite = Annotated[
    Optional[str], typer.Option("--task-suite", help="A JSONL suite, or the name of a shipped one.")
]
Provider = Annotated[
    Optional[str],
    typer.Option(
        help="organism (default), local, openai, anthropic, google, openai_compat, echo, scripted."
    ),
]
Model = Annotated[
    Optional[str], typer.Option(help="Model name, hub id or folder (default: the organism r100).")
]
BaseUrl = Annotated[
    Optional[str],
    typer.Option(help="Address of an OpenAI-compatible server, or of a proxy of a vendor."),
]
Output = Annotated[
    Optional[Path], typer.Option(help="Folder of the reports (default: one under the store).")
]
Scorers = Annotated[
    Optional[list[str]],
    typer.Option("--scorer", help="What to measure (default: ablation); repeatable."),
]
Modes = Annotated[
    Optional[list[str]],
    typer.Option(
        "--mode", help="remove (default), truncate, corrupt, paraphrase, filler; repeatable."
    ),
]
Metric = Annotated[
    Optional[str],
    typer.Option(
        help="accuracy_delta (default), token_delta, kl_divergence, answer_change, total_variation."
    ),
]
CcsThreshold = Annotated[
    Optional[float], typer.Option(help="A step with CCS below this is redundant (default 0.1).")
]
RrThreshold = Annotated[
    Optional[float], typer.Option(help="Exit with code 1 if RRR exceeds this value.")
]
GateOn = Annotated[
    Optional[str], typer.Option(help="Gate on the point (default) or on the whole interval.")
]
Temperature = Annotated[Optional[float], typer.Option(help="Sampling temperature (default 0.0).")]
Seed = Annotated[Optional[int], typer.Option(help="Seed of every draw (default 42).")]
Repeats = Annotated[
    Optional[int],
    typer.Option(help="Draws of every request (default 1); 2 or more measure the noise floor."),
]
Chain = Annotated[
    Optional[str],
    typer.Option(help="Ablate the suite's reference chain (default) or the model's own."),
]
Given = Annotated[
    Optional[str],
    typer.Option(
        help=(
            "How a chat model is given a chain: in the user's turn (user, default) or as its own"
            " turn (prefix)."
        )
    ),
]
Sources = Annotated[
    Optional[list[str]],
    typer.Option(
        "--source",
        help="Mediation: filler (default), interchange, right, mean, literal; repeatable.",
    ),
]
Control = Annotated[
    Optional[str],
    typer.Option(help="Mediation: control states from other items (other, default) or own."),
]
Layers = Annotated[
    Optional[list[str]],
    typer.Option(
        "--layers",
        help="Mediation: a layer or a span, 3 or 0-7 (default: each, thirds, all); repeatable.",
    ),
]
Donors = Annotated[
    Optional[int],
    typer.Option(help="Mediation: other items whose runs serve as controls (default 4)."),
]
Draws = Annotated[
    Optional[int],
    typer.Option(help="Mediation: random positions drawn for each control (default 2)."),
]
Subsets = Annotated[
    Optional[int],
    typer.Option(help="Mediation: subsets, shuffles and noises of each chain (default 8)."),
]
JumpNats = Annotated[
    Optional[float],
    typer.Option(
        "--jump-nats", help="Entropy: a jump is so many nats above the earlier steps (default 0.5)."
    ),
]
Embedder = Annotated[
    Optional[str],
    typer.Option(
        help=(
            "Who turns texts into vectors: a sentence-transformers name or folder"
            " (all-MiniLM-L6-v2)."
        )
    ),
]
Verifier = Annotated[
    Optional[str],
    typer.Option(
        help=(
            "Who judges links that cannot be computed: none (default), nli/FOLDER, subject,"
            " provider/model."
        )
    ),
]
Paraphraser = Annotated[
    Optional[str],
    typer.Option(help="Who rewords questions: rules (default), subject, provider/model."),
]
Judges = Annotated[
    Optional[list[str]],
    typer.Option(
        "--judge",
        help="Who compares two responses: provider/model (anthropic/claude-opus-4-1); repeatable.",
    ),
]
BaseRun = Annotated[
    Optional[str],
    typer.Option(
        "--base-run", help="Judge: the run that holds the base model's responses, by its id."
    ),
]
TunedRun = Annotated[
    Optional[str],
    typer.Option(
        "--tuned-run", help="Judge: the run that holds the fine-tuned model's responses, by its id."
    ),
]
Profile = Annotated[
    Optional[str],
    typer.Option(
        help="Rollout phase, phase1 to phase5: adds the scorers of its parts and the composite."
    ),
]
Weights = Annotated[
    Optional[Path],
    typer.Option(
        help="YAML file of the composite's weights: category, then part: number.", dir_okay=False
    ),
]
Sets = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set",
        help="SCORER.OPTION=value, what a scorer can be told beyond these flags; repeatable.",
    ),
]
Device = Annotated[
    Optional[str], typer.Option(help="Where a local model runs: cpu (default), cuda, cuda:1.")
]
Dtype = Annotated[
    Optional[str],
    typer.Option(help="A local model's numbers: float32 (default), bfloat16, float16."),
]
Backend = Annotated[
    Optional[str],
    typer.Option(
        help="How a local model is patched: auto (default), fast, hooks, transformer_lens."
    ),
]
Limit = Annotated[Optional[int], typer.Option(help="Only the first N items.")]
GoodLines = Annotated[
    Optional[bool],
    typer.Option("--good-lines", help="Run the good lines of a suite that has defects."),
]
MaxConcurrent = Annotated[
    Optional[int], typer.Option(help="Requests in flight at once (default 10).")
]
MaxCost = Annotated[
    Optional[float], typer.Option(help="Cap on the spend in US dollars (default 10.0).")
]
MaxRequests = Annotated[
    Optional[int],
    typer.Option(
        "--max-requests-per-minute", help="Rate limit (default 60; none for a local model)."
    ),
]
MaxTokens = Annotated[
    Optional[int],
    typer.Option(
        "--max-tokens-per-minute", help="Rate limit in tokens, input and output (default: none)."
    ),
]
MaxTries = Annotated[
    Optional[int],
    typer.Option(help="Tries of a request that fails (default 10); a 429 does not count."),
]
TimeoutS = Annotated[
    Optional[float], typer.Option("--timeout-s", help="Seconds to wait for a reply (default 120).")
]
Batch = Annotated[
    Optional[bool],
    typer.Option(
        "--batch", help="Use the vendor's batch interface: half the price, an answer within a day."
    ),
]
Prices = Annotated[
    Optional[Path],
    typer.Option(
        "--prices", help="YAML file of prices: MODEL: {input: 0.5, output: 1.5}, dollars a million."
    ),
]
FailOnError = Annotated[
    Optional[float],
    typer.Option(help="Exit with code 3 past this share (below 1) or count of failed items."),
]
AllowUnpriced = Annotated[
    Optional[bool], typer.Option("--allow-unpriced", help="Run a model whose price is unknown.")
]
Redact = Annotated[
    Optional[bool],
    typer.Option("--redact-prompts", help="Keep hashes instead of prompts, chains and replies."),
]
Tags = Annotated[
    Optional[list[str]], typer.Option("--tag", help="key=value, kept with the run; repeatable.")
]
SendKeyTo = Annotated[
    Optional[list[str]],
    typer.Option(
        "--send-key-to",
        metavar="HOST",
        help="Host that a key may go to besides the vendor's own; repeatable.",
    ),
]
ConfigFile = Annotated[
    Optional[Path], typer.Option("--config", help="A YAML file with any of these options.")
]


def flags_to_config(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were given, as fields of a RunConfig."""
    fields = {
        name: value
        for name, value in flags.items()
        if value is not None and value is not False and value != []
    }
    for name in ("tag", "set"):
        if name in fields:
            fields[name] = dict(_pair(name, text) for text in fields[name])
    fields |= {
        name: str(fields[name]) for name in ("output", "prices", "weights") if name in fields
    }
    return fields


def send_key_to(hosts: Sequence[str] | None) -> None:
    """Let keys be sent to these hosts, for this process and those that it starts.

    Raises
    ------
    ConfigError
        If one is no host.
    """
    if not hosts:
        return
    for host in hosts:
        if not _is_host(host):
            raise ConfigError(
                "--send-key-to takes a host like proxy.example.com, without http://, port or path:"
                f" {host!r}"
            )
    os.environ[SEND_TO] = ",".join([os.environ.get(SEND_TO, ""), *hosts])


def _is_host(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return re.fullmatch(r"[\w-]+(\.[\w-]+)*", text) is not None


ON_RESUME = (
    "max_cost",
    "max_concurrent",
    "max_requests_per_minute",
    "max_tokens_per_minute",
    "max_tries",
    "timeout_s",
    "batch",
    "prices",
    "fail_on_error",
    "rr_threshold",
    "gate_on",
    "allow_unpriced",
    "task_suite",
)


def validate_resume_flags(
    flags: Mapping[str, Any], *, dry_run: bool, config: Path | None, run_id: str | None
) -> None:
    """Raise where a flag would change what a run that is resumed measures; limits and the gate may change."""
    wrong = [name for name in flags if name not in ON_RESUME]
    wrong += [
        name
        for name, value in (("dry_run", dry_run), ("config", config), ("run_id", run_id))
        if value
    ]
    if wrong:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise ConfigError(
            f"{names} cannot go with --resume: it carries out the stored plan. Start a new run"
            " instead."
        )


def _pair(flag: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--{flag} needs key=value, got {text!r}")
    return key.strip(), value.strip()
