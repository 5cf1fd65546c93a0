"""Tables of the figures of mediation, from scores and estimates with their facets as columns."""

from __future__ import annotations

import json
from typing import NamedTuple

import pandas as pd

from cotlab.analysis.tables.declare import count_reasons
from cotlab.figures.mediation import DROPS, SOURCES
from cotlab.figures.span_heatmap import span_order
from cotlab.metrics.mediation.spread import item_spreads, single_draws

FACETS = ("chain", "given", "source", "control", "span", "keep", "part", "donor")
"""Parts of a facet of the scorer mediation; each becomes a column, empty where a score has none."""
ORDER = (*SOURCES, "published")
OF_SPAN = ("cmi", "share", "mass_lost")
INDICES = (
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
NATS = ("drop_cot", "drop_control", "no_cot_drop", "baseline_logp")
NO_UNIT = frozenset({"spans_defined", *NATS})
"""Indices that are not drawn beside the others: they are no share."""
METRICS_OF = {
    "density": ("cmi", "cmi_kept"),
    "spans": OF_SPAN,
    "spans_of_sources": ("cmi",),
    "layers": tuple(DROPS),
    "indices": (*INDICES, *NATS),
}
"""The metrics whose scores each table of a run reads, by the name of its function."""
RAW_ITEMS = 20


def with_facets(table: pd.DataFrame) -> pd.DataFrame:
    """Add a column for each of ``FACETS`` to scores or estimates."""
    facets = {text: json.loads(text) for text in table["facet"].unique()}
    columns = {name: [facets[text].get(name, "") for text in table["facet"]] for name in FACETS}
    return table.assign(
        **{name: pd.Series(values, table.index, dtype="str") for name, values in columns.items()}
    )


class Setting(NamedTuple):
    """A setting of the measurements of one run."""

    chain: str
    given: str
    source: str
    control: str

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of this setting, with those that hold for every source and control."""
        mask = pd.Series(True, index=table.index)
        for name, value in self._asdict().items():
            mask &= table[name].isin((value, ""))
        return table[mask]

    def any_source(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of this setting's chain and control, from every source.

        The literal source always has its own control.
        """
        control = (table["control"] == self.control) | (table["source"] == "literal")
        return table[(table["chain"] == self.chain) & (table["given"] == self.given) & control]


def available_settings(scores: pd.DataFrame) -> list[Setting]:
    """Return the settings that have a CMI, the usual source and control first."""
    rows = list(
        scores[scores["metric"] == "cmi"][list(Setting._fields)]
        .drop_duplicates()
        .itertuples(index=False, name=None)
    )
    rows.sort(
        key=lambda f: (ORDER.index(f[2]) if f[2] in ORDER else len(ORDER), f[3] != "other", f)
    )
    return [Setting(*f) for f in rows]


def full_depth_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows of all layers, or of no span, with every position kept."""
    return table[table["span"].isin(("all", "")) & (table["keep"] == "")]


def with_reasons(means: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Give estimates without a point the commonest reason of their items."""
    metric_scores = scores[scores["metric"].isin(set(means["metric"]))]
    gone = metric_scores[metric_scores["value"].isna()].groupby(["metric", "facet"])["reason"]
    commonest = {pair: next(iter(count_reasons(reasons))) for pair, reasons in gone}
    pairs = zip(means["metric"], means["facet"], means["reason"], means["point"], strict=True)
    return means.assign(
        reason=[commonest.get((m, f), r) if pd.isna(point) else r for m, f, r, point in pairs]
    )


def density(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return CMI by share of positions, of every source with this control.

    Empty where no share was asked.
    """
    curve, raw = (
        t[t["metric"].isin(("cmi", "cmi_kept")) & (t["span"] == "all")]
        for t in map(setting.any_source, (means, scores))
    )
    if not (curve["metric"] == "cmi_kept").any():
        return curve.iloc[:0]
    values = raw.groupby("facet")["value"].apply(list)
    lists = [
        values.get(facet, []) if n <= RAW_ITEMS else []
        for facet, n in zip(curve["facet"], curve["n"], strict=True)
    ]
    shares = pd.to_numeric(curve["keep"].replace("", "1.0"))
    return with_reasons(curve, scores).assign(keep=shares, values=lists)


def spans(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return CMI, share and mass lost of one source by span."""
    estimates = setting.of(means)
    return with_reasons(
        estimates[
            estimates["metric"].isin(OF_SPAN)
            & (estimates["span"] != "")
            & (estimates["keep"] == "")
        ],
        scores,
    )


def spans_of_sources(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return CMI by span of every source with this control."""
    same = setting.any_source(means)
    return with_reasons(same[(same["metric"] == "cmi") & (same["span"] != "")], scores)


def layers(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return the drops of single layers."""
    estimates = setting.of(means)
    return with_reasons(
        estimates[estimates["metric"].isin(DROPS) & estimates["span"].str.isdecimal()], scores
    )


def indices(scores: pd.DataFrame, means: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return every index of all layers, in the order of ``INDICES`` and ``NATS``."""
    order = (*INDICES, *NATS)
    estimates = full_depth_rows(setting.of(means))
    estimates = estimates[estimates["metric"].isin(order)]
    return with_reasons(
        estimates.sort_values("metric", key=lambda names: names.map(order.index)), scores
    )


def spread_table(scores: pd.DataFrame, setting: Setting, item_id: str, seed: int) -> pd.DataFrame:
    """Return each estimator of one item with its interval over donors and draws.

    No row where nothing was patched.
    """
    drop_scores = setting.of(
        scores[(scores["metric"] == "patch_drop") & (scores["item_id"] == item_id)]
    )
    estimators = item_spreads(
        [{str(k): v for k, v in row.items()} for row in drop_scores.to_dict("records")],
        seed=seed,
        item_id=item_id,
    )
    rows = [
        (
            s.metric,
            s.source,
            s.control,
            s.span,
            s.keep,
            i.point,
            i.lo,
            i.hi,
            i.level,
            i.n,
            s.donors,
            i.method,
            i.reason,
        )
        for s in estimators
        for i in (s.interval,)
    ]
    return pd.DataFrame(rows, columns=SPREAD)


SPREAD = [
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
    """Return CMI of one item by share of positions; empty where no share was asked."""
    curve = spread[spread["metric"].isin(("cmi", "cmi_kept")) & (spread["span"] == "all")]
    if not (curve["metric"] == "cmi_kept").any():
        return curve.iloc[:0]
    rows = [
        {str(k): v for k, v in row.items()}
        for row in drop_scores[drop_scores["span"] == "all"].to_dict("records")
    ]
    curve = curve.assign(values=[single_draws(rows, keep) for keep in curve["keep"]])
    return curve.assign(keep=pd.to_numeric(curve["keep"].replace("", "1.0")))


def drop_spans(drop_scores: pd.DataFrame) -> list[str]:
    """Return the spans that one item was patched in, all layers first."""
    return sorted({str(span) for span in drop_scores["span"] if span}, key=span_order, reverse=True)


def drop_table(drop_scores: pd.DataFrame, span: str) -> pd.DataFrame:
    """Return the patched forwards of one item in a span, and those of every span."""
    visible = drop_scores[drop_scores["span"].isin((span, ""))]
    labels = [
        f"{part} {keep}".strip()
        for part, keep in zip(visible["part"], visible["keep"], strict=True)
    ]
    return visible.assign(part=labels)
