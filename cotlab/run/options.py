"""Every option of a run: its type, default and bounds, its help, and its widget on the form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, ConfigDict, Field, field_validator

from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.types import ABLATION_MODES, CCS_METRICS, MEDIATION_SOURCES
from cotlab.providers.capabilities import KEY_VARIABLE_PATTERN
from cotlab.run.transport.budget import Price, parse_price

SECTION_HEADINGS = {
    "model": "Suite and model",
    "measure": "What to measure",
    "sampling": "Sampling and chain",
    "mediation": "Mediation and local models",
    "judge": "Judge two runs",
    "limits": "Limits and money",
    "gate": "Gate, tags and privacy",
}
"""Groups of options and their headings, in the order of the New run form and the reference."""
ENV_PREFIX = "COTLAB_"
"""Start of the environment variable of an option."""
RUN_ONLY, RUN_AND_RESUME, ALL_COMMANDS = ("run",), ("run", "resume"), ("run", "plan", "resume")
"""Values of ``Setting.commands`` besides the default."""
_NO_LEGACY_VALUE = object()


@dataclass(frozen=True, slots=True)
class Setting:
    """Label, widget and commands of a field; pydantic calls it for the JSON schema."""

    section: str
    """Key of ``SECTION_HEADINGS``."""
    label: str = ""
    """Label of the widget on the New run form; empty for an option that the form does not offer."""
    hint: str | None = None
    """Help text of the widget; without one it is the help of the flag."""
    choices: Iterable[str] = ()
    """Values to choose from; a registry where other packages may add some."""
    scorer_option: str = ""
    """Option of a scorer that the field sets, where the scorer has it."""
    scorers: tuple[str, ...] = ()
    """Scorers that read the field, where it is neither an option nor a role of theirs."""
    commands: tuple[str, ...] = ("run", "plan")
    """Commands that take it, of run, plan and resume (``cotlab run --resume``)."""
    path: Literal["", "path", "file"] = ""
    """Whether the text names a path, or a file that must not be a folder."""
    step: float | None = None
    """Step of a number's widget."""
    empty: str = "none"
    """Text that the form displays for an empty value."""
    checkbox: bool = False
    """Whether the form offers the second of two choices as a checkbox."""
    variables: tuple[str, ...] = ()
    """Environment variables besides COTLAB_<FIELD>."""
    absent: Any = _NO_LEGACY_VALUE
    """Value of all runs that were stored before the field existed."""

    def __call__(self, schema: dict[str, Any]) -> None:
        """Add the choices to the JSON schema of the field, unless other packages may add some."""
        if self.choices and isinstance(self.choices, tuple):
            is_list = schema.get("type") == "array"
            (schema["items"] if is_list else schema)["enum"] = list(self.choices)


def option(section: str, default: Any, help: str, label: str = "", **extra_options: Any) -> Any:
    """Declare a field of the configuration.

    Parameters
    ----------
    default : value of the field where nothing sets it
    help : help text of the flag, and description in the reference
    section, label, **more
        Fields of ``Setting``; the others are constraints of ``pydantic.Field``.
    """
    setting_names = Setting.__dataclass_fields__
    setting = Setting(
        section,
        label,
        **{key: value for key, value in extra_options.items() if key in setting_names},
    )
    return Field(
        default,
        description=help,
        json_schema_extra=setting,
        **{key: value for key, value in extra_options.items() if key not in setting_names},
    )


@dataclass(frozen=True, slots=True)
class ConfigField:
    """A field of the configuration, described for whatever is generated from it."""

    name: str
    """Name of the field, in Python and in YAML."""
    value_type: type
    """bool, int, float, str, list (of texts) or dict (of texts)."""
    allows_none: bool
    """Whether None is a value."""
    default: Any
    """Default value."""
    help: str
    """One sentence."""
    setting: Setting
    """Label, widget and commands of the field."""
    literals: tuple[str, ...]
    """Values of a ``Literal`` type."""
    words: tuple[str, ...]
    """Words that stand for a number."""
    minimum: float | None
    """Smallest value of a number."""
    excludes_minimum: bool
    """Whether only larger values than ``minimum`` are valid."""
    maximum: float | None
    """Largest value of a number."""
    env_variables: tuple[str, ...]
    """Environment variables that set the field, the first one preferred."""

    @property
    def choices(self) -> tuple[str, ...]:
        """Values to choose from, if any."""
        return self.literals or tuple(self.setting.choices)

    @property
    def flag(self) -> str:
        """Flag of the command line."""
        return "--" + self.name.replace("_", "-")


def config_fields(config: type[BaseModel]) -> dict[str, ConfigField]:
    """Return the fields of a configuration class by name, section by section."""
    sections = list(SECTION_HEADINGS)
    fields = [_config_field(name, field) for name, field in config.model_fields.items()]
    fields.sort(key=lambda field: sections.index(field.setting.section))  # stable
    return {field.name: field for field in fields}


def legacy_values(fields: Mapping[str, ConfigField]) -> dict[str, Any]:
    """Return the values that runs had before a field existed, of the fields that came later."""
    values = {name: field.setting.absent for name, field in fields.items()}
    return {name: value for name, value in values.items() if value is not _NO_LEGACY_VALUE}


def _config_field(name: str, field: Any) -> ConfigField:
    setting: Setting = field.json_schema_extra
    union_members = [field.annotation]
    if get_origin(field.annotation) in (Union, type(int | None)):
        union_members = [
            union_member
            for union_member in get_args(field.annotation)
            if union_member is not NoneType
        ]
    metadata = list(field.metadata)
    if get_origin(union_members[0]) is Annotated:
        union_members[0], *bounds = get_args(union_members[0])
        metadata += bounds
    origin = get_origin(union_members[0])
    bound_by_type = {type(bound): bound for bound in metadata}
    lower_bound, exclusive_bound, upper_bound = (
        bound_by_type.get(union_member) for union_member in (Ge, Gt, Le)
    )
    return ConfigField(
        name,
        str if origin is Literal else origin or union_members[0],
        len(get_args(field.annotation)) > 1 and NoneType in get_args(field.annotation),
        field.get_default(call_default_factory=True),
        field.description,
        setting,
        get_args(union_members[0]) if origin is Literal else (),
        tuple(word for union_member in union_members[1:] for word in get_args(union_member)),
        lower_bound.ge if lower_bound else exclusive_bound.gt if exclusive_bound else None,
        exclusive_bound is not None,
        upper_bound.le if upper_bound else None,
        (ENV_PREFIX + name.upper(), *setting.variables),
    )


DEFAULT_PROVIDER, DEFAULT_MODEL = "organism", "r100"
DEFAULT_JUDGE = "anthropic/claude-opus-4-1"
_model_option = partial(option, "model")
_measure_option = partial(option, "measure")
_sampling_option = partial(option, "sampling")
_judge_option = partial(option, "judge")
_gate_option = partial(option, "gate")
_mediation_option = partial(option, "mediation")
_limits_option = partial(option, "limits", commands=RUN_AND_RESUME)


class RoleOptions(BaseModel):
    """What the model of a role, and its server, are given besides the name of the model."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    key_variable: str | None = None
    """Variable with the key of its server; None for the provider's own."""
    price: str | None = None
    """INPUT/OUTPUT, dollars a million tokens; None where it is looked up."""

    @field_validator("key_variable")
    @classmethod
    def _check_variable(cls, name: str | None) -> str | None:
        if name is not None and not KEY_VARIABLE_PATTERN.fullmatch(name):
            raise ValueError("a variable with a key is called like JUDGE_API_KEY or JUDGE_TOKEN")
        return name

    @field_validator("price")
    @classmethod
    def _check_price(cls, text: str | None) -> str | None:
        if text is not None:
            parse_price(text)
        return text

    @property
    def model_price(self) -> Price | None:
        """Return the price; None where it is looked up."""
        return None if self.price is None else parse_price(self.price)


class ServedRoleOptions(RoleOptions):
    """Options of a role that is not the subject, whose address is --base-url."""

    base_url: str | None = None
    """Address of its server."""


class OtherRoleOptions(ServedRoleOptions):
    """Options of a role whose model no flag names, like equivalence."""

    model: str = ""
    """subject or provider/model."""


class SubjectOptions(RoleOptions):
    """Options of the model that is measured."""

    device: str = Field("cpu", pattern=r"^(cpu|cuda(:\d+)?)$")  # cuda:1
    """Where models in this process run: cpu, cuda, cuda:1."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Numbers of a model in this process."""
    backend: Literal["auto", "fast", "hooks", "transformer_lens"] = "auto"
    """How a model in this process is patched."""
    form: Literal["auto", "chat", "completions"] = "auto"
    """How a server is asked: in turns, or by raw text; auto: in turns without a chat template."""
    chat_template: Literal["server", "none"] = "server"
    """What makes raw text: the server's template, or none for a base model."""


class VerifierOptions(ServedRoleOptions):
    """Options of the verifier, which may be a critic or a process reward model."""

    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    """Numbers of a process reward model; None for those of the subject."""
    votes: int = Field(1, ge=1, le=99)
    """Times that a critic is asked about each chain, odd: the majority decides."""
    tokens: int = Field(2_000, ge=50)
    """Maximum output tokens of a critic's reply."""


class EmbedderOptions(ServedRoleOptions):
    """Options of the embedder."""

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Its numbers; auto: float32."""


ROLE_CLASSES: Mapping[str, type[RoleOptions]] = {
    "subject": SubjectOptions,
    "verifier": VerifierOptions,
    "embedder": EmbedderOptions,
    "paraphraser": ServedRoleOptions,
    "judge": ServedRoleOptions,
}
"""Role → class of its options; any other role has ``OtherRoleOptions``."""


def role_class(role: str) -> type[RoleOptions]:
    """Return the class of a role's options; judge_2 is a judge."""
    return ROLE_CLASSES.get("judge" if role.startswith("judge_") else role, OtherRoleOptions)


def role_options(role: str, pairs: Mapping[str, str]) -> Any:
    """Return the options of a role of pairs like ``verifier.base_url``: an object of its class."""
    own = {key.partition(".")[2]: text for key, text in pairs.items() if key.startswith(f"{role}.")}
    return role_class(role)(**own)


class RunOptions(BaseModel):
    """The fields of ``RunConfig``.

    A field here is a flag of ``cotlab run``, a variable COTLAB_<FIELD>, a line of a YAML file, a
    widget of the New run form and an entry of the reference; nothing else has to name it.
    """

    max_concurrent: int = _limits_option(
        10,
        "Requests in flight at once (default 10).",
        "Requests in flight",
        ge=1,
        le=256,
    )
    max_cost: float = _limits_option(
        10.0,
        "Cap on the spend in US dollars (default 10.0).",
        "Cap on the spend, US dollars",
        ge=0,
        allow_inf_nan=False,
        variables=("FAITHCHECK_MAX_COST",),
    )
    max_requests_per_minute: Annotated[int, Ge(1)] | Literal["auto", "default"] | None = (
        _limits_option(
            "default",
            "Rate limit (default: 60 to a vendor, none at a private address; auto: the server's).",
            "Requests a minute",
        )
    )
    max_tokens_per_minute: int | None = _limits_option(
        None,
        "Rate limit in tokens, input and output (default: none).",
        "Tokens a minute",
        ge=1,
    )
    max_tries: int = _limits_option(
        10,
        "Tries of a request that fails (default 10); a 429 does not count.",
        "Tries of a request that fails",
        ge=1,
        le=100,
    )
    timeout_s: float = _limits_option(
        120.0,
        "Seconds to wait for a reply (default 120).",
        "Seconds to wait for a reply",
        step=1.0,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
    )
    probe: Literal["auto", "always", "never"] = _limits_option(
        "auto",
        "Check what a server does with this plan's requests before the first one: auto (default;"
        " a server that --base-url names), always (vendors too), never.",
        "Check the server first",
    )
    batch: bool = _sampling_option(
        False,
        "Use the vendor's batch interface: half the price, an answer within a day.",
        "Use the vendor's batch interface",
        commands=ALL_COMMANDS,
    )
    prices: str | None = _limits_option(
        None,
        "YAML file of prices: MODEL: {input: 0.5, output: 1.5}, dollars a million.",
        "File of prices (YAML)",
        commands=ALL_COMMANDS,
        path="path",
    )
    fail_on_error: float | None = _limits_option(
        None,
        "Exit with code 3 past this share (below 1) or count of failed items.",
        "Failed items that fail the run",
        ge=0,
    )
    source: list[str] = _mediation_option(
        ["filler"],
        "Mediation: filler (default), interchange, right, mean, literal; repeatable.",
        "Sources of states",
        choices=MEDIATION_SOURCES,
        scorer_option="sources",
        hint="Where the states come from that replace the chain's. filler: the same text with dots"
        " for the chain. interchange: another item's chain. right: the run without a chain,"
        " right-aligned. mean: the mean of the question. literal: the published formula, kept for"
        " comparison; its control changes nothing.",
    )
    layers: list[str] = _mediation_option(
        [],
        "Mediation: a layer or a span, 3 or 0-7 (default: each, thirds, all); repeatable.",
        "Layers (empty: each, thirds, all)",
        scorer_option="layers",
        empty="3, 0-7",
    )
    donors: int = _mediation_option(
        4,
        "Mediation: other items whose runs serve as controls (default 4).",
        "Donor items for controls",
        scorer_option="donors",
        ge=2,
        le=64,
    )
    draws: int = _mediation_option(
        2,
        "Mediation: random positions drawn for each control (default 2).",
        "Random positions per donor",
        scorer_option="draws",
        ge=1,
        le=64,
    )
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
    role: dict[str, str] = option(
        "limits",
        {},
        "ROLE.OPTION=value, what a role's model or server is given: base_url, key_variable, price"
        " (INPUT/OUTPUT, dollars a million tokens), dtype and so on; repeatable.",
        "Options of roles (judge.price=0.5/1.5)",
        commands=ALL_COMMANDS,
        hint="Of any role: base_url, key_variable, price (judge.price=0.5/1.5); further"
        " judges are judge_2, judge_3. Of the subject: device, dtype, backend, form (completions:"
        " raw text) and chat_template (none: a base model). Of the verifier: dtype, and a critic's"
        " votes and tokens. Of the embedder: dtype. equivalence.model decides where rules cannot"
        " tell two answers apart.",
    )
    output: str | None = _gate_option(
        None,
        "Folder of the reports (default: one under the store).",
        "Folder of the reports (empty: in the store)",
        path="path",
        commands=RUN_ONLY,
    )
    scorer: list[str] = _measure_option(
        ["ablation"],
        "What to measure (default: ablation); repeatable.",
        "Scorers",
        choices=SCORERS,
    )
    mode: list[str] = _measure_option(
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
        variables=("FAITHCHECK_TEMPERATURE",),
    )
    seed: int = _sampling_option(42, "Seed of every draw (default 42).", "Seed", ge=0)
    repeats: int = _measure_option(
        1,
        "Replies to each request (default 1); 2 or more measure the noise floor.",
        "Replies to each request",
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
    )
    chain_tokens: int | None = _sampling_option(
        None,
        "Maximum output tokens of a request for a whole chain (default: 512 for a model in this"
        " process, 2048 for a remote one).",
        "Output tokens of a chain",
        empty="512 in this process, 2,048 remote",
        absent=512,
        ge=1,
        le=1_000_000,
    )
    answer_tokens: int = _sampling_option(
        64,
        "Maximum output tokens of a request for an answer alone, after a chain (default 64).",
        "Output tokens of an answer",
        absent=64,
        ge=1,
        le=1_000_000,
    )
    ask_answer: bool = _sampling_option(
        False,
        "Ask once more for the answer alone after a reply that states none that can be read.",
        "Ask again where no answer can be read",
        absent=False,
    )
    given: Literal["user", "prefix"] = _sampling_option(
        "user",
        "How a chat model is given a chain: in the user's turn (user, default) or as its own turn"
        " (prefix).",
        "Give the chain as the model's own turn",
        checkbox=True,
    )
    embedder: str = _sampling_option(
        "all-MiniLM-L6-v2",
        "Who turns texts into vectors: a sentence-transformers name or folder (all-MiniLM-L6-v2),"
        " or none.",
        "Embedder",
    )
    verifier: str = _sampling_option(
        "none",
        "Who judges links that cannot be computed: none (default), nli:FOLDER, prm:FOLDER, subject,"
        " provider/model; critic:provider/model is asked once a chain for its first wrong step.",
        "Verifier",
    )
    paraphraser: str = _sampling_option(
        "rules", "Who rewords questions: rules (default), subject, provider/model.", "Paraphraser"
    )
    judge: list[str] = _judge_option(
        [DEFAULT_JUDGE],
        "Who compares two responses: provider/model (anthropic/claude-opus-4-1); repeatable.",
        "Judges",
    )
    base_run: str = _judge_option(
        "",
        "Judge: the run that holds the base model's responses, by its id.",
        "Run of the base model",
        scorers=("judge",),
    )
    tuned_run: str = _judge_option(
        "",
        "Judge: the run that holds the fine-tuned model's responses, by its id.",
        "Run of the fine-tuned model",
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
    )
    redact_prompts: bool = _gate_option(
        False,
        "Keep hashes instead of prompts, chains and replies.",
        "Keep hashes instead of texts",
        commands=RUN_ONLY,
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
    set: dict[str, str] = _sampling_option(
        {},
        "SCORER.OPTION=value, what a scorer can be told beyond these flags; repeatable.",
        "Other options (scorer.option=value)",
    )
    tag: dict[str, str] = _gate_option(
        {}, "key=value, kept with the run; repeatable.", "Tags (key=value, key=value)"
    )
