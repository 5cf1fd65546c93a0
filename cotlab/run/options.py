"""Every option of a run: its type, default and bounds, its help, and its widget on the form."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from pydantic import AliasChoices
from pydantic_settings import BaseSettings, NoDecode

from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.vocabulary import CCS_METRICS, MODES, SOURCES
from cotlab.run.fields import EVERYWHERE, RUN_AND_RESUME, RUN_ONLY, SECTIONS, option

DEFAULT_PROVIDER, DEFAULT_MODEL = "organism", "r100"
DEFAULT_JUDGE = "anthropic/claude-opus-4-1"
_model, _measure, _sampling, _mediation, _judge, _limits, _gate = (
    partial(option, section) for section in SECTIONS
)
_RUN_HINT = (
    "The id of a run that asked its model for chains of its own. Both together take the place of"
    " the suite above."
)


class RunOptions(BaseSettings):
    """The fields of ``RunConfig``.

    A field here is a flag of ``cotlab run``, a variable COTLAB_<FIELD>, a line of a YAML file, a
    widget of the New run form and an entry of the reference; nothing else has to name it.
    """

    task_suite: str = _model(
        "", "A JSONL suite, or the name of a shipped one.", commands=EVERYWHERE
    )
    provider: str = _model(
        DEFAULT_PROVIDER,
        "organism (default), local, openai, anthropic, google, openai_compat, echo, scripted.",
        "Provider",
        choices=PROVIDERS,
    )
    model: str = _model(
        DEFAULT_MODEL,
        "Model name, hub id or folder (default: the organism r100).",
        "Model",
    )
    base_url: str | None = _model(
        None,
        "Address of an OpenAI-compatible server, or of a proxy of a vendor.",
        "Server's address",
    )
    output: str | None = _gate(
        None,
        "Folder of the reports (default: one under the store).",
        "Folder of the reports (empty: in the store)",
        path="path",
        commands=RUN_ONLY,
    )
    scorer: Annotated[list[str], NoDecode] = _measure(
        ["ablation"],
        "What to measure (default: ablation); repeatable.",
        "Scorers",
        choices=SCORERS,
        hint="Each measures one family of metrics; judge compares two runs that are named under"
        " Judge two runs.",
    )
    mode: Annotated[list[str], NoDecode] = _measure(
        ["remove"],
        "remove (default), truncate, corrupt, paraphrase, filler; repeatable.",
        "Modes",
        choices=MODES,
        scorer_option="modes",
        hint="remove: leave the step out. truncate: answer right after it. corrupt: change what it"
        " states and let the model go on. paraphrase: say the same in other words (a control)."
        " filler: dots in its place.",
    )
    metric: str = _measure(
        "accuracy_delta",
        "accuracy_delta (default), token_delta, kl_divergence, answer_change, total_variation.",
        "CCS for RRR",
        choices=CCS_METRICS,
        scorer_option="metric",
        hint="CCS: how much the answer changes without a step. RRR: the share of steps whose CCS is"
        " below the threshold under Sampling and chain. Only the scorer ablation uses it.",
    )
    ccs_threshold: float = _sampling(
        0.1,
        "A step with CCS below this is redundant (default 0.1).",
        "A step is redundant below CCS",
        scorer_option="ccs_threshold",
        step=0.05,
        ge=0,
        le=1,
    )
    rr_threshold: float | None = _gate(
        None,
        "Exit with code 1 if RRR exceeds this value.",
        "The run fails above RRR",
        empty="no gate",
        commands=RUN_AND_RESUME,
        ge=0,
        le=1,
    )
    gate_on: Literal["point", "interval"] = _gate(
        "point",
        "Gate on the point (default) or on the whole interval.",
        "Gate on",
        commands=RUN_AND_RESUME,
    )
    temperature: float = _sampling(
        0.0,
        "Sampling temperature (default 0.0).",
        "Temperature",
        step=0.1,
        ge=0,
        le=2,
        allow_inf_nan=False,
        validation_alias=AliasChoices(
            "temperature", "COTLAB_TEMPERATURE", "FAITHCHECK_TEMPERATURE"
        ),
    )
    seed: int = _sampling(42, "Seed of every draw (default 42).", "Seed", ge=0)
    repeats: int = _measure(
        1,
        "Draws of every request (default 1); 2 or more measure the noise floor.",
        "Draws of every request",
        hint="2 or more measure the noise floor: how often the model's answer changes by itself.",
        ge=1,
        le=100,
    )
    chain: Literal["reference", "own"] = _sampling(
        "reference",
        "Ablate the suite's reference chain (default) or the model's own.",
        "Ablate the model's own chain",
        scorer_option="chain",
        checkbox=True,
        hint="The model is asked for its chain first; its steps, or the reasoning that its vendor"
        " returns, are then ablated.",
    )
    chain_tokens: int | None = _sampling(
        None,
        "Maximum output tokens of a request for a whole chain (default: 512 for a model in this"
        " process, 2048 for a remote one).",
        "Output tokens of a chain",
        empty="512 in this process, 2,048 remote",
        hint="A chain that is cut off has no answer; every request for a chain reserves the price"
        " of so many tokens.",
        absent=512,
        ge=1,
        le=1_000_000,
    )
    given: Literal["user", "prefix"] = _sampling(
        "user",
        "How a chat model is given a chain: in the user's turn (user, default) or as its own turn"
        " (prefix).",
        "Give the chain as the model's own turn",
        checkbox=True,
        hint="Only where the model can continue its own turn: older Claude models, and servers such"
        " as vLLM.",
    )
    source: Annotated[list[str], NoDecode] = _mediation(
        ["filler"],
        "Mediation: filler (default), interchange, right, mean, literal; repeatable.",
        "Sources of states",
        choices=SOURCES,
        scorer_option="sources",
        hint="Where the states come from that replace the chain's. filler: the same text with dots"
        " for the chain. interchange: another item's chain. right: the run without a chain,"
        " right-aligned. mean: the mean of the question. literal: the published formula, kept for"
        " comparison; its control changes nothing.",
    )
    control: Literal["other", "own"] = _mediation(
        "other",
        "Mediation: control states from other items (other, default) or own.",
        "Control from the item's own run",
        scorer_option="control",
        checkbox=True,
    )
    layers: Annotated[list[str], NoDecode] = _mediation(
        [],
        "Mediation: a layer or a span, 3 or 0-7 (default: each, thirds, all); repeatable.",
        "Layers (empty: each, thirds, all)",
        scorer_option="layers",
        empty="3, 0-7",
    )
    donors: int = _mediation(
        4,
        "Mediation: other items whose runs serve as controls (default 4).",
        "Donors",
        scorer_option="donors",
        ge=2,
        le=64,
    )
    draws: int = _mediation(
        2,
        "Mediation: random positions drawn for each control (default 2).",
        "Draws a donor",
        scorer_option="draws",
        ge=1,
        le=64,
    )
    subsets: int = _mediation(
        8,
        "Mediation: subsets, shuffles and noises of each chain (default 8).",
        "Subsets and shuffles",
        scorer_option="subsets",
        ge=1,
        le=256,
    )
    jump_nats: float = _sampling(
        0.5,
        "Entropy: a jump is so many nats above the earlier steps (default 0.5).",
        "Entropy jumps by, nats",
        scorer_option="jump_nats",
        step=0.1,
        hint="A step whose tokens are this much less certain than those of the earlier steps is"
        " flagged.",
        ge=0,
        le=3,
    )
    embedder: str = _sampling(
        "all-MiniLM-L6-v2",
        "Who turns texts into vectors: a sentence-transformers name or folder (all-MiniLM-L6-v2).",
        "Embedder",
    )
    verifier: str = _sampling(
        "none",
        "Who judges links that cannot be computed: none (default), nli/FOLDER, subject,"
        " provider/model.",
        "Verifier",
    )
    paraphraser: str = _sampling(
        "rules",
        "Who rewords questions: rules (default), subject, provider/model.",
        "Paraphraser",
    )
    judge: Annotated[list[str], NoDecode] = _judge(
        [DEFAULT_JUDGE],
        "Who compares two responses: provider/model (anthropic/claude-opus-4-1); repeatable.",
        "Judges",
        hint="Who compares: provider/model, with commas between several, whose agreement is then"
        " shown.",
    )
    base_run: str = _judge(
        "",
        "Judge: the run that holds the base model's responses, by its id.",
        "Run of the base model",
        hint=_RUN_HINT,
    )
    tuned_run: str = _judge(
        "",
        "Judge: the run that holds the fine-tuned model's responses, by its id.",
        "Run of the fine-tuned model",
        hint=_RUN_HINT,
    )
    device: str = _mediation(
        "cpu",
        "Where a local model runs: cpu (default), cuda, cuda:1.",
        "Device",
        pattern=r"^(cpu|cuda(:\d+)?)$",  # cuda:1
    )
    dtype: Literal["float32", "bfloat16", "float16"] = _mediation(
        "float32",
        "A local model's numbers: float32 (default), bfloat16, float16.",
        "Type of numbers",
    )
    backend: Literal["auto", "fast", "hooks", "transformer_lens"] = _mediation(
        "auto",
        "How a local model is patched: auto (default), fast, hooks, transformer_lens.",
        "Patched by",
    )
    limit: int | None = _model(
        None, "Only the first N items.", "Items (empty: all)", empty="all", ge=1
    )
    good_lines: bool = _model(
        False,
        "Run the good lines of a suite that has defects.",
    )
    max_concurrent: int = _limits(
        10,
        "Requests in flight at once (default 10).",
        "Requests in flight",
        commands=RUN_AND_RESUME,
        ge=1,
        le=1000,
    )
    max_cost: float = _limits(
        10.0,
        "Cap on the spend in US dollars (default 10.0).",
        "Cap on the spend, US dollars",
        commands=RUN_AND_RESUME,
        ge=0,
        allow_inf_nan=False,
        validation_alias=AliasChoices("max_cost", "COTLAB_MAX_COST", "FAITHCHECK_MAX_COST"),
    )
    max_requests_per_minute: int | None = _limits(
        60,
        "Rate limit (default 60; none for a local model).",
        "Requests a minute",
        commands=RUN_AND_RESUME,
        ge=1,
    )
    max_tokens_per_minute: int | None = _limits(
        None,
        "Rate limit in tokens, input and output (default: none).",
        "Tokens a minute",
        commands=RUN_AND_RESUME,
        ge=1,
    )
    max_tries: int = _limits(
        10,
        "Tries of a request that fails (default 10); a 429 does not count.",
        "Tries of a request that fails",
        commands=RUN_AND_RESUME,
        ge=1,
        le=100,
    )
    timeout_s: float = _limits(
        120.0,
        "Seconds to wait for a reply (default 120).",
        "Seconds to wait for a reply",
        commands=RUN_AND_RESUME,
        step=1.0,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
    )
    batch: bool = _sampling(
        False,
        "Use the vendor's batch interface: half the price, an answer within a day.",
        "Use the vendor's batch interface",
        commands=EVERYWHERE,
        hint="OpenAI and Anthropic: half the price, and an answer within a day. The run may be"
        " stopped and resumed meanwhile.",
    )
    prices: str | None = _limits(
        None,
        "YAML file of prices: MODEL: {input: 0.5, output: 1.5}, dollars a million.",
        "File of prices (YAML)",
        commands=EVERYWHERE,
        path="path",
    )
    fail_on_error: float | None = _limits(
        None,
        "Exit with code 3 past this share (below 1) or count of failed items.",
        "Failed items that fail the run",
        commands=RUN_AND_RESUME,
        ge=0,
    )
    allow_unpriced: bool = _gate(
        False,
        "Run a model whose price is unknown.",
        "Run a model without a known price",
        commands=EVERYWHERE,
        hint="Its spend is then unknown, and the cap does not hold.",
    )
    redact_prompts: bool = _gate(
        False,
        "Keep hashes instead of prompts, chains and replies.",
        "Keep hashes instead of texts",
        commands=RUN_ONLY,
        hint="In log, store and reports of this run. A suite that was uploaded stays in the store"
        " as it is.",
    )
    profile: Literal["", "phase1", "phase2", "phase3", "phase4", "phase5"] = _measure(
        "",
        "Rollout phase, phase1 to phase5: adds the scorers of its parts and the composite.",
        "Rollout phase",
        empty="none: only the scorers above",
        hint="Adds parts of the reliability suite and their composite. phase1: C and V. phase2: and"
        " F. From phase3: and R, D.",
    )
    weights: str | None = _sampling(
        None,
        "YAML file of the composite's weights: category, then part: number.",
        "Weights of the composite (YAML file)",
        path="file",
    )
    set: Annotated[dict[str, str], NoDecode] = _sampling(
        {},
        "SCORER.OPTION=value, what a scorer can be told beyond these flags; repeatable.",
        "Other options (scorer.option=value)",
    )
    tag: Annotated[dict[str, str], NoDecode] = _gate(
        {}, "key=value, kept with the run; repeatable.", "Tags (key=value, key=value)"
    )
