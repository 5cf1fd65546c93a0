"""A store with one run of every part of reliability and the composite, with synthetic scores and
replies."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from cotlab.core.requests import Complete, Embed, Request, Response
from cotlab.core.types import Item, ModelRef, Score, Step, Suite
from cotlab.metrics.composite import SCORER_BY_COMPONENT
from cotlab.run.summary import mean_estimates
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog
from cotlab.text.prompts.chain import continuation_prompt
from tests.support.stores import MODEL, add_run

HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(1)) $\\frac{1}{2}$"
EMBEDDER = ModelRef("embedder", "two-dimensional")
STEPS = (f"Clearly 7 + 5 = 12. {HOSTILE}", "So the answer is 12.", "12 - 2 = 11.")
CHAINS = (
    "1. 7 + 5 = 12.\n2. So the answer is 12.",
    "1. Seven and five make 12.\n2. So the answer is 12.",
    "",
    "1. No.",
)
VECTORS = {
    "1. 7 + 5 = 12.": (1.0, 0.0),
    "2. So the answer is 12.": (0.0, 1.0),
    "1. Seven and five make 12.": (0.0, 1.0),
}
RULES = (
    "instability",
    "fragility",
    "monoculture",
    "global_drift",
    "brittle",
    "post_hoc",
    "unsupported_jumps",
)


def make_suite(n: int) -> Suite:
    steps = tuple(Step(i, text) for i, text in enumerate(STEPS))
    return Suite.from_items(
        "synthetic", [Item(f"i-{k:02}", f"{HOSTILE} {k}", "12", steps) for k in range(n)]
    )


def exchanges(item: Item) -> list[tuple[Request, Response]]:
    """The item's question and three paraphrases: the third reply is empty, one step of the fourth
    was never embedded."""
    out: list[tuple[Request, Response]] = []
    for k, text in enumerate(CHAINS):
        prompt = continuation_prompt(
            f"In other words, {k}: {item.question}" if k else item.question, (), MODEL.form
        )
        asked = Complete(MODEL, prompt.messages, prefix=prompt.prefix, stop=("\nQ:",))
        out.append((asked, Response(asked.key, text=text, finish="stop")))
    for text, vector in VECTORS.items():
        wanted = Embed(EMBEDDER, (text,))
        out.append((wanted, Response(wanted.key, vectors=(vector,))))
    return out


def scores_of(item: Item, draw: random.Random, *, whole: bool) -> Iterator[tuple[str, Score]]:
    """As the scorers': (scorer, score). In the first item nothing was verified; the last one broke
    a hard floor."""
    keys = tuple(request.key for request, _ in exchanges(item))
    first, halted = item.id == "i-00", item.id == "i-11"

    def told(
        scorer: str,
        name: str,
        value: float | None,
        reason: str | None = None,
        *,
        step: int | None = None,
        where: tuple[int, int] | None = None,
        status: str | None = None,
        **facet: str,
    ) -> tuple[str, Score]:
        state: str = status or ("ok" if value is not None else "undefined")
        return scorer, Score(
            name,
            item.id,
            value,
            step=step,
            facet=tuple(sorted(facet.items())),
            where=where,
            status=state,
            reason=reason,
            evidence=keys,
        )  # type: ignore[arg-type]

    gone = f"no link is decided {HOSTILE}"
    mu = 0.8 + draw.random() / 5
    sigma = draw.random() / 10
    parts = {
        "C": mu * (1 - sigma),
        "R": 0.5 + draw.random() / 2,
        "V": None if first else 0.6 + 0.4 * draw.random(),
        "D": draw.choice((0.2, 0.4)),
        "F": 0.7 + draw.random() / 5,
    }
    yield told("consistency", "consistency", parts["C"], chain="own", k="4", paraphrases="rules")
    yield told("consistency", "consistency_mu", mu, chain="own", k="4", paraphrases="rules")
    yield told("consistency", "consistency_sigma", sigma, chain="own", k="4", paraphrases="rules")
    for link in ("reverse", "forward"):
        yield told(
            "verification",
            "verification",
            parts["V"],
            gone if first else None,
            chain="reference",
            link=link,
        )
        yield told(
            "verification",
            "link_support",
            0.97,
            step=1,
            chain="reference",
            link=link,
            verifier="arithmetic",
        )
        if first:
            yield told(
                "verification",
                "link_support",
                None,
                gone,
                step=2,
                chain="reference",
                link=link,
                verifier="none",
            )
        else:
            yield told(
                "verification",
                "link_support",
                0.0,
                step=2,
                where=(0, 11),
                chain="reference",
                link=link,
                verifier="arithmetic",
            )
    yield told("flags", "flags", parts["F"], chain="reference")
    yield told(
        "flags",
        "flag_count",
        None,
        "no model embeds the steps: --embedder",
        chain="reference",
        rule="semantic_jump",
    )
    if not halted:
        yield told(
            "flags",
            "flag_penalty",
            0.97,
            step=0,
            where=(0, 7),
            chain="reference",
            rule="hand_waving",
        )
        yield told(
            "flags",
            "flag_penalty",
            0.9,
            step=1,
            where=(3, 13),
            chain="reference",
            rule="premature_answer",
        )
        yield told(
            "flags",
            "flag_penalty",
            0.94,
            step=1,
            where=(0, 20),
            chain="reference",
            rule="semantic_jump",
        )
    if not whole:
        return
    at = {"chain": "reference", "profile": "phase3"}
    why = "F is 0.1, below the hard floor 0.2"
    features = {
        **parts,
        "mu": mu,
        "sigma": sigma,
        "pass_rate": None if first else 0.4,
        "jumps": None,
        "early_answer": 1.0,
    }
    for name, value in features.items():
        stop = halted and name != "F"
        yield told(
            "composite",
            "feature",
            None if stop else value,
            why if stop else None if value is not None else gone,
            status="stopped" if stop else None,
            feature=name,
            **at,
        )
    known = [value for value in parts.values() if value is not None]
    for name, mean in (
        ("r_raw", sum(known) / len(known)),
        ("weight_defined", 0.75 if first else 1.0),
        ("weight_checked", 0.625 if first else 0.875),
    ):
        yield told(
            "composite",
            name,
            None if halted else mean,
            why if halted else None,
            status="stopped" if halted else None,
            **at,
        )
    yield told("composite", "answer_correct", 0.0, **at)
    for rule in RULES:
        if halted:
            yield told(
                "composite", "diagnosis", None, f"mu: {why}", status="stopped", rule=rule, **at
            )
            continue
        undefined = first and rule in ("global_drift", "unsupported_jumps")
        value = (
            None
            if undefined
            else float(rule == "post_hoc" or (rule == "monoculture" and draw.random() < 0.4))
        )
        yield told(
            "composite", "diagnosis", value, f"V: {gone}" if undefined else None, rule=rule, **at
        )


def fill(
    folder: Path,
    n: int = 12,
    *,
    estimated: bool = True,
    whole: bool = True,
    scorers: tuple[str, ...] = (),
) -> str:
    """A store with one run on ``n`` items; ``whole`` with the composite, else of ``scorers``.
    Returns the run's id."""
    store, suite, draw = Store(folder), make_suite(n), random.Random(5)
    names = scorers or (*SCORER_BY_COMPONENT.values(), *(("composite",) if whole else ()))
    ended = []
    for item in suite.items:
        found = list(scores_of(item, draw, whole=whole))
        ended += [
            write.EndedItem(s, 1, "p", item.id, tuple(score for of, score in found if of == s))
            for s in names
        ]
    models = {"subject": MODEL, "embedder": EMBEDDER}
    add_run(store, "run-1", suite, ended, models=models, scorers=names, status=None)
    if estimated:
        table = read.run_scores(store, "run-1")
        told = mean_estimates(
            table[table["metric"] != "flag_penalty"], 42, frozenset({"diagnosis", "answer_correct"})
        )
        with store.writing() as connection:
            write.set_estimates(connection, "run-1", told)
    with store.writing() as connection:
        write.set_status(connection, "run-1", "done")
    log = ResponseLog(store.log_path)
    log.put([pair for item in suite.items for pair in exchanges(item)], "run-1")
    log.close()
    return "run-1"
