"""Every metric has a card that says what it is, is registered, and is held to the laws."""

from __future__ import annotations

import ast
import math
import pkgutil
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path

import pytest

import cotlab.metrics
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.keys import canonical_json
from cotlab.core.program import Option, Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.types import MetricCard, ModelRef
from tests.metrics import test_laws
from tests.support import law_sets

KINDS = {"complete", "embed", "entail", "logprob", "locate", "patched", "step_rewards"}
LOCAL = ModelRef("organism", "r100", form="continuation")
MODULES = [m.name for m in pkgutil.walk_packages(cotlab.metrics.__path__, "cotlab.metrics.")]


def cards_of(scorer: Scorer) -> tuple[MetricCard, ...]:
    return (*scorer.cards, *(statistic.card for statistic in scorer.statistics))


ALL_CARDS = [card for name in SCORERS for card in cards_of(SCORERS[name])]
each_card = pytest.mark.parametrize("card", ALL_CARDS, ids=lambda card: card.name)
each_scorer = pytest.mark.parametrize("name", list(SCORERS))


# --- the registry is complete


@pytest.mark.parametrize("module", MODULES)
def test_each_scorer_and_card_of_a_module_is_registered(module: str) -> None:
    """A scorer without its line in the registry would be in no law and in no run."""
    registered = {id(SCORERS[name]) for name in SCORERS}
    names = {card.name for card in ALL_CARDS}
    for attribute, value in vars(import_module(module)).items():
        if isinstance(value, Scorer):
            assert id(value) in registered, f"add {attribute} to SCORERS"
        if isinstance(value, MetricCard):
            assert value.name in names, f"{attribute} is the card of no scorer"


def test_every_scorer_is_held_to_every_law() -> None:
    """A new scorer is in all laws with its default options, without an entry anywhere."""
    laws = {
        name: law
        for name, law in vars(test_laws).items()
        if name.startswith("test_") and "given_options" in signature(law).parameters
    }
    assert len(laws) == 10
    for law in laws.values():
        cases = [
            getattr(case, "values", case)
            for mark in law.pytestmark
            if mark.name == "parametrize" and mark.args[0] == ("name", "given_options")
            for case in mark.args[1]
        ]
        assert {name for name, _ in cases} == set(SCORERS)
    assert {name for name, _ in test_laws.FIRST} == set(SCORERS)


def test_law_sets_name_only_what_there_is() -> None:
    special = (
        law_sets.ZERO_WITHOUT_CHANGE
        | law_sets.WITHOUT_EVIDENCE
        | law_sets.ONLY_WHERE_FOUND
        | law_sets.IF_IT_IS_SO
        | law_sets.RENORMALISED
    )
    assert special <= {card.name for card in ALL_CARDS}
    assert {*law_sets.CASES, *law_sets.CONSTANTS, *law_sets.NEEDS_NO_CHAIN} <= set(SCORERS)


def test_a_metric_has_one_card_and_one_scorer() -> None:
    names = [card.name for card in ALL_CARDS]
    assert sorted(names) == sorted(set(names))


def test_no_family_imports_another_familys_scorer() -> None:
    """What scorers share is in the kit; who runs another scorer takes it from the registry."""
    scorers = {SCORERS.require(name).partition(":")[0] for name in SCORERS}
    for module in MODULES:
        found = find_spec(module)
        assert found is not None and found.origin is not None
        for node in ast.walk(ast.parse(Path(found.origin).read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and family(node.module):
                imported = {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
                others = {name for name in imported & scorers if family(name) != family(module)}
                assert not others, f"{module} imports {others}"


def family(module: str) -> str:
    """The metric family of a module of cotlab.metrics; empty for any other module."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["cotlab", "metrics"] and len(parts) > 2 else ""


# --- what a card says


@each_card
def test_each_card_says_what_it_is(card: MetricCard) -> None:
    for text in (card.name, card.symbol, card.formula, card.undefined, card.source, card.not_shown):
        assert text.strip() == text != ""
    assert math.isfinite(card.lo) and math.isfinite(card.hi) and card.lo < card.hi
    assert card.better in ("higher", "lower", "neither")
    assert card.level in ("step", "chain", "item", "span", "draw", "run")
    assert card.needs and set(card.needs) <= KINDS


@each_scorer
def test_each_scorer_declares_itself(name: str) -> None:
    scorer: Scorer = SCORERS[name]
    assert (scorer.name, scorer.version >= 1, bool(scorer.cards)) == (name, True, True)
    canonical_json(scorer.options)
    assert {card.level for card in scorer.cards}.isdisjoint({"run"})
    assert {statistic.card.level for statistic in scorer.statistics} <= {"run"}
    known = {card.name for card in scorer.cards}
    assert all(set(statistic.input_metrics) <= known for statistic in scorer.statistics)


# --- options


@each_scorer
def test_each_option_is_declared_and_its_default_is_valid(name: str) -> None:
    scorer: Scorer = SCORERS[name]
    assert set(scorer.declared_options) == set(scorer.options)
    scorer.validate_options(scorer.options, LOCAL)
    for option in scorer.declared_options.values():
        assert option.about.strip() == option.about != "" and "\n" not in option.about


LIMITED = [
    (name, key)
    for name in SCORERS
    for key, one in SCORERS[name].declared_options.items()
    if one.limits_text
]


@pytest.mark.parametrize(("name", "key"), LIMITED)
def test_a_value_outside_the_limits_is_refused_and_the_message_says_all(
    name: str, key: str
) -> None:
    scorer: Scorer = SCORERS[name]
    option = scorer.declared_options[key]
    below = [limit - 1 for limit in (option.lo, option.above) if limit is not None]
    above = [limit + 1 for limit in (option.hi, option.below) if limit is not None]
    for number in (*below, *above, *(limit for limit in (option.above, option.below) if limit)):
        listed = isinstance(option.default, tuple)
        entry = str(number) if listed or isinstance(option.default, str) else number
        with pytest.raises(ConfigError) as caught:
            scorer.validate_options({**scorer.options, key: (entry,) if listed else entry}, LOCAL)
        message = str(caught.value)
        assert (option.flag or f"{name}.{key}") in message
        assert option.limits_text in message and str(number) in message and option.about in message


@pytest.mark.parametrize(
    ("default", "wrong", "kind"),
    [
        (True, 1, "true or false"),
        (2, 2.5, "a whole number"),
        (2, True, "a whole number"),
        (0.5, "0.5", "a number"),
        (0.5, False, "a number"),
        ("text", 3, "a text"),
        (("a",), "a", "a list"),
        ({}, [], "a mapping"),
    ],
)
def test_a_value_of_another_type_is_refused(default: object, wrong: object, kind: str) -> None:
    with pytest.raises(ConfigError, match=f"mine.size must be {kind}, got"):
        Option(default, "how large").validate("mine.size", wrong)


def test_names_get_a_suggestion_and_a_list_may_need_an_entry() -> None:
    modes = Option(
        ("remove",), "what is done", choices=("remove", "cut"), entry="mode", required=True
    )
    modes.validate("mine.modes", ["cut", "remove"])
    with pytest.raises(UnknownName, match="Unknown mode 'remov'. Did you mean 'remove'"):
        modes.validate("mine.modes", ["remov"])
    with pytest.raises(ConfigError, match="mine.modes needs at least one entry"):
        modes.validate("mine.modes", [])


@pytest.mark.parametrize("wrong", ["big", "nan", "inf", "", 2.5, -1])
def test_a_number_or_a_name(wrong: object) -> None:
    delta = Option("fitted", "the threshold", choices=("fitted",), lo=0, hi=2)
    for right in ("fitted", "0", "1.5", "2"):
        delta.validate("flags.delta", right)
    with pytest.raises(ConfigError, match="flags.delta must be"):
        delta.validate("flags.delta", wrong)
