"""The server of each role: who names it, which key it gets, what its model costs.

An address or a key that is given for one role is neither used nor needed for another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.types import ModelRef
from cotlab.metrics.judge.scorer import JUDGE_ROLE
from cotlab.providers.capabilities import provider_info
from cotlab.providers.keys import check_variable_name
from cotlab.run.config import ROLE_OPTIONS, RunConfig
from cotlab.run.roles import listed_models, option_of_role, selected_scorers
from cotlab.run.transport.budget import MAX_PRICE_USD, Price

SHIPPED_ROLES = ("subject", JUDGE_ROLE, "verifier", "paraphraser", "embedder")
_FURTHER_JUDGE_PATTERN = re.compile(rf"{JUDGE_ROLE}_[2-9]\d*")
"""Role of a judge after the first: judge_2."""


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


def server_of(ref: ModelRef, config: RunConfig) -> RoleServer:
    """Return how the server of a model is reached: of a run's configuration, else the default.

    Raises
    ------
    ConfigError
        If two roles give one model at one address different keys or prices.
    """
    servers = [
        _role_server(role, role_ref, config)
        for role, role_ref in listed_models(config)
        if _address(role_ref) == _address(ref)
    ]
    if not servers:
        return RoleServer(address_file=config.base_url_file)
    for server in servers[1:]:
        if (server.key_variable, server.price) != (servers[0].key_variable, servers[0].price):
            raise ConfigError(
                f"{ref} is the {servers[0].role or 'subject'} and the {server.role or 'subject'} at"
                " one address: give both the same --role-key-variable and --role-price."
            )
    return servers[0]


def check_role_options(config: RunConfig) -> None:
    """Raise where an option names a role that no run has, or a value that is none."""
    known_roles = (
        *SHIPPED_ROLES,
        *(option_of_role(role) for scorer in selected_scorers(config) for role in scorer.roles),
    )
    for option in ROLE_OPTIONS:
        flag = "--" + option.replace("_", "-")
        for role, value in getattr(config, option).items():
            if role not in known_roles and not _FURTHER_JUDGE_PATTERN.fullmatch(role):
                raise UnknownName(f"role in {flag}", role, tuple(dict.fromkeys(known_roles)))
            if option == "role_key_variable":
                check_variable_name(value, f"{flag} {role}")
            elif option == "role_price":
                _parse_price(value, role)
    if "subject" in config.role_base_url:
        raise ConfigError("--role-base-url subject: the subject's address is --base-url.")


def _role_server(role: str, ref: ModelRef, config: RunConfig) -> RoleServer:
    is_subject = role == "subject"
    variable = config.role_key_variable.get(role)
    if variable is None and not is_subject and not _has_provider_key(ref, config):
        variable = ""
    price_text = config.role_price.get(role)
    return RoleServer(
        "" if is_subject else role,
        variable,
        config.role_file("role_base_url", role)
        if role in config.role_base_url
        else config.base_url_file,
        config.role_file("role_key_variable", role),
        _parse_price(price_text, role) if price_text else None,
    )


def _has_provider_key(ref: ModelRef, config: RunConfig) -> bool:
    """Return whether a model's server may get the provider's own key.

    A vendor's key is bound to the vendor's hosts. That of servers which the user names is for one
    server: the subject's, else the one that all roles of that provider have.
    """
    info = provider_info(ref.provider)
    if info.hosts or not info.key_variable:
        return True
    same_provider = [
        (role, role_ref)
        for role, role_ref in listed_models(config)
        if role_ref.provider == ref.provider and role not in config.role_key_variable
    ]
    subject_addresses = {r.base_url for role, r in same_provider if role == "subject"}
    addresses = subject_addresses or {r.base_url for _, r in same_provider}
    return addresses == {ref.base_url}


def _address(ref: ModelRef) -> tuple[str, str, str | None]:
    return ref.provider, ref.name, ref.base_url


def _parse_price(text: str, role: str) -> Price:
    try:
        price_in, price_out = (Decimal(part.strip()) for part in text.split("/"))
    except (ValueError, InvalidOperation):
        price_in = price_out = Decimal(-1)
    if not all(n.is_finite() and 0 <= n <= MAX_PRICE_USD for n in (price_in, price_out)):
        raise ConfigError(
            f"--role-price {role}={text}: write {role}=INPUT/OUTPUT in dollars a million tokens,"
            " like 0.5/1.5."
        )
    return Price(price_in, price_out, source="--role-price")
