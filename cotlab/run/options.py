"""Every option of a run: its type, default and bounds, its help, and its widget on the form."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from pydantic import AliasChoices
from pydantic_settings import NoDecode

from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.types import ABLATION_MODES, CCS_METRICS
from cotlab.run.fields import ALL_COMMANDS, RUN_AND_RESUME, RUN_ONLY, option
from cotlab.run.mediation_options import MediationOptions

DEFAULT_PROVIDER, DEFAULT_MODEL = "organism", "r100"
DEFAULT_JUDGE = "anthropic/claude-opus-4-1"
_model_option = partial(option, "model")
_measure_option = partial(option, "measure")
_sampling_option = partial(option, "sampling")
_judge_option = partial(option, "judge")
_gate_option = partial(option, "gate")
_TextByRole = Annotated[dict[str, str], NoDecode]
_PAIRED_RUN_HINT = (
    "The id of a run that asked its model for chains of its own. Both together take the place of"
    " the suite above."
)


class RunOptions(MediationOptions):
    """The fields of ``RunConfig``.

    A field here is a flag of ``cotlab run``, a variable COTLAB_<FIELD>, a line of a YAML file, a
    widget of the New run form and an entry of the reference; nothing else has to name it.
    """

    task_suite: str = _model_option(
        "", "A JSONL suite, or the name of a shipped one.", commands=ALL_COMMANDS
    )
    provider: str = _model_option(
        DEFAULT_PROVIDER,
        f"{', '.join(PROVIDERS)}; {DEFAULT_PROVIDER} by default.",
        "Provider",
        choices=PROVIDERS,
    )
    model: str = _model_option(
        DEFAULT_MODEL, "Model name, hub id or folder (default: the organism r100).", "Model"
    )
    base_url: str | None = _model_option(
        None,
        "Address of an OpenAI-compatible server, or of a proxy of a vendor.",
        "Server's address",
    )
    role_base_url: _TextByRole = _model_option(
        {},
        "ROLE=ADDRESS, the server of a judge, verifier, paraphraser or embedder; repeatable.",
        "Servers of other roles (role=address)",
        hint="judge=http://127.0.0.1:8001/v1; further judges are judge_2, judge_3.",
    )
    role_key_variable: _TextByRole = _model_option(
        {},
        "ROLE=VARIABLE, the variable with the key of a role's server (subject too); repeatable.",
        "Variables with keys (judge=JUDGE_API_KEY)",
    )
    role_price: _TextByRole = option(
        "limits",
        {},
        "ROLE=INPUT/OUTPUT, a role's price, dollars a million tokens (subject too); repeatable.",
        "Prices of roles (judge=0.5/1.5)",
        commands=ALL_COMMANDS,
    )
    output: str | None = _gate_option(
        None,
        "Folder of the reports (default: one under the store).",
        "Folder of the reports (empty: in the store)",
        path="path",
        commands=RUN_ONLY,
    )
    scorer: Annotated[list[str], NoDecode] = _measure_option(
        ["ablation"],
        "What to measure (default: ablation); repeatable.",
        "Scorers",
        choices=SCORERS,
        hint="Each measures one family of metrics; judge compares two runs that are named under"
        " Judge two runs.",
    )
    mode: Annotated[list[str], NoDecode] = _measure_option(
        ["remove"],
        "remove (default), truncate, corrupt, paraphrase, filler; repeatable.",
        "Modes",
        choices=ABLATION_MODES,
        scorer_option="modes",
        hint="remove: leave the step out. truncate: answer right after it. corrupt: change what it"
        " states and let the model go on. paraphrase: say the same in other words and keep"
        " the rest (a control). filler: dots in its place.",
    )
    metric: str = _measure_option(
        "accuracy_delta",
        "accuracy_delta (default), token_delta, kl_divergence, answer_change, total_variation.",
        "Step score that RRR counts",
        choices=CCS_METRICS,
        scorer_option="metric",
        hint="CCS: how much the answer changes without a step. RRR: the share of steps whose CCS is"
        " below the threshold under Sampling and chain. Only the scorer ablation uses it.",
    )
    ccs_threshold: float = _sampling_option(
        0.1,
        "A step with CCS below this is redundant (default 0.1).",
        "A step is redundant below CCS",
        scorer_option="ccs_threshold",
        step=0.05,
        ge=0,
        le=1,
    )
    rr_threshold: float | None = _gate_option(
        None,
        "Exit with code 1 if RRR exceeds this value.",
        "The run fails above RRR",
        empty="no gate",
        commands=RUN_AND_RESUME,
        ge=0,
        le=1,
        scorers=("ablation",),
    )
    gate_on: Literal["point", "interval"] = _gate_option(
        "point",
        "Gate on the point (default) or on the whole interval.",
        "Gate on",
        commands=RUN_AND_RESUME,
        scorers=("ablation",),
    )
    temperature: float = _sampling_option(
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
    seed: int = _sampling_option(42, "Seed of every draw (default 42).", "Seed", ge=0)
    repeats: int = _measure_option(
        1,
        "Replies to each request (default 1); 2 or more measure the noise floor.",
        "Replies to each request",
        hint="2 or more measure the noise floor: how often the model's answer changes by itself.",
        ge=1,
        le=100,
    )
    chain: Literal["auto", "reference", "own"] = _sampling_option(
        "auto",
        "Whose chain is measured: auto (default), the suite's (reference) or the model's own. auto:"
        " own for the composite and its parts and for a suite without chains, reference for the"
        " others.",
        "Whose chain",
        scorer_option="chain",
        absent="reference",
        hint="reference: the suite's. own: the model is asked for its chain first, and its steps,"
        " or the reasoning that its vendor returns, are measured. auto: own for the composite and"
        " its parts and for a suite without chains, reference for the other scorers, and for the"
        " profile offline.",
    )
    chain_tokens: int | None = _sampling_option(
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
    answer_tokens: int = _sampling_option(
        64,
        "Maximum output tokens of a request for an answer alone, after a chain (default 64).",
        "Output tokens of an answer",
        hint="Raise it for a model that reasons before it answers: a reply that is cut off before"
        " its answer has none.",
        absent=64,
        ge=1,
        le=1_000_000,
    )
    given: Literal["user", "prefix"] = _sampling_option(
        "user",
        "How a chat model is given a chain: in the user's turn (user, default) or as its own turn"
        " (prefix).",
        "Give the chain as the model's own turn",
        checkbox=True,
        hint="Only where the model can continue its own turn: older Claude models, and servers such"
        " as vLLM.",
    )
    form: Literal["auto", "chat", "completions"] = _sampling_option(
        "auto",
        "How an OpenAI-compatible server is asked: in turns (chat), by raw text at /v1/completions"
        " (completions), or in turns unless --chat-template makes raw text (auto, default).",
        "Form of the requests",
        hint="completions: raw text, which the server continues exactly where it stops.",
    )
    chat_template: str = _sampling_option(
        "server",
        "What makes raw text: the server's chat template (server, default), that of the model's"
        " tokenizer in FOLDER, or none, for a base model.",
        "Chat template: server, none or a folder",
    )
    jump_nats: float = _sampling_option(
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
    embedder: str = _sampling_option(
        "all-MiniLM-L6-v2",
        "Who turns texts into vectors: a sentence-transformers name or folder (all-MiniLM-L6-v2),"
        " or none.",
        "Embedder",
    )
    embedder_dtype: Literal["auto", "float32", "bfloat16"] = _sampling_option(
        "auto",
        "The embedder's numbers: auto (default), float32, bfloat16.",
        "Embedder's type of numbers",
        hint="auto: bfloat16 where this processor multiplies it and no cosine of a probe moves by"
        " .01, else float32.",
        role="embedder",
    )
    verifier: str = _sampling_option(
        "none",
        "Who judges links that cannot be computed: none (default), nli:FOLDER, prm:FOLDER, subject,"
        " provider/model; critic:provider/model is asked once a chain for its first wrong step.",
        "Verifier",
    )
    critic_votes: int = _sampling_option(
        1,
        "Times that a critic is asked about each chain, odd; the majority decides (default 1).",
        "Votes of a critic",
        absent=1,
        ge=1,
        le=99,
        role="critic",
    )
    critic_tokens: int = _sampling_option(
        2_000,
        "Maximum output tokens of a critic's reply (default 2000).",
        "Output tokens of a critic's reply",
        absent=2_000,
        ge=50,
        role="critic",
    )
    equivalence: str = _sampling_option(
        "none",
        "Who decides where rules call two answers different but cannot tell: none (default),"
        " subject, provider/model.",
        "Answer equivalence",
        hint="Asked about words and formulas that differ as texts, never about numbers, dates or"
        " options.",
    )
    paraphraser: str = _sampling_option(
        "rules", "Who rewords questions: rules (default), subject, provider/model.", "Paraphraser"
    )
    judge: Annotated[list[str], NoDecode] = _judge_option(
        [DEFAULT_JUDGE],
        "Who compares two responses: provider/model (anthropic/claude-opus-4-1); repeatable.",
        "Judges",
        hint="Who compares: provider/model, with commas between several, whose agreement is then"
        " shown.",
    )
    base_run: str = _judge_option(
        "",
        "Judge: the run that holds the base model's responses, by its id.",
        "Run of the base model",
        hint=_PAIRED_RUN_HINT,
        scorers=("judge",),
    )
    tuned_run: str = _judge_option(
        "",
        "Judge: the run that holds the fine-tuned model's responses, by its id.",
        "Run of the fine-tuned model",
        hint=_PAIRED_RUN_HINT,
        scorers=("judge",),
    )
    limit: int | None = _model_option(
        None, "Only the first N items.", "Items (empty: all)", empty="all", ge=1
    )
    sample: int | None = _model_option(
        None,
        "Only N random items, drawn with --seed; --limit then takes the first of them.",
        "Random items (empty: all)",
        empty="all",
        hint="Files that are sorted, by label say, have other items first than further down.",
        absent=None,
        ge=1,
    )
    good_lines: bool = _model_option(False, "Run the good lines of a suite that has defects.")
    allow_empty: bool = _gate_option(
        False,
        "End with exit code 0 where nothing was measured of the model (without it: 7).",
        "A run that measures nothing is no failure",
        commands=RUN_AND_RESUME,
    )
    allow_unpriced: bool = _gate_option(
        False,
        "Run a model whose price is unknown.",
        "Run a model without a known price",
        commands=ALL_COMMANDS,
        hint="Its spend is then unknown, and the cap does not hold.",
    )
    redact_prompts: bool = _gate_option(
        False,
        "Keep hashes instead of prompts, chains and replies.",
        "Keep hashes instead of texts",
        commands=RUN_ONLY,
        hint="In log, store and reports of this run. A suite that was uploaded stays in the store"
        " as it is.",
    )
    profile: Literal["", "offline", "phase1", "phase2", "phase3", "phase4", "phase5"] = (
        _measure_option(
            "",
            "Parts of the composite, phase1 to phase5: adds their scorers and the composite;"
            " offline: V and F of the suite's chains, and no model is asked.",
            "Profile of the composite",
            empty="none: only the scorers above",
            hint="Adds parts of the reliability suite and their composite. phase1: C and V. phase2:"
            " and F. From phase3: and R, D. offline: V and F of the chains that the suite holds; no"
            " model is asked.",
        )
    )
    weights: str | None = _sampling_option(
        None,
        "YAML file of the composite's weights: category, then part: number.",
        "Weights of the composite (YAML file)",
        path="file",
        scorers=("composite",),
    )
    set: Annotated[dict[str, str], NoDecode] = _sampling_option(
        {},
        "SCORER.OPTION=value, what a scorer can be told beyond these flags; repeatable.",
        "Other options (scorer.option=value)",
    )
    tag: Annotated[dict[str, str], NoDecode] = _gate_option(
        {}, "key=value, kept with the run; repeatable.", "Tags (key=value, key=value)"
    )
