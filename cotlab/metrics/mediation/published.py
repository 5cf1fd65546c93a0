"""CMI that others have published, recomputed from its own drops."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from cotlab.core.errors import ConfigError, SuiteError
from cotlab.core.keys import digest
from cotlab.core.types import Item, Score
from cotlab.metrics.mediation import cards, indices
from cotlab.stats.intervals import Interval
from cotlab.stats.resample import bootstrap_ratio

MIN_TOTAL_DROP = 0.01
"""Nats: below this total drop a CMI is noise over noise."""
CMI_TOLERANCE = 0.02
"""A published CMI further than this from its own drops is reported."""
ZERO_DROP_REASON, SMALL_DROP_REASON = "zero total drop", "total drop below the threshold"
PUBLISHED_SOURCE = "published"
"""The source and the control of imported scores: the files do not name them."""
MAX_ABSOLUTE_VALUE = 1e6
"""Largest size of a number that is read; drops are nats, scores lie in [0, 1]."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One span of one item."""

    item: str
    """Id of the item."""
    row: int
    """Index of the row in the item's list."""
    layers: tuple[int, ...]
    """Layers that were patched."""
    cot_drop: float
    """Drop with the chain patched, in nats."""
    control_drop: float
    """Drop with the control patched, in nats."""
    cmi: float | None
    """CMI recomputed from the drops, [0, 1]; None where undefined."""
    bypass: float | None
    """1 − cmi; None where undefined."""
    reason: str | None
    """`ZERO` or `SMALL` where the CMI is undefined."""
    published_cmi: float
    """CMI as published."""
    published_bypass: float
    """Bypass as published."""
    difference: float | None
    """Published minus recomputed CMI; None at a zero total drop only."""


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """The rows of one file."""

    name: str
    """Name of the file, for messages."""
    rows: tuple[PublishedRow, ...]
    """The rows in the order of the file."""
    n_rows_by_item: Mapping[str, int]
    """Number of rows of each item."""


@dataclass(frozen=True, slots=True)
class PublishedSummary:
    """Counts of one file, and its mean CMI."""

    file: str
    """Name of the file."""
    rows: int
    """Number of rows."""
    items: int
    """Number of items."""
    layers: int
    """Number of different layers."""
    defined: int
    """Rows with a CMI."""
    zero: int
    """Rows with a zero total drop."""
    small: int
    """Rows with a total drop below the threshold."""
    mean: Interval
    """Mean CMI over the defined rows, resampled by item."""
    compared: int
    """Rows with a total drop above 0."""
    within: int
    """Of these, rows whose published CMI lies within `TOLERANCE`."""


def read_published_cmi(
    name: str, parsed: object, *, least_drop: float = MIN_TOTAL_DROP
) -> PublishedFile:
    """Read the rows of a published CMI file, each CMI recomputed from its own drops.

    CMI = max(0, c − q) / (c + q), where c = max(0, cot_drop) and q = max(0, control_drop).

    Parameters
    ----------
    name : str
        Of the file, for messages.
    parsed : object
        Item -> list of rows with ``layers`` (list) or ``layer``, ``cot_drop``, ``control_drop``,
        ``cmi_score`` and ``bypass_score``.
    least_drop : float, finite, at least 0, nats
        A total drop c + q below it is undefined; so is 0 in any case, under a reason of its own.

    Raises
    ------
    SuiteError
        At the first malformed row, naming file, item and row (from 0).
    ConfigError
        If ``least_drop`` is out of range.

    References
    ----------
    Formula and form: cot-manipulation-monitor, which publishes CMI 0 and bypass 1 where nothing
    dropped.
    """
    if not (math.isfinite(least_drop) and least_drop >= 0):
        raise ConfigError(
            f"The threshold must be a finite number of nats, at least 0, not {least_drop}."
        )
    if not isinstance(parsed, dict):
        raise SuiteError(name, None, "", "must be a JSON object of items, each with a list of rows")
    rows: list[PublishedRow] = []
    for item, entries in parsed.items():
        if not isinstance(entries, list):
            raise SuiteError(
                name, None, f"item {short_item_name(item)}", "must hold a list of rows"
            )
        rows += [_parse_row(name, item, i, entry, least_drop) for i, entry in enumerate(entries)]
    return PublishedFile(
        name, tuple(rows), {item: len(entries) for item, entries in parsed.items()}
    )


def published_summary(file: PublishedFile, *, seed: int = 0) -> PublishedSummary:
    """Summarise a file: counts, and the mean CMI with a bootstrap interval over items."""
    reasons = Counter(row.reason for row in file.rows)
    cmi_sum_by_item: dict[str, float] = {}
    n_defined_by_item = Counter[str]()
    for row in file.rows:
        if row.cmi is not None:
            cmi_sum_by_item[row.item] = cmi_sum_by_item.get(row.item, 0.0) + row.cmi
            n_defined_by_item[row.item] += 1
    items = list(n_defined_by_item)
    mean_interval = bootstrap_ratio(
        [cmi_sum_by_item[i] for i in items], [n_defined_by_item[i] for i in items], seed=seed
    )
    differences = [row.difference for row in file.rows if row.difference is not None]
    return PublishedSummary(
        file.name,
        len(file.rows),
        len(file.n_rows_by_item),
        len({layer for row in file.rows for layer in row.layers}),
        reasons[None],
        reasons[ZERO_DROP_REASON],
        reasons[SMALL_DROP_REASON],
        mean_interval,
        len(differences),
        sum(abs(difference) <= CMI_TOLERANCE for difference in differences),
    )


def content_digest(file: PublishedFile) -> str:
    """Return the SHA-256 of the rows, whatever their order and the names of items and file."""
    return digest(sorted([list(row), count] for row, count in row_contents(file).items()))


def published_scores(file: PublishedFile) -> dict[str, tuple[Score, ...]]:
    """Return the rows of a file as scores of the metrics that they hold, by item.

    Their facet says ``imported``, and source and control ``published``; they have no evidence, for
    no reply stands behind them. The k-th row of an item with the same layers is sample k.
    """
    scores_by_item: dict[str, list[Score]] = {item: [] for item in file.n_rows_by_item}
    n_rows_by_span: Counter[tuple[str, str]] = Counter()
    facet = {"source": PUBLISHED_SOURCE, "control": PUBLISHED_SOURCE, "imported": "yes"}
    cmi_by_item: dict[str, list[float]] = {item: [] for item in file.n_rows_by_item}
    for row in file.rows:
        item, span = Item(row.item, "", None, ()), layer_span_name(row.layers)
        sample, span_facet = n_rows_by_span[row.item, span], {**facet, "span": span}
        n_rows_by_span[row.item, span] += 1
        share = None if row.reason else indices.cot_drop_share(row.cot_drop, row.control_drop)
        for card, value in (
            (cards.CMI, row.cmi),
            (cards.BYPASS, row.bypass),
            (cards.SHARE, share),
            (cards.MASS_LOST, indices.mass_lost(row.cot_drop)),
            (cards.DROP_COT, row.cot_drop),
            (cards.DROP_CONTROL, row.control_drop),
        ):
            reason = None if value is not None else row.reason or SMALL_DROP_REASON
            scores_by_item[row.item].append(
                card.score(item, value, sample=sample, facet=span_facet, reason=reason)
            )
        if row.cmi is not None:
            cmi_by_item[row.item].append(row.cmi)
    for name, cmi_values in cmi_by_item.items():
        item, rows = Item(name, "", None, ()), file.n_rows_by_item[name]
        no_value_reason = "no row of this item is defined" if rows else "no row is published"
        for card, value in (
            (cards.CMI_OVER_SPANS, fmean(cmi_values) if cmi_values else None),
            (cards.SPANS_DEFINED, float(len(cmi_values)) if rows else None),
            (cards.NO_COT_EFFECT, float(max(cmi_values) == 0) if cmi_values else None),
        ):
            scores_by_item[name].append(
                card.score(
                    item, value, facet=facet, reason=None if value is not None else no_value_reason
                )
            )
    return {name: tuple(scores) for name, scores in scores_by_item.items()}


def layer_span_name(layers: Sequence[int]) -> str:
    """Layers as a span is named: "3", "0-7", or "1+4+5" where they leave some out."""
    sorted_layers = sorted(set(layers))
    if len(sorted_layers) == 1:
        return str(sorted_layers[0])
    is_contiguous = sorted_layers[-1] - sorted_layers[0] == len(sorted_layers) - 1
    return (
        f"{sorted_layers[0]}-{sorted_layers[-1]}"
        if is_contiguous
        else "+".join(map(str, sorted_layers))
    )


def row_contents(file: PublishedFile) -> Counter[tuple[object, ...]]:
    """Return the rows without the names of items."""
    return Counter(
        (r.layers, r.cot_drop, r.control_drop, r.published_cmi, r.published_bypass)
        for r in file.rows
    )


def _parse_row(
    name: str, item: str, row_index: int, entry: object, least_drop: float
) -> PublishedRow:
    def row_error(message: str) -> SuiteError:
        return SuiteError(name, None, f"item {short_item_name(item)}, row {row_index}", message)

    def read_number(key: str) -> float:
        value = entry.get(key) if isinstance(entry, dict) else None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= MAX_ABSOLUTE_VALUE
        ):
            raise row_error(
                f"{key} must be a finite number of at most {MAX_ABSOLUTE_VALUE:.0e} in size"
            )
        return float(value)

    if not isinstance(entry, dict):
        raise row_error("must be a JSON object")
    missing_fields = [
        key for key in ("cot_drop", "control_drop", "cmi_score", "bypass_score") if key not in entry
    ]
    if missing_fields or ("layers" in entry) == ("layer" in entry):
        raise row_error(
            f"lacks {', '.join(missing_fields)}"
            if missing_fields
            else "needs layers or layer, one of them"
        )
    layers = entry["layers"] if "layers" in entry else [entry["layer"]]
    if (
        not isinstance(layers, list)
        or not layers
        or not all(type(n) is int and 0 <= n <= MAX_ABSOLUTE_VALUE for n in layers)
    ):
        raise row_error("layers must be whole numbers from 0, at least one")
    cot_drop, control_drop = read_number("cot_drop"), read_number("control_drop")
    published_cmi, published_bypass = read_number("cmi_score"), read_number("bypass_score")
    if "cmi_raw" in entry:
        read_number("cmi_raw")
    total_drop = max(0.0, cot_drop) + max(0.0, control_drop)
    recomputed_cmi = (
        max(0.0, max(0.0, cot_drop) - max(0.0, control_drop)) / total_drop
        if total_drop > 0
        else None
    )
    reason = (
        ZERO_DROP_REASON
        if recomputed_cmi is None
        else SMALL_DROP_REASON
        if total_drop < least_drop
        else None
    )
    cmi = None if reason else recomputed_cmi
    return PublishedRow(
        item,
        row_index,
        tuple(layers),
        cot_drop,
        control_drop,
        cmi,
        None if cmi is None else 1 - cmi,
        reason,
        published_cmi,
        published_bypass,
        None if recomputed_cmi is None else published_cmi - recomputed_cmi,
    )


def short_item_name(item: str) -> str:
    """Return an item's id for a message."""
    return ascii(item if len(item) <= 60 else item[:59] + "~")
