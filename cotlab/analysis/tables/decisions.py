"""The table of the figure of decisions: what thresholds of r_cal release, and at what error."""

from __future__ import annotations

from collections.abc import Iterable

from cotlab.analysis.tables.declare import FigureChoice, FigureData, FigureTable, MissingFigure
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.reliability.policy import DEFAULT_DOMAIN, PolicyError, Thresholds, parse_thresholds
from cotlab.reliability.volumes import threshold_points
from cotlab.review.release.decide import load_policy, load_scored_items


def threshold_domains(domains: Iterable[str]) -> list[str]:
    """Return the domains that can have thresholds: "default", for all, and those of answers.

    One that is named like the default's key is left out.
    """
    return [DEFAULT_DOMAIN, *sorted(set(domains) - {"", DEFAULT_DOMAIN})]


def _volumes_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    if "r_raw" not in view.metrics:
        return MissingFigure("the run has no scores of the scorer composite")
    table = load_scored_items(view.store, [view.run_id])
    if table.empty:
        return MissingFigure("no item has been scored")
    if table["r_cal"].isna().all():
        return MissingFigure(str(table["told"].iloc[0]) or "no calibrator gives a probability")
    domain = choice.select("domain", threshold_domains(table["domain"]))
    if domain != DEFAULT_DOMAIN:
        table = table[table["domain"] == domain]
    if choice.thresholds is None:
        bounds = load_policy(view.store).domain_thresholds(domain)
    else:
        bounds = _chosen_thresholds(choice.thresholds)
    low, high = (bounds.low, bounds.high) if bounds else (None, None)
    note = "" if domain == DEFAULT_DOMAIN else f"Domain {domain}."
    chosen = FigureChoice(domain=domain, thresholds=choice.thresholds)
    return FigureData(threshold_points(table, low, high), note, chosen)


def _chosen_thresholds(text: str) -> Thresholds:
    try:
        return parse_thresholds(text)
    except PolicyError as error:
        raise ConfigError(str(error)) from error


THRESHOLD_VOLUMES = FigureTable("threshold_volumes", "run", _volumes_data, ("r_raw",))
