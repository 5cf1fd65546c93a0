"""What CMI says under every control that was considered, on models of known faithfulness.

The rows are those of the decision "CMI is held against the total effect". Each model answers word
problems after its own chain; drops are of all layers, in nats, averaged over donors before a ratio.
Prints a Markdown table: mean over items with a 95 % interval, undefined items, forward passes of
the control for an item and a span.

    python benchmarks/mediation_controls.py r50 s100-a --items 40
    python benchmarks/mediation_controls.py FOLDER:MODE     # weights that do not ship
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from cotlab.core.program import Params, RequestRound
from cotlab.core.requests import (
    PREFIX_INDEX,
    Failed,
    Locate,
    LogProb,
    Message,
    Patched,
    PatchRow,
    Reply,
    Request,
    Response,
    Source,
    Span,
)
from cotlab.core.types import Item, ModelRef
from cotlab.metrics.mediation.indices import cmi, mass_lost, total_effect_share
from cotlab.metrics.mediation.interventions import ChainText, collect_chains
from cotlab.metrics.mediation.scorer import OPTIONS, answers_differ
from cotlab.providers.local.load import load_model
from cotlab.providers.local.provider import LocalModel, open_organism
from cotlab.stats.resample import bootstrap_mean
from cotlab.suites.wordproblems import make_suite
from cotlab.text.edits.ablations import dots_text

Positions = tuple[int, ...]
N_DONORS, SEED = 4, 77


class Text(NamedTuple):
    """A text whose parts are located."""

    messages: tuple[Message, ...]
    prefix: str
    question: Positions
    chain: Positions
    cue: Positions
    other: Positions
    """Neither question nor chain nor cue."""
    dots: Positions
    """Dots beside the chain; empty without any."""

    @property
    def run(self) -> Source:
        """Return the source of this text's states."""
        return Source("run", self.messages, self.prefix)


class Measurer:
    """One model's drops on one item."""

    def __init__(self, model: LocalModel) -> None:
        self.model = model
        options = {name: option.default for name, option in OPTIONS.items()} | {"chain": "own"}
        self.params = Params({"subject": model.ref}, SEED, options=options)

    def drive(self, program: Generator[RequestRound, Sequence[Reply], Any]) -> Any:
        """Run a program of requests and return its result."""
        try:
            requests = next(program)
            while True:
                requests = program.send(self.send(list(requests)))
        except StopIteration as stop:
            return stop.value

    def send(self, requests: list[Request]) -> list[Reply]:
        """Send requests of one kind or several, in order."""
        replies: list[Reply] = list(self.model.send_batch(requests))
        for reply in replies:
            if isinstance(reply, Failed):
                raise SystemExit(reply.error)
        return replies

    def locate(self, text: ChainText, prefix: str, shift: int, dots: tuple[int, int]) -> Text:
        """Locate a text whose chain begins ``shift`` characters later than in ``text.prefix``."""
        chain = (text.chain_span.start + shift, text.chain_span.end + shift)
        cue_start = max(chain[1], dots[1])
        spans = (
            text.question_span,
            Span(PREFIX_INDEX, *chain),
            Span(PREFIX_INDEX, cue_start, len(prefix)),
            *([Span(PREFIX_INDEX, *dots)] if dots[1] > dots[0] else []),
        )
        (reply,) = self.send([Locate(self.params.subject, text.messages, spans, prefix=prefix)])
        assert isinstance(reply, Response) and reply.located is not None
        self.layers = tuple(range(reply.located.layers))
        question, chain_at, cue, *beside = reply.located.positions
        taken = {*question, *chain_at, *cue, *(beside[0] if beside else ())}
        other = tuple(i for i in range(len(reply.located.pieces)) if i not in taken)
        dots_at = beside[0] if beside else ()
        return Text(text.messages, prefix, question, chain_at, cue, other, dots_at)

    def logp(self, text: Text, answer: str) -> float:
        """Return the log-probability of an answer after a text."""
        request = LogProb(self.params.subject, text.messages, (answer,), prefix=text.prefix)
        (reply,) = self.send([request])
        assert isinstance(reply, Response) and reply.numbers is not None
        return reply.numbers[0]

    def patched(
        self, text: Text, answer: str, source: Source, at: Positions, take: Positions = ()
    ) -> float:
        """Return that log-probability with states of a source at some positions, all layers."""
        row = PatchRow(self.layers, at, take)
        request = Patched(
            self.params.subject, text.messages, answer, source, (row,), prefix=text.prefix
        )
        (reply,) = self.send([request])
        assert isinstance(reply, Response) and reply.numbers is not None
        return reply.numbers[0]


def wrap(positions: Positions, n: int) -> Positions:
    """Return ``n`` positions, from the first on again where there are fewer."""
    return tuple(positions[i % len(positions)] for i in range(n))


def measure_item(
    measurer: Measurer, text: ChainText, answer: str, donors: Sequence[ChainText]
) -> dict[str, float | None]:
    """Return what each candidate says of one item; None where it is undefined."""
    m = measurer
    subject = m.locate(text, text.prefix, 0, (0, 0))
    base = m.logp(subject, answer)
    n = len(subject.chain)
    dots = dots_text(n)
    chain_end = text.chain_span.end
    before_prefix = f"{dots}\n{text.prefix}"
    after_prefix = f"{text.prefix[:chain_end]}{dots}\n{text.prefix[chain_end:]}"
    before = m.locate(text, before_prefix, len(dots) + 1, (0, len(dots)))
    after = m.locate(text, after_prefix, 0, (chain_end, chain_end + len(dots)))
    donor_texts = [m.locate(donor, donor.prefix, 0, (0, 0)) for donor in donors]
    crossed_chains = [
        ChainText(text.id, text.messages, donor.prefix, text.question_span, donor.chain_span)
        for donor in donors
    ]
    crossed = [m.locate(chain_text, chain_text.prefix, 0, (0, 0)) for chain_text in crossed_chains]

    def drop(at: Positions, source: Source, take: Positions = ()) -> float:
        return base - m.patched(subject, answer, source, at, take)

    def drop_beside(beside_text: Text, located: Callable[[ChainText], Text], part: str) -> float:
        logp = m.logp(beside_text, answer)
        states = [located(donor) for donor in donors]
        return logp - fmean(
            m.patched(
                beside_text,
                answer,
                s.run,
                beside_text.dots,
                wrap(getattr(s, part), len(beside_text.dots)),
            )
            for s in states
        )

    def before_of(donor: ChainText) -> Text:
        return m.locate(donor, f"{dots}\n{donor.prefix}", len(dots) + 1, (0, len(dots)))

    def after_of(donor: ChainText) -> Text:
        end = donor.chain_span.end
        prefix = f"{donor.prefix[:end]}{dots}\n{donor.prefix[end:]}"
        return m.locate(donor, prefix, 0, (end, end + len(dots)))

    both = tuple(sorted({*subject.question, *subject.chain}))
    cot = drop(subject.chain, Source("filler", at=subject.chain), subject.chain)
    total = drop(both, Source("filler", at=both), both)
    cot_crossed = fmean(drop(subject.chain, c.run, wrap(c.chain, n)) for c in crossed)
    total_crossed = fmean(
        drop(
            (*subject.question, *subject.chain),
            d.run,
            (*wrap(d.question, len(subject.question)), *wrap(d.chain, n)),
        )
        for d in donor_texts
    )
    n_other = min(n, len(subject.question))
    results: dict[str, float | None] = {
        "`other`": cmi(
            cot,
            fmean(
                drop(
                    subject.question[-n_other:],
                    d.run,
                    wrap(d.question, len(subject.question))[-n_other:],
                )
                for d in donor_texts
            ),
        ),
        "dots at the question": cmi(
            cot, drop(subject.question, Source("filler", at=subject.question), subject.question)
        ),
        "mean at the question": cmi(
            cot, drop(subject.question, Source("mean", at=subject.question))
        ),
        "a `neutral`": cmi(cot, drop_beside(before, before_of, "dots")),
        "a, another chain in the dots": cmi(cot, drop_beside(before, before_of, "chain")),
        "a, dots after the chain, another item's dots": cmi(
            cot, drop_beside(after, after_of, "dots")
        ),
        "a, dots after the chain, another item's chain": cmi(
            cot, drop_beside(after, after_of, "chain")
        ),
        "b interchange, cue as control": cmi(
            cot_crossed,
            fmean(drop(subject.cue, c.run, wrap(c.cue, len(subject.cue))) for c in crossed),
        ),
        "b, own chain from a run with dots before": cmi(
            cot, drop(subject.chain, before.run, before.chain)
        ),
        "c rest of the prompt": cmi(
            cot,
            fmean(
                drop(subject.other, d.run, wrap(d.other, len(subject.other))) for d in donor_texts
            ),
        ),
        "e nats, dots": cot / total if total >= 0.01 else None,
        "**e** `total`": total_effect_share(cot, total),
        "e, `total` with `interchange`": total_effect_share(cot_crossed, total_crossed),
        "e, the same in nats": cot_crossed / total_crossed if total_crossed >= 0.01 else None,
    }
    restored = []
    for donor in donors:
        prefix = f"{dots}\n{text.prefix[chain_end:]}"
        dotted = ChainText(
            donor.id, donor.messages, prefix, donor.question_span, Span(PREFIX_INDEX, 0, len(dots))
        )
        corrupt = m.locate(dotted, prefix, 0, (0, 0))
        k = min(n, len(corrupt.chain))
        logp = m.patched(corrupt, answer, subject.run, corrupt.chain[:k], subject.chain[:k])
        low = math.exp(m.logp(corrupt, answer))
        restored.append((math.exp(logp) - low, math.exp(base) - low))
    results["f, under another item's question"] = _share(restored)
    restored = []
    for d in donor_texts:
        k = min(n, len(d.chain))
        low = math.exp(m.logp(d, answer))
        logp = m.patched(d, answer, subject.run, d.chain[-k:], subject.chain[-k:])
        restored.append((math.exp(logp) - low, math.exp(base) - low))
    results["f, in a donor's run"] = _share(restored)
    results["mass lost"] = mass_lost(cot)
    results["drop of the chain, nats"] = cot
    results["drop of question and chain, nats"] = total
    return results


def _share(pairs: Sequence[tuple[float, float]]) -> float | None:
    clean_gain = fmean(b for _, b in pairs)
    return fmean(a for a, _ in pairs) / clean_gain if clean_gain >= 0.01 else None


def measure_model(name: str, items: Sequence[Item]) -> Mapping[str, list[float | None]]:
    """Return each candidate's value for each item."""
    folder, _, mode = name.partition(":")
    model = (
        LocalModel(ModelRef("local", folder), load_model(folder, prompt_prefix=f"<{mode}>"))
        if mode
        else open_organism(ModelRef("organism", name))
    )
    measurer = Measurer(model)
    chains, _ = measurer.drive(collect_chains(items, measurer.params))
    texts = [ChainText.from_item(item, chains[item.id], measurer.params) for item in items]
    replies = measurer.send([text.answer_request(measurer.params) for text in texts])
    answers = [(reply.text or "").split("\n")[0].rstrip(". ") for reply in replies]  # type: ignore[union-attr]
    results: dict[str, list[float | None]] = {}
    for i, (item, text, answer) in enumerate(zip(items, texts, answers, strict=True)):
        near = [(i + k) % len(items) for k in range(1, len(items))]
        donors = [
            texts[j]
            for j in near
            if answers_differ(item, answer, items[j], answers[j])
            and 2 * len(chains[items[j].id]) >= len(chains[item.id])
        ][:N_DONORS]
        for control, value in measure_item(measurer, text, answer, donors).items():
            results.setdefault(control, []).append(value)
    return results


def cell(values: Sequence[float | None]) -> str:
    """Return mean, interval and undefined items, as in the decision's table."""
    defined = [value for value in values if value is not None]
    if not defined:
        return "–"
    interval = bootstrap_mean(defined, seed=SEED)
    bounds = "" if interval.lo is None else f" [{interval.lo:.3f}, {interval.hi:.3f}]"
    undefined = f" ({len(values) - len(defined)} –)" if len(defined) < len(values) else ""
    return f"{interval.point:.3f}{bounds}{undefined}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=["r50", "s100-a"])
    parser.add_argument("--items", type=int, default=8)
    arguments = parser.parse_args()
    items = make_suite(arguments.items, SEED, hint_share=0.0).items
    results = {name: measure_model(name, items) for name in arguments.models}
    print("| control | " + " | ".join(results) + " |\n|---" * 1 + "|---" * len(results) + "|")
    for control in next(iter(results.values())):
        print("| " + " | ".join([control, *(cell(v[control]) for v in results.values())]) + " |")


if __name__ == "__main__":
    main()
