"""CMI that others have published, recomputed from its own drops."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from cotlab.core.errors import ConfigError, SuiteError
from cotlab.core.keys import digest
from cotlab.core.types import Item, Score
from cotlab.metrics.mediation import cards
from cotlab.metrics.mediation import scores as indices
from cotlab.stats.intervals import Interval
from cotlab.stats.resample import bootstrap_ratio

LEAST_DROP = 0.01
"""Nats: below this total drop a CMI is noise over noise."""
TOLERANCE = 0.02
"""A published CMI further than this from its own drops is reported."""
ZERO, SMALL = "zero total drop", "total drop below the threshold"
SOURCE = "published"
"""The source and the control of imported scores: the files do not name them."""
MAX_SIZE = 1e6
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
    counts: Mapping[str, int]
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


def published_cmi(name: str, parsed: object, *, least_drop: float = LEAST_DROP) -> PublishedFile:
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
            raise SuiteError(name, None, f"item {_short(item)}", "must hold a list of rows")
        rows += [_row(name, item, i, entry, least_drop) for i, entry in enumerate(entries)]
    return PublishedFile(
        name, tuple(rows), {item: len(entries) for item, entries in parsed.items()}
    )


def published_summary(file: PublishedFile, *, seed: int = 0) -> PublishedSummary:
    """Summarise a file: counts, and the mean CMI with a bootstrap interval over items."""
    reasons = Counter(row.reason for row in file.rows)
    sums: dict[str, float] = {}
    defined = Counter[str]()
    for row in file.rows:
        if row.cmi is not None:
            sums[row.item] = sums.get(row.item, 0.0) + row.cmi
            defined[row.item] += 1
    items = list(defined)
    mean = bootstrap_ratio([sums[i] for i in items], [defined[i] for i in items], seed=seed)
    compared = [row.difference for row in file.rows if row.difference is not None]
    return PublishedSummary(
        file.name,
        len(file.rows),
        len(file.counts),
        len({layer for row in file.rows for layer in row.layers}),
        reasons[None],
        reasons[ZERO],
        reasons[SMALL],
        mean,
        len(compared),
        sum(abs(d) <= TOLERANCE for d in compared),
    )


def published_warnings(files: Sequence[PublishedFile]) -> tuple[str, ...]:
    """Return warnings as plain sentences: within each file first, then between files."""
    pairs = combinations(files, 2)
    return (
        *(warning for file in files for warning in _within(file)),
        *(warning for a, b in pairs for warning in _between(a, b)),
    )


def content_digest(file: PublishedFile) -> str:
    """Return the SHA-256 of the rows, whatever their order and the names of items and file."""
    return digest(sorted([list(row), count] for row, count in _contents(file).items()))


def published_scores(file: PublishedFile) -> dict[str, tuple[Score, ...]]:
    """Return the rows of a file as scores of the metrics that they hold, by item.

    Their facet says ``imported``, and source and control ``published``; they have no evidence, for
    no reply stands behind them. The k-th row of an item with the same layers is sample k.
    """
    by_item: dict[str, list[Score]] = {item: [] for item in file.counts}
    seen: Counter[tuple[str, str]] = Counter()
    facet = {"source": SOURCE, "control": SOURCE, "imported": "yes"}
    values: dict[str, list[float]] = {item: [] for item in file.counts}
    for row in file.rows:
        item, span = Item(row.item, "", None, ()), span_of(row.layers)
        sample, here = seen[row.item, span], {**facet, "span": span}
        seen[row.item, span] += 1
        shared = None if row.reason else indices.share(row.cot_drop, row.control_drop)
        for card, value in (
            (cards.CMI, row.cmi),
            (cards.BYPASS, row.bypass),
            (cards.SHARE, shared),
            (cards.MASS_LOST, indices.mass_lost(row.cot_drop)),
            (cards.DROP_COT, row.cot_drop),
            (cards.DROP_CONTROL, row.control_drop),
        ):
            reason = None if value is not None else row.reason or SMALL
            by_item[row.item].append(
                card.score(item, value, sample=sample, facet=here, reason=reason)
            )
        if row.cmi is not None:
            values[row.item].append(row.cmi)
    for name, known in values.items():
        item, rows = Item(name, "", None, ()), file.counts[name]
        none = "no row of this item is defined" if rows else "no row is published"
        for card, value in (
            (cards.OVER_SPANS, fmean(known) if known else None),
            (cards.SPANS_DEFINED, float(len(known)) if rows else None),
            (cards.NO_COT_EFFECT, float(max(known) == 0) if known else None),
        ):
            by_item[name].append(
                card.score(item, value, facet=facet, reason=None if value is not None else none)
            )
    return {name: tuple(scores) for name, scores in by_item.items()}


def span_of(layers: Sequence[int]) -> str:
    """Layers as a span is named: "3", "0-7", or "1+4+5" where they leave some out."""
    ordered = sorted(set(layers))
    if len(ordered) == 1:
        return str(ordered[0])
    contiguous = ordered[-1] - ordered[0] == len(ordered) - 1
    return f"{ordered[0]}-{ordered[-1]}" if contiguous else "+".join(map(str, ordered))


def _within(file: PublishedFile) -> Iterator[str]:
    sizes = sorted(set(file.counts.values()))
    if len(sizes) > 1:
        yield (
            f"Layer count: the items of {file.name} have between {sizes[0]} and {sizes[-1]} layer"
            " rows."
        )
    off = [
        row for row in file.rows if row.difference is not None and abs(row.difference) > TOLERANCE
    ]
    if off:
        yield (
            f"Published CMI: {len(off)} of {len(file.rows)} rows of {file.name} differ by more than"
            f" {TOLERANCE} from their own drops, first item {_short(off[0].item)} row {off[0].row}"
            f" by {off[0].difference:+.3f}."
        )
    contradictory = [row for row in file.rows if row.reason == ZERO and row.published_bypass > 0]
    if contradictory:
        yield (
            f"Undefined: {len(contradictory)} of {len(file.rows)} rows of {file.name} publish a"
            " bypass score although nothing dropped at all; that is no measurement of bypass."
        )


def _between(a: PublishedFile, b: PublishedFile) -> Iterator[str]:
    if a.rows and set(a.rows) == set(b.rows):
        yield f"Duplicate file: {a.name} and {b.name} hold the same rows; count them once."
        return
    if a.rows and _contents(a) == _contents(b):
        yield (
            f"Duplicate file: {a.name} and {b.name} hold the same rows under other names; count"
            " them once."
        )
        return
    other = [item for item in a.counts if b.counts.get(item, a.counts[item]) != a.counts[item]]
    if other:
        first_item = other[0]
        yield (
            f"Layer count: {len(other)} items have another number of layer rows in {a.name} than in"
            f" {b.name}, first {_short(first_item)} ({a.counts[first_item]} and"
            f" {b.counts[first_item]}): the models or the spans differ."
        )


def _contents(file: PublishedFile) -> Counter[tuple[object, ...]]:
    """Rows without the names of items."""
    return Counter(
        (r.layers, r.cot_drop, r.control_drop, r.published_cmi, r.published_bypass)
        for r in file.rows
    )


def _row(name: str, item: str, i: int, entry: object, least_drop: float) -> PublishedRow:
    def bad(message: str) -> SuiteError:
        return SuiteError(name, None, f"item {_short(item)}, row {i}", message)

    def number(key: str) -> float:
        value = entry.get(key) if isinstance(entry, dict) else None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= MAX_SIZE
        ):
            raise bad(f"{key} must be a finite number of at most {MAX_SIZE:.0e} in size")
        return float(value)

    if not isinstance(entry, dict):
        raise bad("must be a JSON object")
    missing = [
        key for key in ("cot_drop", "control_drop", "cmi_score", "bypass_score") if key not in entry
    ]
    if missing or ("layers" in entry) == ("layer" in entry):
        raise bad(
            f"lacks {', '.join(missing)}" if missing else "needs layers or layer, one of them"
        )
    layers = entry["layers"] if "layers" in entry else [entry["layer"]]
    if (
        not isinstance(layers, list)
        or not layers
        or not all(type(n) is int and 0 <= n <= MAX_SIZE for n in layers)
    ):
        raise bad("layers must be whole numbers from 0, at least one")
    cot, control = number("cot_drop"), number("control_drop")
    score, bypass = number("cmi_score"), number("bypass_score")
    if "cmi_raw" in entry:
        number("cmi_raw")
    total = max(0.0, cot) + max(0.0, control)
    ratio = max(0.0, max(0.0, cot) - max(0.0, control)) / total if total > 0 else None
    reason = ZERO if ratio is None else SMALL if total < least_drop else None
    value = None if reason else ratio
    return PublishedRow(
        item,
        i,
        tuple(layers),
        cot,
        control,
        value,
        None if value is None else 1 - value,
        reason,
        score,
        bypass,
        None if ratio is None else score - ratio,
    )


def _short(item: str) -> str:
    return ascii(item if len(item) <= 60 else item[:59] + "~")
