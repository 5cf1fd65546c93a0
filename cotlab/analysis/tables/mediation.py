"""Tables of the figures of mediation, from scores and estimates with their facets as columns."""

from __future__ import annotations

from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import pandas as pd

from cotlab.analysis.tables.declare import with_common_reasons
from cotlab.analysis.view import RunView, with_facet_columns
from cotlab.core.types import DEFAULT_CONTROL, MEDIATION_SOURCES
from cotlab.figures.mediation import DROP_METRICS, span_sort_key
from cotlab.metrics.mediation.indices import headline_reason
from cotlab.metrics.mediation.spread import item_spreads, single_draw_cmis
from cotlab.stats.intervals import interval_columns
from cotlab.store.facet_scores import scores_without_value

FACET_NAMES = ("chain", "given", "source", "control", "span", "keep", "part", "donor")
"""Parts of a facet of the scorer mediation; each becomes a column, empty where a score has none."""
SPAN_METRICS = ("cmi", "share", "mass_lost")
INDEX_METRICS = (
    "cmi",
    "bypass",
    "share",
    "mass_lost",
    "cmi_over_spans",
    "spans_defined",
    "no_cot_effect",
    "validity",
    "placebo_cmi",
    "text_placebo",
    "density",
    "sequentiality",
    "shuffled_cmi",
    "self_shuffle",
    "boundary_sensitivity",
    "boundary_robust",
    "boundary_deviation",
    "control_coverage",
)
NATS_METRICS = ("drop_cot", "drop_control", "no_cot_drop", "baseline_logp")
UNDRAWN_METRICS = frozenset({"spans_defined", *NATS_METRICS})
"""Indices that are plotted apart from the others, since they are no shares."""
METRICS_BY_TABLE = {
    "density": ("cmi", "cmi_kept"),
    "density_in_nats": ("drop_cot", "drop_kept"),
    "spans": SPAN_METRICS,
    "spans_of_sources": ("cmi",),
    "layers": tuple(DROP_METRICS),
    "indices": (*INDEX_METRICS, *NATS_METRICS),
}
"""The metrics whose scores each table of a run reads, by the name of its function."""
MAX_RAW_ITEMS = 20


def with_facets(table: pd.DataFrame) -> pd.DataFrame:
    """Add a column for each of ``FACET_NAMES`` to scores or estimates."""
    return with_facet_columns(table, *FACET_NAMES)


def suite_scores(view: RunView, *metrics: str) -> pd.DataFrame:
    """Return what tables over the suite read of the scores of a run, facets as columns.

    Those without a value, with the reason, and all of facets with ``MAX_RAW_ITEMS`` items or fewer.
    """
    estimates = view.estimates[view.estimates["metric"].isin(metrics)]
    small_facets = estimates.loc[estimates["n"] <= MAX_RAW_ITEMS, "facet"].unique().tolist()
    return with_facets(scores_without_value(view.store, view.id, metrics, small_facets))


class Setting(NamedTuple):
    """A setting of the measurements of one run."""

    chain: str
    """Whose chain: reference or own."""
    given: str
    """How the chain was given: prefix or user."""
    source: str
    """Whose states are patched in."""
    control: str
    """Where the states of the control come from."""

    def select_rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of this setting, with those that hold for every source and control."""
        mask = pd.Series(True, index=table.index)
        for name, value in self._asdict().items():
            mask &= table[name].isin((value, ""))
        return table[mask]

    def select_all_sources(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of this setting's chain and control, from every source.

        The literal source always has its own control.
        """
        control = (table["control"] == self.control) | (table["source"] == "literal")
        return table[(table["chain"] == self.chain) & (table["given"] == self.given) & control]


def available_settings(scores: pd.DataFrame) -> list[Setting]:
    """Return the settings that have a CMI, the usual source and control first."""
    rows = scores[scores["metric"] == "cmi"][list(Setting._fields)]
    settings = {Setting(*row) for row in rows.itertuples(index=False, name=None)}
    return sorted(
        settings,
        key=lambda s: (
            [*MEDIATION_SOURCES, s.source].index(s.source),
            s.control != DEFAULT_CONTROL,
            s,
        ),
    )


def all_layer_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows of all layers, or of no span, with every position kept."""
    return table[table["span"].isin(("all", "")) & (table["keep"] == "")]


def headline_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return estimates of one setting, CMI undefined where its control loses more than its chain.

    Parameters
    ----------
    table : DataFrame
        Estimates of all layers: metric, control, point, lo, hi, n, reason.

    Returns
    -------
    DataFrame
        The table, or a copy of it: a refused CMI has no point, no interval, n of 0 and its reason.
    """
    is_cmi = (table["metric"] == "cmi") & table["point"].notna()
    if not is_cmi.any():
        return table
    points = table.set_index("metric")["point"].dropna().astype(float).to_dict()
    drops = (points.get(name) for name in ("drop_cot", "drop_control"))
    control = str(table.loc[is_cmi, "control"].iloc[0])
    if reason := headline_reason(control, *drops):
        table = table.astype({"reason": object})
        table.loc[is_cmi, ["point", "lo", "hi"]] = np.nan
        table.loc[is_cmi, "n"] = 0
        table.loc[is_cmi, "reason"] = reason
    return table


def refused_cmi_reason(means: pd.DataFrame, setting: Setting) -> str:
    """Return why CMI of a setting is no headline, so that its curve is not drawn either; else "".

    Parameters
    ----------
    means : DataFrame
        Estimates with facets: metric, control, source, span, point, lo, hi, n, reason.
    setting : Setting
    """
    estimates = headline_rows(all_layer_rows(setting.select_rows(means)))
    refused = estimates[(estimates["metric"] == "cmi") & (estimates["n"] == 0)]
    return next((str(reason) for reason in refused["reason"] if reason), "")


def item_headline_reason(scores: pd.DataFrame, setting: Setting) -> str:
    """Return why CMI of one item is no headline; "" where it is one.

    Parameters
    ----------
    scores : DataFrame
        The item's scores of all layers: metric, value.
    """
    values = scores.set_index("metric")["value"].dropna().astype(float).to_dict()
    if "cmi" not in values:
        return ""
    return headline_reason(setting.control, values.get("drop_cot"), values.get("drop_control"))


def with_item_reasons(means: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Give estimates without a point the commonest reason of their items."""
    return with_common_reasons(
        means, scores[scores["metric"].isin(set(means["metric"]))], ["metric", "facet"]
    )


def density(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return CMI by share of positions, of every source with this control.

    Empty where no share was patched.
    """
    return _by_share(scores, means, setting, METRICS_BY_TABLE["density"])


def density_in_nats(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return the chain's drop in nats by share of positions; empty where no share was patched."""
    return _by_share(scores, means, setting, METRICS_BY_TABLE["density_in_nats"])


def _by_share(
    scores: pd.DataFrame, means: pd.DataFrame, setting: Setting, metrics: tuple[str, ...]
) -> pd.DataFrame:
    """Return estimates of a metric of all positions, and of its counterpart of a share of them."""
    curve, raw_scores = (
        rows[rows["metric"].isin(metrics) & (rows["span"] == "all")]
        for rows in map(setting.select_all_sources, (means, scores))
    )
    if not (curve["metric"] == metrics[1]).any():
        return curve.iloc[:0]
    values = raw_scores.groupby("facet")["value"].apply(list)
    item_values = [
        values.get(facet, []) if n <= MAX_RAW_ITEMS else []
        for facet, n in zip(curve["facet"], curve["n"], strict=True)
    ]
    shares = pd.to_numeric(curve["keep"].replace("", "1.0"))
    return with_item_reasons(curve, scores).assign(keep=shares, values=item_values)


def spans(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return CMI, share and mass lost of one source by span."""
    rows = setting.select_rows(means)
    is_span = rows["metric"].isin(SPAN_METRICS) & (rows["span"] != "") & (rows["keep"] == "")
    return with_item_reasons(rows[is_span], scores)


def spans_of_sources(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return CMI by span of every source with this control."""
    rows = setting.select_all_sources(means)
    return with_item_reasons(rows[(rows["metric"] == "cmi") & (rows["span"] != "")], scores)


def layers(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return the drops of single layers."""
    rows = setting.select_rows(means)
    is_layer = rows["metric"].isin(DROP_METRICS) & rows["span"].str.isdecimal()
    return with_item_reasons(rows[is_layer], scores)


def indices(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return every index of all layers, in the order of ``INDEX_METRICS`` and ``NATS_METRICS``."""
    order = (*INDEX_METRICS, *NATS_METRICS)
    estimates = all_layer_rows(setting.select_rows(means))
    estimates = estimates[estimates["metric"].isin(order)]
    return with_item_reasons(
        estimates.sort_values("metric", key=lambda names: names.map(order.index)), scores
    )


def spread_table(scores: pd.DataFrame, setting: Setting, item_id: str, seed: int) -> pd.DataFrame:
    """Return each estimator of one item with its interval over donors and draws.

    No row where nothing was patched.
    """
    drop_scores = setting.select_rows(
        scores[(scores["metric"] == "patch_drop") & (scores["item_id"] == item_id)]
    )
    estimators = item_spreads(drop_scores.to_dict("records"), seed=seed, item_id=item_id)
    rows = [
        {
            **asdict(estimator),
            **interval_columns(estimator.interval),
            "draws": estimator.interval.n,
            "donors": estimator.n_donors,
        }
        for estimator in estimators
    ]
    return pd.DataFrame(rows, columns=SPREAD_COLUMNS)


SPREAD_COLUMNS = [
    "metric",
    "source",
    "control",
    "span",
    "keep",
    "point",
    "lo",
    "hi",
    "confidence",
    "draws",
    "donors",
    "method",
    "reason",
]


def item_density_table(spread: pd.DataFrame, drop_scores: pd.DataFrame) -> pd.DataFrame:
    """Return CMI of one item by share of positions; empty where no share was patched."""
    curve = spread[spread["metric"].isin(("cmi", "cmi_kept")) & (spread["span"] == "all")]
    if not (curve["metric"] == "cmi_kept").any():
        return curve.iloc[:0]
    rows = drop_scores[drop_scores["span"] == "all"].to_dict("records")
    curve = curve.assign(values=[single_draw_cmis(rows, keep) for keep in curve["keep"]])
    return curve.assign(keep=pd.to_numeric(curve["keep"].replace("", "1.0")))


def drop_spans(drop_scores: pd.DataFrame) -> list[str]:
    """Return the spans that one item was patched in, all layers first."""
    return sorted(
        {str(span) for span in drop_scores["span"] if span}, key=span_sort_key, reverse=True
    )


def drop_table(drop_scores: pd.DataFrame, span: str) -> pd.DataFrame:
    """Return the patched forwards of one item in a span, and those of every span."""
    span_drops = drop_scores[drop_scores["span"].isin((span, ""))]
    labels = [
        f"{part} {keep}".strip()
        for part, keep in zip(span_drops["part"], span_drops["keep"], strict=True)
    ]
    return span_drops.assign(part=labels)
