"""A store with one synthetic run of the mediation scorer."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from scipy.stats import t as student

from cotlab.core.requests import Locate, Located, Message, Response, Span
from cotlab.core.types import Estimate, Facet, Item, ModelRef, Plan, Score, ScorerSpec, Step, Suite
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog

HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(1)) $\\frac{1}{2}$"


MODEL = ModelRef("organism", "synthetic", form="continuation")


SPANS = ("0", "1", "2", "3", "0-0", "1-2", "3-3", "all")


SOURCES = (("filler", "other"), ("interchange", "other"), ("literal", "own"))


CHAIN = {"chain": "own", "given": "prefix"}


PIECES = ("<s>", "Ann", " has", " 7", HOSTILE, " Step", " 1", ":", " 7", "+", "5", " So", " 12")


POSITIONS = ((5, 6, 7, 8, 9, 10), (1, 2, 3, 4), (11, 12))


def make_suite(n: int) -> Suite:
    """Return a suite of ``n`` hostile questions."""
    return Suite.from_items(
        "synthetic",
        [Item(f"i-{k:02}", f"{HOSTILE} {k}", "12", (Step(0, "7 + 5 = 12."),)) for k in range(n)],
    )


def located(item: Item) -> tuple[Locate, Response]:
    """Return the request for an item's token positions, with its reply."""
    asked = Locate(MODEL, (Message("user", item.question),), (Span(0, 0, 1),))
    return asked, Response(asked.key, located=Located(POSITIONS, PIECES, 4))


def scores_of(item: Item, draw: random.Random) -> Iterator[Score]:
    """Yield scores like the scorer's.

    The first item has no signal, so that its ratios are undefined; a control of the item's own
    does nothing.
    """
    key, dead = located(item)[0].key, item.id == "i-00"

    def told(
        name: str,
        value: float | None,
        facet: dict[str, str],
        sample: int = 0,
        reason: str | None = None,
    ) -> Score:
        why = reason or ("the drops add up to less than 0.01 nat" if value is None else None)
        return Score(
            name,
            item.id,
            value,
            sample=sample,
            facet=tuple(sorted(facet.items())),
            status="undefined" if value is None else "ok",
            reason=why,
            evidence=(key,),
        )

    yield told("baseline_logp", -0.05 - draw.random() / 10, CHAIN)
    yield told("no_cot_drop", 2.5 + draw.gauss(0, 0.5), CHAIN)
    for name in ("text_placebo", "self_shuffle"):
        yield told(name, min(1.0, 0.85 + draw.random() / 10), CHAIN)
    for source, control in SOURCES:
        at = {**CHAIN, "source": source, "control": control}
        noop = control == "own"
        for depth, span in enumerate(SPANS):
            facet = {**at, "span": span}
            cot = 0.0 if dead else max(0.0, 3 / (1 + depth % 4) + draw.gauss(0, 0.2))
            other = 0.0 if dead or noop else 0.4 + draw.random() / 5
            cmi = None if dead else max(0.0, cot - other) / (cot + other)
            yield told("cmi", cmi, facet)
            yield told("bypass", None if cmi is None else 1 - cmi, facet)
            yield told("share", None if dead else cot / (cot + other), facet)
            yield told("mass_lost", 1 - math.exp(-cot), facet)
            yield told("drop_cot", cot, facet)
            yield told("drop_control", other, facet)
            yield told("control_is_noop", float(noop), facet)
            if span != "all":
                continue
            for keep, part in (("0.8", 0.95), ("0.6", 0.8), ("0.4", 0.5)):
                yield told("cmi_kept", None if cmi is None else cmi * part, {**facet, "keep": keep})
            for name, value in (
                ("density", 0.5),
                ("validity", 0.03),
                ("placebo_cmi", 0.8),
                ("sequentiality", 0.0),
            ):
                yield told(name, None if dead else value + draw.random() / 20, facet)
            yield told(
                "boundary_sensitivity", None, facet, reason="CMI of all layers is below <0.05>"
            )
            for donor in ("i-01", "i-02", "i-03", "i-04"):
                for sample in range(2):
                    for name, base in (("cot", cot), ("control", other), ("shuffled", cot)):
                        drop = base + draw.gauss(0, 0.1)
                        yield told(
                            "patch_drop", drop, {**facet, "part": name, "donor": donor}, sample
                        )
            for sample in range(8):
                yield told(
                    "patch_drop", cot * 0.8, {**facet, "part": "kept", "keep": "0.8"}, sample
                )
        yield told("cmi_over_spans", 0.6, at)
        yield told("spans_defined", float(len(SPANS)), at)
        yield told("no_cot_effect", 0.0, at)


def means(scores: list[Score]) -> list[Estimate]:
    """Return an estimate for each metric and facet of the scores."""
    groups: dict[tuple[str, Facet], list[float | None]] = defaultdict(list)
    for score in scores:
        if score.metric != "patch_drop":
            groups[score.metric, score.facet].append(score.value)
    found = []
    for (metric, facet), values in groups.items():
        known = [v for v in values if v is not None]
        n, gone = len(known), len(values) - len(known)
        if not known:
            found.append(
                Estimate(
                    metric,
                    facet,
                    None,
                    None,
                    None,
                    0.95,
                    0,
                    gone,
                    "none",
                    "items",
                    "no item is defined",
                )
            )
            continue
        mean = sum(known) / n
        sd = math.sqrt(sum((v - mean) ** 2 for v in known) / (n - 1))
        half = float(student.ppf(0.975, n - 1)) * sd / math.sqrt(n)
        found.append(
            Estimate(
                metric, facet, mean, mean - half, mean + half, 0.95, n, gone, "t interval", "items"
            )
        )
    return found


def fill(folder: Path, n: int = 12, *, estimated: bool = True) -> str:
    """Make a store with one mediation run on ``n`` items, and return the run's id."""
    store, suite, draw = Store(folder), make_suite(n), random.Random(5)
    plan = Plan(suite.name, suite.digest, {"subject": MODEL}, (ScorerSpec("mediation", 1, {}),))
    by_item = {item.id: list(scores_of(item, draw)) for item in suite.items}
    with store.writing() as connection:
        write.add_suite(connection, suite)
        write.add_run(
            connection,
            "run-1",
            plan,
            config={},
            code_version="test",
            output="",
            redacted=False,
            n_items=n,
        )
        write.add_ended(
            connection,
            "run-1",
            [write.EndedItem("mediation", 1, "p", i, tuple(s)) for i, s in by_item.items()],
        )
        if estimated:
            write.set_estimates(
                connection, "run-1", means([s for own in by_item.values() for s in own])
            )
        write.set_status(connection, "run-1", "done")
    log = ResponseLog(store.log_path)
    log.put([located(item) for item in suite.items], "run-1")
    log.close()
    return "run-1"
