"""One configuration of a run: flags over environment over a YAML file over defaults."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AliasChoices, Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.providers.keys import named_by_file

DEFAULT_PROVIDER, DEFAULT_MODEL = "organism", "r100"
DEFAULT_JUDGE = "anthropic/claude-opus-4-1"
DEMO = {
    "task_suite": "wordproblems",
    "provider": "organism",
    "model": "r100",
    "scorer": ["ablation"],
    "mode": ["remove", "truncate", "corrupt", "paraphrase", "filler"],
}
"""A first run that needs no key: every mode, on what ships with the project."""


class RunConfig(BaseSettings):
    """Everything a run can be told. Each field is a flag of ``cotlab run`` and an environment variable COTLAB_<FIELD>."""

    model_config = SettingsConfigDict(env_prefix="COTLAB_", extra="ignore", populate_by_name=True)

    task_suite: str = Field("", description="Path of a JSONL suite, or the name of a shipped one.")
    provider: str = Field(
        DEFAULT_PROVIDER,
        description=(
            "Who answers: organism, local, openai, anthropic, google, openai_compat, echo,"
            " scripted."
        ),
    )
    model: str = Field(DEFAULT_MODEL, description="Model name, hub id or folder.")
    base_url: str | None = Field(
        None, description="Address of an OpenAI-compatible server, or of a proxy of a vendor."
    )
    output: str | None = Field(
        None, description="Folder of the reports; by default one under the store."
    )
    scorer: Annotated[list[str], NoDecode] = Field(
        ["ablation"], description="What to measure; repeatable."
    )
    mode: Annotated[list[str], NoDecode] = Field(
        ["remove"],
        description="Ablation modes: remove, truncate, corrupt, paraphrase, filler; repeatable.",
    )
    metric: str = Field(
        "accuracy_delta", description="The CCS that RRR and the gate are computed from."
    )
    ccs_threshold: float = Field(
        0.1, ge=0, le=1, description="A step with CCS below this counts as redundant."
    )
    rr_threshold: float | None = Field(
        None, ge=0, le=1, description="Exit with code 1 if RRR exceeds this value."
    )
    gate_on: Literal["point", "interval"] = Field(
        "point", description="Gate on the point or on the whole interval."
    )
    temperature: float = Field(
        0.0,
        ge=0,
        le=2,
        allow_inf_nan=False,
        validation_alias=AliasChoices(
            "temperature", "COTLAB_TEMPERATURE", "FAITHCHECK_TEMPERATURE"
        ),
        description="Sampling temperature.",
    )
    seed: int = Field(42, ge=0, description="Seed of every draw.")
    repeats: int = Field(
        1, ge=1, le=100, description="Draws of every request; 2 or more measure the noise floor."
    )
    chain: Literal["reference", "own"] = Field(
        "reference", description="Ablate the suite's chain or the model's own."
    )
    given: Literal["user", "prefix"] = Field(
        "user",
        description=(
            "How a chat model is given a chain: in the user's turn, or as the start of its own"
            " turn."
        ),
    )
    source: Annotated[list[str], NoDecode] = Field(
        ["filler"],
        description=(
            "Mediation: where states come from: filler, interchange, right, mean, literal;"
            " repeatable."
        ),
    )
    control: Literal["other", "own"] = Field(
        "other",
        description=(
            "Mediation: the control's states come from other items' runs, or from the item's own."
        ),
    )
    layers: Annotated[list[str], NoDecode] = Field(
        [],
        description=(
            "Mediation: spans of layers, like 3 or 0-7; by default each layer, thirds of the depth,"
            " and all."
        ),
    )
    donors: int = Field(
        4, ge=2, le=64, description="Mediation: other items whose runs serve as controls."
    )
    draws: int = Field(
        2, ge=1, le=64, description="Mediation: random positions drawn for each control."
    )
    subsets: int = Field(
        8, ge=1, le=256, description="Mediation: random subsets, shuffles and noises of each chain."
    )
    jump_nats: float = Field(
        0.5,
        ge=0,
        le=3,
        description=(
            "Entropy: a step this much above the mean of the earlier ones, in nats, is a jump."
        ),
    )
    embedder: str = Field(
        "all-MiniLM-L6-v2",
        description="Who turns texts into vectors: a sentence-transformers name or folder.",
    )
    verifier: str = Field(
        "none",
        description=(
            "Who judges links that cannot be computed: none, nli/FOLDER, subject, or"
            " provider/model."
        ),
    )
    paraphraser: str = Field(
        "rules", description="Who rewords questions: rules (offline), subject, or provider/model."
    )
    judge: Annotated[list[str], NoDecode] = Field(
        [DEFAULT_JUDGE], description="Who compares two responses: provider/model; repeatable."
    )
    base_run: str = Field(
        "", description="Judge: the run whose model wrote the base responses, with its own chains."
    )
    tuned_run: str = Field(
        "", description="Judge: the run whose model wrote the fine-tuned responses."
    )
    device: str = Field(
        "cpu",
        pattern=r"^(cpu|cuda(:\d+)?)$",
        description="Where a local model runs: cpu, cuda, cuda:1 …",
    )
    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="Type of a local model's numbers."
    )
    backend: Literal["auto", "fast", "hooks", "transformer_lens"] = Field(
        "auto", description="How a local model is patched: auto, fast, hooks, transformer_lens."
    )
    limit: int | None = Field(None, ge=1, description="Only the first N items.")
    good_lines: bool = Field(
        False, description="Run the good lines of a suite that has defective ones."
    )
    max_concurrent: int = Field(10, ge=1, le=1000, description="Requests in flight at once.")
    max_cost: float = Field(
        10.0,
        ge=0,
        allow_inf_nan=False,
        validation_alias=AliasChoices("max_cost", "COTLAB_MAX_COST", "FAITHCHECK_MAX_COST"),
        description="Cap on the spend in US dollars.",
    )
    max_requests_per_minute: int | None = Field(
        60, ge=1, description="Rate limit (none for a local model)."
    )
    max_tokens_per_minute: int | None = Field(
        None, ge=1, description="Rate limit in tokens, input and output together."
    )
    max_tries: int = Field(
        10, ge=1, le=100, description="Tries of a request that fails; a 429 does not count."
    )
    timeout_s: float = Field(
        120.0, gt=0, le=86_400, allow_inf_nan=False, description="Seconds to wait for a reply."
    )
    batch: bool = Field(
        False,
        description="Use the vendor's batch interface: half the price, an answer within a day.",
    )
    prices: str | None = Field(
        None, description="YAML file of prices that the bundled table lacks or has wrong."
    )
    fail_on_error: float | None = Field(
        None, ge=0, description="Exit with code 3 past this share (< 1) or count of failed items."
    )
    allow_unpriced: bool = Field(
        False, description="Run a model whose price is unknown; its spend is then unknown too."
    )
    redact_prompts: bool = Field(
        False, description="Keep hashes instead of prompts, chains and replies."
    )
    profile: Literal["", "phase1", "phase2", "phase3", "phase4", "phase5"] = Field(
        "",
        description=(
            "Rollout phase: adds the scorers of its parts and the composite. phase1 is C and V,"
            " phase2 adds F."
        ),
    )
    weights: str | None = Field(
        None, description="YAML file of the composite's weights: category, then part: number."
    )
    set: Annotated[dict[str, str], NoDecode] = Field(
        default_factory=dict,
        description=(
            "SCORER.OPTION=value, for what a scorer can be told beyond the flags; repeatable."
        ),
    )
    tag: Annotated[dict[str, str], NoDecode] = Field(
        default_factory=dict, description="key=value, kept with the run; repeatable."
    )
    _server_named_by: str = ""

    @property
    def server_named_by(self) -> str:
        """The file that ``base_url`` comes from; empty where the user has given it. It is no option, and is not stored."""
        return self._server_named_by

    @field_validator("scorer", "mode", "source", "layers", "judge", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """In the environment a list is written with commas."""
        return (
            [part.strip() for part in value.split(",") if part.strip()]
            if isinstance(value, str)
            else value
        )

    @model_validator(mode="after")
    def _only_the_profile(self) -> RunConfig:
        """A profile brings its scorers, so that of a run that names none is not added to them."""
        if self.profile and "scorer" not in self.model_fields_set:
            self.scorer = []
        return self

    @field_validator("tag", "set", mode="before")
    @classmethod
    def _paired(cls, value: Any) -> Any:
        """In the environment pairs are written key=value, with commas between them."""
        if not isinstance(value, str):
            return value
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(key.strip() and equals for key, equals, _ in pairs):
            raise ValueError("they are written key=value,key=value")
        return {key.strip(): text.strip() for key, _, text in pairs}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        yaml = cls.model_config.get("yaml_file")
        return (
            init_settings,
            EnvSettingsSource(cls, env_ignore_empty=True),
            *([YamlConfigSettingsSource(cls)] if yaml else []),
        )


def read_config(flags: Mapping[str, Any], file: Path | None = None) -> RunConfig:
    """The configuration of a run from the flags that were given, and a YAML file where one is named.

    Raises
    ------
    ConfigError
        If a value cannot be used; the message names each option.
    """
    _check_names(flags, "the options")
    kind: type[RunConfig] = RunConfig
    if file is not None:
        if not file.is_file():
            raise ConfigError(f"{file}: no such configuration file.")
        _check_names(_yaml_names(file), str(file))
        kind = type(
            "RunConfig",
            (RunConfig,),
            {"model_config": RunConfig.model_config | {"yaml_file": file}},
        )
    config = _validated(
        kind, {name: value for name, value in flags.items() if value is not None and value != []}
    )
    if config.base_url and not flags.get("base_url"):
        in_environment = any(
            name.upper() == "COTLAB_BASE_URL" and value for name, value in os.environ.items()
        )
        config._server_named_by = named_by_file(config.base_url) or (
            "" if in_environment else str(file or "")
        )
    return config


def config_again(stored: Mapping[str, Any], flags: Mapping[str, Any]) -> RunConfig:
    """The configuration of a run that is resumed: as it was stored, with the limits and gates that are given now."""
    given = {name: value for name, value in flags.items() if value is not None and value != []}
    return _validated(
        RunConfig, {**{n: v for n, v in stored.items() if n in RunConfig.model_fields}, **given}
    )


def _validated(kind: type[RunConfig], values: Mapping[str, Any]) -> RunConfig:
    try:
        return kind(**values)
    except ValidationError as error:
        lines = [
            f"{'.'.join(map(str, e['loc'])) or 'configuration'}: {e['msg']} (got {e['input']!r})"
            for e in error.errors()
        ]
        raise ConfigError("The configuration cannot be used.\n" + "\n".join(lines)) from error
    except (ValueError, TypeError, OSError) as error:
        raise ConfigError(f"The configuration cannot be read: {error}") from error


def as_yaml(config: Mapping[str, Any]) -> str:
    """The file for ``--config`` that repeats a run: every option of its stored configuration, unknown ones left out."""
    known = {name: config[name] for name in RunConfig.model_fields if name in config}
    text: str = yaml.safe_dump(known, allow_unicode=True, sort_keys=False)
    if set(text) & _BREAKS:
        text = yaml.safe_dump(known, allow_unicode=False, sort_keys=False)
    return text


_BREAKS = set("\x85\u2028\u2029")
"""Ends of a line to YAML, which folds them unless they are escaped."""


def _yaml_names(file: Path) -> list[str]:
    """The options that a YAML file sets; ConfigError where it is not a mapping of them."""
    try:
        data = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, ValueError, OSError, RecursionError) as error:
        raise ConfigError(
            f"{file}: not a YAML file: {' '.join(str(error).split())[:200]}"
        ) from error
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"{file}: options are written as name: value, one a line.")
    return [str(name) for name in data or {}]


def _check_names(names: Iterable[str], where: str) -> None:
    for name in names:
        if name not in RunConfig.model_fields:
            raise UnknownName(f"option in {where}", name, tuple(RunConfig.model_fields))
