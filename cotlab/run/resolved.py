"""What a run decides before it begins, each thing once: scorers, models, servers, prices, plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Scorer
from cotlab.core.provider import AnyProvider, InProcessProvider
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.types import (
    IN_PROCESS_PROVIDERS,
    Endpoint,
    Form,
    ModelRef,
    Plan,
    ScorerSpec,
    Suite,
)
from cotlab.metrics.composite import (
    COMPONENTS_BY_PROFILE,
    COMPONENTS_CHEAP_FIRST,
    OFFLINE_PROFILE,
    SCORER_BY_COMPONENT,
)
from cotlab.metrics.judge import JUDGE_ROLE as JUDGE
from cotlab.metrics.judge import judge_role
from cotlab.metrics.process_reward import PROVIDER as REWARD_PROVIDER
from cotlab.metrics.text_features import NAME as TEXT_FEATURES
from cotlab.metrics.votes import CRITIC_ROLE
from cotlab.providers.capabilities import provider_info
from cotlab.providers.keys import check_server, key_read_from
from cotlab.run.config import RunConfig, run_fields
from cotlab.run.options import DEFAULT_JUDGE, SubjectOptions, VerifierOptions
from cotlab.run.secrets import load_key
from cotlab.run.transport.budget import (
    FREE_PRICE,
    Price,
    context_window,
    price_of,
    read_prices,
)
from cotlab.run.transport.limits import Limits
from cotlab.run.yaml_file import read_yaml
from cotlab.suites.jsonl import ChainSource, SuiteChains
from cotlab.text.steps import SPLITTER_VERSION

SYMBOLIC_VERIFIER = ModelRef("symbolic", "arithmetic-and-units")
NO_SUBJECT = ModelRef("echo", "echo")
"""The subject of a run that asks no model."""
RAW_TEXT_PROVIDER = "openai_compat"
"""The provider whose servers take raw text at /v1/completions."""
FOLDER_VERIFIERS = ("nli", "prm")
"""Providers of verifiers that are given by a folder or hub id: ``nli:FOLDER``, ``prm:FOLDER``."""
NO_MODEL_NAMES = {
    "paraphraser": "rules",
    "verifier": "none",
    "embedder": "none",
    "equivalence": "none",
}
"""Value of a role that uses no model."""
CRITIC_PREFIX = f"{CRITIC_ROLE}:"
"""What precedes the model of a verifier that is asked about whole chains."""
_CRITIC_SCORERS = ("critic", "rubric")
"""Scorers that can do nothing without a critic."""
CHAIN_TOKENS_IN_PROCESS, CHAIN_TOKENS_REMOTE = 512, 2_048
"""Default limit of the output tokens of a chain; remote models write longer ones."""
SHIPPED_ROLES = ("subject", JUDGE, "verifier", "paraphraser", "embedder")
_FOLDER_PREFIXES = tuple(f"{provider}:" for provider in FOLDER_VERIFIERS)
_MODEL_EXAMPLES = {
    "verifier": "nli:FOLDER, prm:FOLDER or anthropic/claude-opus-4-1",
    "embedder": "embedder/all-MiniLM-L6-v2",
    "judge": DEFAULT_JUDGE,
}


@dataclass(frozen=True, slots=True)
class RoleServer:
    """How the server of a model is reached besides its address."""

    role: str = ""
    """The role, for messages; empty for the subject."""
    key_variable: str | None = None
    """Variable of the key: None for the provider's own, "" for no key."""
    address_file: str = ""
    """File that names the address; empty where the user does."""
    variable_file: str = ""
    """File that names the variable; empty where the user does."""
    price: Price | None = None
    """Price of the model; None where it is looked up."""


def open_provider(
    ref: ModelRef, server: RoleServer | None = None, settings: Mapping[str, str] | None = None
) -> AnyProvider:
    """Return the provider of a model; UnknownName or ConfigError where there is none.

    A server that a file names, and not the user, gets no key of the user, and one of a role no key
    of another. ``settings`` are further arguments of the provider.
    """
    server = server or RoleServer()
    if server.key_variable:
        load_key(server.key_variable)
    with key_read_from(server.key_variable):
        check_server(
            ref.provider, ref.base_url, server.address_file, server.variable_file, server.role
        )
        provider: AnyProvider = PROVIDERS[ref.provider](ref, **(settings or {}))
    return provider


class ResolvedRun:
    """What a configuration decides, each thing once; it is made once and handed down."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        """The configuration, which is stored with the run."""

    @cached_property
    def subject(self) -> ModelRef:
        """Return the model that is measured; its provider adds revision and form once opened.

        Raises
        ------
        ConfigError
            If requests are to be raw text and the provider does not take it.
        """
        if self.is_without_model:
            return NO_SUBJECT
        options: SubjectOptions = self.config.of_role("subject")
        is_base_model = options.chat_template == "none"
        endpoint: Endpoint = (
            "completions"
            if options.form == "completions" or (is_base_model and options.form == "auto")
            else "chat"
        )
        if endpoint == "chat" and is_base_model:
            raise ConfigError(
                "--role subject.chat_template=none goes with subject.form=completions, not with"
                " chat."
            )
        if endpoint == "completions" and self.config.provider != RAW_TEXT_PROVIDER:
            raise ConfigError(
                f"--role subject.form=completions goes with --provider {RAW_TEXT_PROVIDER}, not"
                f" with {self.config.provider}."
            )
        form: Form = (
            "continuation"
            if self.config.provider == "organism" or is_base_model
            else "prefill"
            if self.config.given == "prefix"
            else "chat"
        )
        return ModelRef(
            self.config.provider,
            self.config.model,
            base_url=self.config.base_url,
            form=form,
            endpoint=endpoint,
        )

    @cached_property
    def models(self) -> dict[str, ModelRef]:
        """Return the subject, and a model for each role of the scorers that is filled.

        In a run that only judges, the first judge is the subject.

        Raises
        ------
        ConfigError
            If a role is given something that names no model.
        """
        self._check_verifier()
        judges = dict.fromkeys(ref for role, ref in self.listed_models if _is_judge(role))
        if JUDGE in self.roles and not judges:
            raise ConfigError(f"The scorer judge needs a judge: --judge {DEFAULT_JUDGE}")
        return {
            "subject": next(iter(judges)) if self._only_judges else self.subject,
            **{self._model_role(role): ref for role, ref in self._role_models.items()},
            **{judge_role(index): ref for index, ref in enumerate(judges)},
        }

    @cached_property
    def listed_models(self) -> list[tuple[str, ModelRef]]:
        """Return role and model of each server that the configuration names.

        A role that the subject plays is left out; a judge that is named twice stands there twice.
        """
        judges = [(judge_role(i), text) for i, text in enumerate(self.config.judge)]
        return [
            *([] if self._only_judges else [("subject", self.subject)]),
            *(pair for pair in self._role_models.items() if not self.is_played_by_subject(pair[0])),
            *(
                (role, self._require_model(role, text))
                for role, text in (judges if JUDGE in self.roles else ())
            ),
        ]

    @cached_property
    def _role_models(self) -> dict[str, ModelRef]:
        """Return the model of each role of the scorers that is filled, judges aside."""
        models = {role: self._role_model(role) for role in self.roles if role != JUDGE}
        return {role: ref for role, ref in models.items() if ref is not None}

    @cached_property
    def roles(self) -> list[str]:
        """Return the roles of the scorers, each once, as their options name them."""
        return list(
            dict.fromkeys(
                option_of_role(role) for scorer in self.scorers for role in self._roles_of(scorer)
            )
        )

    def _model_role(self, role: str) -> str:
        """Return the role that a scorer finds the model under: a critic is no verifier of links."""
        is_critic = role == "verifier" and self.config.verifier.startswith(CRITIC_PREFIX)
        return CRITIC_ROLE if is_critic else role

    def is_played_by_subject(self, role: str) -> bool:
        """Return whether the configuration gives a role to the subject."""
        return self._model_text(option_of_role(role)) == "subject"

    def _model_text(self, role: str) -> str:
        """Return what the option of a role says, a critic's model without its prefix."""
        text: str = getattr(self.config.of_role(role), "model", "") or getattr(
            self.config, role, NO_MODEL_NAMES.get(role, "")
        )
        return text.removeprefix(CRITIC_PREFIX) if role == "verifier" else text

    def _check_verifier(self) -> None:
        """Raise where a scorer has no verifier of its kind, or a critic cannot be asked.

        An even number of votes could tie.
        """
        verifier, names = self.config.verifier, [scorer.name for scorer in self.scorers]
        votes = self.config.of_role("verifier").votes
        if votes % 2 == 0:
            raise ConfigError(f"--role verifier.votes={votes}: give an odd number.")
        is_critic = verifier.startswith(CRITIC_PREFIX)
        if not is_critic and (scorers := [name for name in names if name in _CRITIC_SCORERS]):
            raise ConfigError(
                f"The scorer {scorers[0]} needs a critic: --verifier {CRITIC_PREFIX}{DEFAULT_JUDGE}"
            )
        text = self._model_text("verifier")
        if is_critic and (text == "none" or text.startswith("nli/")):
            raise ConfigError(
                f"--verifier {verifier}: a critic writes text, so it is"
                f" {CRITIC_PREFIX}subject or like {CRITIC_PREFIX}{DEFAULT_JUDGE}."
            )
        if "process_reward" in names and not verifier.startswith(
            (f"{REWARD_PROVIDER}:", f"{REWARD_PROVIDER}/")
        ):
            raise ConfigError(
                "The scorer process_reward needs a process reward model: --verifier prm:FOLDER, or"
                " --verifier prm:prm-a, which ships with cotlab."
            )

    @cached_property
    def _only_judges(self) -> bool:
        return [scorer.name for scorer in self.scorers] == [JUDGE]

    @cached_property
    def scorers(self) -> list[Scorer]:
        """Return the scorers of the run, then those of its profile, then the composite.

        With progressive evaluation the composite runs alone: the scorers of its components would
        send the requests that it saves.
        """
        names = list(self.config.scorer)
        if self.config.profile:
            is_progressive = (
                self.config.set.get("composite.progressive", "").strip().lower() == "true"
            )
            names += [
                SCORER_BY_COMPONENT[part]
                for part in COMPONENTS_CHEAP_FIRST
                if part in COMPONENTS_BY_PROFILE[self.config.profile] and not is_progressive
            ] + ["composite"]
        return [SCORERS[name] for name in dict.fromkeys(names)]

    @cached_property
    def scorer_names(self) -> tuple[str, ...]:
        """Return the names of the scorers and of their components."""
        names = (name for scorer in self.scorers for name in (scorer.name, *scorer.components))
        return tuple(dict.fromkeys(names))

    def chain_source(self, scorer: Scorer) -> ChainSource:
        """Return whose chain a scorer measures.

        Without a choice, the composite and its components measure the model's own chain (that of a
        suite says nothing of the model), and the others, as an offline profile, that of the suite.
        """
        if self.config.chain != "auto":
            return self.config.chain
        if self.is_offline:
            return "reference"
        is_component = any(
            scorer.name in (composite.name, *composite.components)
            for composite in self.scorers
            if composite.components
        )
        return "own" if is_component else "reference"

    @cached_property
    def suite_chains(self) -> SuiteChains:
        """Return whose chains those of the suite are to be.

        ``own`` where no scorer measures a chain of the suite; ``auto`` where a suite without any
        chain can be measured on the model's own.
        """
        if self.config.chain == "own" or self._chain_sources == {"own"}:
            return "own"
        return "auto" if self.config.chain == "auto" and not self.is_offline else "reference"

    def for_suite(self, suite: Suite) -> ResolvedRun:
        """Return this run; for a suite without chains, with ``own`` in place of ``auto``."""
        has_chains = any(item.steps for item in suite.items)
        if self.suite_chains != "auto" or has_chains or not self._chain_sources:
            return self
        return self.with_options(chain="own")

    def with_options(self, **options: Any) -> ResolvedRun:
        """Return this run with other values of options."""
        return ResolvedRun(self.config.model_copy(update=options))

    @cached_property
    def _chain_sources(self) -> set[ChainSource]:
        """Return whose chains the scorers measure; empty where none reads one."""
        return {self.chain_source(scorer) for scorer in self.scorers if "chain" in scorer.options}

    @property
    def is_offline(self) -> bool:
        """Return whether the profile reads the suite's chains without a model."""
        return self.config.profile == OFFLINE_PROFILE

    @cached_property
    def is_without_model(self) -> bool:
        """Whether every scorer belongs to an offline profile."""
        return self.is_offline and all(self._is_offline(scorer) for scorer in self.scorers)

    def _is_offline(self, scorer: Scorer) -> bool:
        components = COMPONENTS_BY_PROFILE[OFFLINE_PROFILE]
        return self.is_offline and scorer.name in (
            "composite",
            TEXT_FEATURES,
            *(SCORER_BY_COMPONENT[component] for component in components),
        )

    def _roles_of(self, scorer: Scorer) -> tuple[str, ...]:
        """Return the roles that a scorer may ask: in an offline profile those that verify."""
        if not self._is_offline(scorer):
            return scorer.roles
        return tuple(role for role in scorer.roles if role in ("symbolic", "verifier"))

    def _role_model(self, role: str) -> ModelRef | None:
        if role == "symbolic":
            return SYMBOLIC_VERIFIER
        model_text = self._model_text(role)
        if model_text == NO_MODEL_NAMES.get(role):
            return None
        if self.is_offline and role == "verifier":
            ref = self._parse_model(role, model_text)
            if ref is None or ref.provider not in FOLDER_VERIFIERS:
                raise ConfigError(
                    "The profile offline asks no model: --verifier none, nli:FOLDER or prm:FOLDER,"
                    f" not {model_text!r}."
                )
        if model_text == "subject" and role != "embedder":
            if self._base_url_of(role):
                raise ConfigError(
                    f"--role {role}.base_url: the {role} is the subject, whose address is"
                    " --base-url."
                )
            return self.subject
        if role == "embedder" and model_text and self._parse_model(role, model_text) is None:
            return ModelRef("embedder", model_text)
        return self._require_model(role, model_text)

    def _parse_model(self, role: str, model_text: str) -> ModelRef | None:
        """Return the model that ``provider/model`` names, at its role's address; None without one.

        A folder or hub id may follow a colon too: ``nli:FOLDER``.
        """
        separator = ":" if model_text.startswith(_FOLDER_PREFIXES) else "/"
        provider, _, name = model_text.partition(separator)
        if not name or provider not in PROVIDERS:
            return None
        form: Form = "continuation" if provider == "organism" else "chat"
        # In a run that only judges, the judges are the subject.
        is_subject = self._only_judges and provider == self.config.provider
        base_url = self._base_url_of(role) or (self.config.base_url if is_subject else None)
        return ModelRef(provider, name, base_url=base_url, form=form)

    def _base_url_of(self, role: str) -> str | None:
        """Return the address that a role other than the subject has of its own."""
        address: str | None = getattr(self.config.of_role(role), "base_url", None)
        return address

    def _require_model(self, role: str, model_text: str) -> ModelRef:
        if (ref := self._parse_model(role, model_text)) is not None:
            if ref.provider == RAW_TEXT_PROVIDER and not ref.base_url:
                raise ConfigError(
                    f"The {role} {model_text} needs the address of its server: --role"
                    f" {role}.base_url=http://127.0.0.1:8001/v1"
                )
            return ref
        option = role.partition("_")[0]
        flag = f"--{option}" if hasattr(self.config, option) else f"--role {option}.model"
        alternatives = f"{NO_MODEL_NAMES[role]}, subject or " if role in NO_MODEL_NAMES else ""
        raise ConfigError(
            f"{flag} takes {alternatives}provider/model, like"
            f" {_MODEL_EXAMPLES.get(option, 'openai/gpt-4.1')}; got {model_text!r}."
        )

    def server_of(self, ref: ModelRef) -> RoleServer:
        """Return how the server of a model is reached: of its role, else the default.

        Raises
        ------
        ConfigError
            If two roles give one model at one address different keys or prices.
        """
        servers = [
            self._role_server(role, role_ref)
            for role, role_ref in self.listed_models
            if _address(role_ref) == _address(ref)
        ]
        if not servers:
            return RoleServer(address_file=self.config.file_of("base_url"))
        for server in servers[1:]:
            if (server.key_variable, server.price) != (servers[0].key_variable, servers[0].price):
                raise ConfigError(
                    f"{ref} is the {servers[0].role or 'subject'} and the"
                    f" {server.role or 'subject'} at one address: give both the same"
                    " key_variable and price by --role."
                )
        return servers[0]

    def check_role_options(self) -> None:
        """Raise where an option names a role that no run has."""
        known_roles = (
            *SHIPPED_ROLES,
            *(option_of_role(role) for scorer in self.scorers for role in scorer.roles),
        )
        for role in dict.fromkeys(entry.partition(".")[0] for entry in self.config.role):
            if role not in known_roles and not _is_judge(role):
                raise UnknownName("role in --role", role, tuple(dict.fromkeys(known_roles)))

    def _role_server(self, role: str, ref: ModelRef) -> RoleServer:
        config, options, is_subject = self.config, self.config.of_role(role), role == "subject"
        variable = options.key_variable
        if variable is None and not is_subject and not self._has_provider_key(ref):
            variable = ""
        return RoleServer(
            "" if is_subject else role,
            variable,
            config.file_of(f"role.{role}.base_url")
            if self._base_url_of(role)
            else config.file_of("base_url"),
            config.file_of(f"role.{role}.key_variable"),
            options.model_price,
        )

    def _has_provider_key(self, ref: ModelRef) -> bool:
        """Return whether a model's server may get the provider's own key.

        A vendor's key is bound to the vendor's hosts. That of servers which the user names is for
        one server: the subject's, else the one that all roles of that provider have.
        """
        info = provider_info(ref.provider)
        if info.hosts or not info.key_variable:
            return True
        same_provider = [
            (role, role_ref)
            for role, role_ref in self.listed_models
            if role_ref.provider == ref.provider and self.config.of_role(role).key_variable is None
        ]
        subject_addresses = {r.base_url for role, r in same_provider if role == "subject"}
        addresses = subject_addresses or {r.base_url for _, r in same_provider}
        return addresses == {ref.base_url}

    def open_provider(self, ref: ModelRef) -> AnyProvider:
        """Return the provider of a model of the run, with what the configuration says of it.

        A model in this process is opened on the device, in the dtype and with the backend that is
        named.
        """
        subject: SubjectOptions = self.config.of_role("subject")
        device, settings = subject.device, dict[str, str]()
        if ref.provider in IN_PROCESS_PROVIDERS:
            settings = {"device": device, "dtype": subject.dtype, "backend": subject.backend}
        elif ref.provider == REWARD_PROVIDER:
            dtype = self.config.of_role("verifier").dtype or subject.dtype
            settings = {"device": device, "dtype": dtype}
        elif ref.provider == "embedder":
            settings = {"dtype": self.config.of_role("embedder").dtype}
        return open_provider(ref, self.server_of(ref), settings)

    def open_providers(
        self, models: Mapping[str, ModelRef] | None = None
    ) -> dict[str, AnyProvider]:
        """Return the provider of each role; two roles of one model share it."""
        models = self.models if models is None else models
        provider_by_model = {ref: self.open_provider(ref) for ref in dict.fromkeys(models.values())}
        return {role: provider_by_model[ref] for role, ref in models.items()}

    def price_of(self, ref: ModelRef) -> Price:
        """Return the price of a model: of its role, the price file, or the bundled table."""
        role_price, config = self.server_of(ref).price, self.config
        prices = {**self._price_file, **({str(ref): role_price} if role_price else {})}
        return price_of(
            ref, allow_unpriced=config.allow_unpriced, prices=prices, batch=config.batch
        )

    def provider_prices(self, providers: Iterable[AnyProvider]) -> dict[ModelRef, Price]:
        """Return the price of each provider's model; one in this process is free."""
        return {
            provider.ref: FREE_PRICE
            if isinstance(provider, InProcessProvider)
            else self.price_of(provider.ref)
            for provider in providers
        }

    @cached_property
    def _price_file(self) -> Mapping[str, Price]:
        return read_prices(self.config.prices)

    @cached_property
    def limits(self) -> Limits:
        """Return the limits of requests, time and money."""
        return Limits(
            concurrency=self.config.max_concurrent,
            requests_per_minute=self.config.max_requests_per_minute,
            tokens_per_minute=self.config.max_tokens_per_minute,
            cap_micro=round(self.config.max_cost * 1e6),
            max_tries=self.config.max_tries,
            timeout_s=self.config.timeout_s,
        )

    def plan(self, suite: Suite, models: Mapping[str, ModelRef] | None = None) -> Plan:
        """Return what the run does on ``suite``; every scorer checks its options here.

        ``models`` are those of the opened providers, with revision and form.
        """
        models = self.models if models is None else models
        self.check_role_options()
        specs = []
        for name in self.config.set:
            if name.partition(".")[0] not in SCORERS:
                raise UnknownName("scorer in --set", name.partition(".")[0], self.scorer_names)
        for scorer in self.scorers:
            options = self._scorer_options(scorer)
            scorer.validate_options(options, models["subject"])
            specs.append(ScorerSpec(scorer.name, scorer.version, options))
        settings = {
            field.name: getattr(self.config, field.name)
            for field in fields(Plan)
            if field.name in RunConfig.model_fields
        }
        critic: VerifierOptions = self.config.of_role("verifier")
        settings |= {"critic_votes": critic.votes, "critic_tokens": critic.tokens}
        settings["chain_tokens"] = self._chain_tokens(models["subject"])
        return Plan(
            suite.name,
            suite.digest,
            dict(models),
            tuple(specs),
            tags=dict(sorted(self.config.tag.items())),
            splitter_version=SPLITTER_VERSION,
            **settings,
        )

    def _chain_tokens(self, subject: ModelRef) -> int:
        """Return the limit of the output tokens of a chain, never above a context that is known.

        Raises
        ------
        ConfigError
            If the configuration asks for more than the context of the model.
        """
        if provider_info(subject.provider).in_process:
            return self.config.chain_tokens or CHAIN_TOKENS_IN_PROCESS
        context_tokens = context_window(subject)
        if (
            self.config.chain_tokens
            and context_tokens
            and self.config.chain_tokens > context_tokens
        ):
            raise ConfigError(
                f"--chain-tokens {self.config.chain_tokens}: {subject} has a context of"
                f" {context_tokens:,} tokens."
            )
        return self.config.chain_tokens or min(
            CHAIN_TOKENS_REMOTE, context_tokens or CHAIN_TOKENS_REMOTE
        )

    def _scorer_options(self, scorer: Scorer) -> dict[str, Any]:
        """Return a scorer's options: its defaults, then those of the run, then ``--set``."""
        value_by_option: dict[str, Any] = {
            field.setting.scorer_option: getattr(self.config, field.name)
            for field in run_fields().values()
            if field.setting.scorer_option
        }
        value_by_option["chain"] = self.chain_source(scorer)
        value_by_option |= {
            name: list(dict.fromkeys(value_by_option[name])) for name in ("modes", "sources")
        }
        if self.config.profile:
            value_by_option["profile"] = self.config.profile
        value_by_option["parts"] = {
            name: self._scorer_options(SCORERS[name]) for name in scorer.components
        }
        return {
            key: value_by_option.get(key, value) for key, value in scorer.options.items()
        } | self._explicit_options(scorer)

    def _explicit_options(self, scorer_definition: Scorer) -> dict[str, Any]:
        """Return the options of one scorer that ``--set`` gives, each of the type of its default.

        Raises
        ------
        UnknownName, ConfigError
            If an option is named that the scorer lacks, or the value is of another type.
        """
        options = {}
        for name, text in self.config.set.items():
            scorer, _, option = name.partition(".")
            if scorer != scorer_definition.name:
                continue
            if option not in scorer_definition.options:
                raise UnknownName(f"option of {scorer}", option, tuple(scorer_definition.options))
            options[option] = _parse_option(scorer_definition.options[option], text, name)
        return options


def option_of_role(role: str) -> str:
    """Return the option that names the model of a role."""
    return "verifier" if role == CRITIC_ROLE else role


def _is_judge(role: str) -> bool:
    """Return whether a role is judge, judge_2 and so on."""
    return re.fullmatch(rf"{JUDGE}(_[2-9]\d*)?", role) is not None


def _address(ref: ModelRef) -> tuple[str, str, str | None]:
    return ref.provider, ref.name, ref.base_url


def _read_table(file: Path, option: str) -> dict[str, dict[str, Any]]:
    """Return numbers by category of a YAML file; ConfigError where they are no mappings."""
    try:
        weights_by_category = read_yaml(file)
    except (ValueError, OSError) as error:
        raise ConfigError(f"--set {option}={file}: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(weights_by_category, dict) or not all(
        isinstance(part_weights, dict) for part_weights in weights_by_category.values()
    ):
        raise ConfigError(
            f"--set {option}={file}: write a category (or default), and under it a part and its"
            " weight, like C: 0.3"
        )
    return {
        str(category): {str(part): weight for part, weight in part_weights.items()}
        for category, part_weights in weights_by_category.items()
    }


def _parse_option(default: Any, text: str, name: str) -> Any:
    """Parse a value of the type of ``default``; that of a table is a YAML file."""
    if isinstance(default, dict):
        return _read_table(Path(text), name)
    if isinstance(default, list | tuple):
        return [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(default, str) or default is None:
        return text
    try:
        adapter = TypeAdapter(type(default), config=ConfigDict(allow_inf_nan=False))
        return adapter.validate_strings(text.strip())
    except ValidationError as error:
        raise ConfigError(f"--set {name}={text}: {error.errors()[0]['msg']}.") from error


def resolve(run: RunConfig | ResolvedRun) -> ResolvedRun:
    """Return what a configuration decides; what is resolved already stays."""
    return run if isinstance(run, ResolvedRun) else ResolvedRun(run)
