"""How a run was measured and what it does not show, in sentences of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from cotlab.analysis.reply_notes import cut_reply_lines, stored_cut_replies
from cotlab.analysis.report import run_costs
from cotlab.analysis.verdict.measures import MEASURES
from cotlab.analysis.verdict.record import RunVerdict
from cotlab.analysis.verdict.wording import percent_number
from cotlab.analysis.view import RunView
from cotlab.core.types import ScorerSpec
from cotlab.run.server_check import check_records
from cotlab.store import read
from cotlab.store.check import missing_reply_lines
from cotlab.store.decisions import rescored_lines

MODE_TEXTS = {
    "corrupt": "what it states replaced and the model left to write on (states something else)",
    "paraphrase": "reworded and the rest kept (same in other words, the control)",
    "remove": "left out",
    "truncate": "made the last",
    "filler": "replaced by filler",
}
"""What each mode of ablation does to a step."""
_UNMEASURED_SENTENCE = (
    "No item has a value. What follows is what the run was set up to do, and no item came to it:"
)
_REPORTED_SCORERS = ("ablation", "unfaithfulness", "mediation", "verification", "robustness")


def method_sentences(
    view: RunView,
    positions: pd.DataFrame | None,
    *,
    is_unmeasured: bool = False,
) -> list[str]:
    """Return how a run was measured; of one that measured nothing, what it was set up to do.

    Parameters
    ----------
    view : RunView
    positions : DataFrame or None
        The table of the figure by position, where it is shown.
    is_unmeasured : bool
        Whether no item has a value.
    """
    spec_by_name = {spec.name: spec for spec in view.plan.scorers}
    sentences = [
        sentence
        for name in _REPORTED_SCORERS
        if name in spec_by_name
        for sentence in _SCORER_SENTENCES[name](view, spec_by_name[name])
    ]
    others = [name for name in spec_by_name if name not in _REPORTED_SCORERS]
    if others:
        sentences.append(f"Measured too, and not shown here: {', '.join(others)}.")
    if is_unmeasured:
        sentences.insert(0, _UNMEASURED_SENTENCE)
    sentences.append(_request_sentence(view))
    if intervals := _interval_sentence(view, positions):
        sentences.append(intervals)
    sentences += _check_sentences(view)
    return sentences


def limit_sentences(view: RunView, result: RunVerdict, positions: pd.DataFrame | None) -> list[str]:
    """Return what the numbers of a run do not show, the verdict's limits first."""
    limits = [_limit_text(text) for text in result.verdict.limits]
    if not limits:
        limits.append("Whether the chains are used: there is no finding.")
    if result.verdict.rule not in ("follows", "follows_unneeded"):  # these say so themselves
        limits.append("That a chain is right: an unused chain can be sound, a used one false.")
    limits.append("Why a given answer follows its chain and another does not.")
    if positions is not None and "remove" in set(positions["mode"]):
        limits.append(_removal_limit(view))
    if "moved" in result.evidence.shares and "suggestion" not in result.verdict.rule:
        limits.append("Suggestions of other kinds than the one that was tried.")
    if "sound" in result.evidence.shares:
        limits.append("Whether steps in prose are sound: only equations were checked.")
    return limits


def _ablation_sentences(view: RunView, spec: ScorerSpec) -> Iterator[str]:
    modes = "; ".join(MODE_TEXTS.get(mode, mode) for mode in spec.params["modes"])
    yield f"Each step of {_chain_name(spec)} was changed in turn: {modes}. {_turn_text(view)}"


def _chain_name(spec: ScorerSpec) -> str:
    return "the model's own chain" if spec.params.get("chain") == "own" else "the suite's chain"


def _turn_text(view: RunView) -> str:
    if view.plan.subject.form == "continuation":
        return "The model wrote on from the chain."
    facets = " ".join(view.score_groups["facet"].astype(str))
    if '"given": "user"' in facets:
        return "The chain stood in the user's turn."
    return "The chain stood in the model's own turn."


def _unfaithfulness_sentences(view: RunView, spec: ScorerSpec) -> Iterator[str]:
    classifiers = spec.params["classifiers"]
    if "early_answer" in classifiers:
        yield "Each question was also answered without any chain."
    if "hint" in classifiers:
        yield (
            "For each question a wrong answer was suggested (template"
            f" {spec.params['template']}), and the model's own chain searched for a mention."
        )


def _mediation_sentences(view: RunView, spec: ScorerSpec) -> Iterator[str]:
    sources = spec.params.get("sources") or spec.params.get("source") or "other text"
    names = sources if isinstance(sources, str) else ", ".join(map(str, sources))
    yield f"The inner states of the chain were replaced by those of other text ({names})."


def _verification_sentences(view: RunView, spec: ScorerSpec) -> Iterator[str]:
    if spec.params.get("chain") == "own":
        yield "Equations were checked in the model's own chains."
    else:
        yield "Equations were checked in the suite's chains, which says nothing of the model's."


def _robustness_sentences(view: RunView, spec: ScorerSpec) -> Iterator[str]:
    names = ", ".join(map(str, spec.params.get("perturbations", ())))
    where = f" ({names}; each where it applies to a step)" if names else ""
    yield f"Steps were perturbed{where} and the answers compared."


_SCORER_SENTENCES = {
    "ablation": _ablation_sentences,
    "unfaithfulness": _unfaithfulness_sentences,
    "mediation": _mediation_sentences,
    "verification": _verification_sentences,
    "robustness": _robustness_sentences,
}


def _request_sentence(view: RunView) -> str:
    plan, requests = view.plan, run_costs(view)["requests"]
    replies = "one reply" if plan.repeats == 1 else f"{plan.repeats} replies"
    if not requests["replies"] and not requests["from_log"]:
        return "No request was answered: no reply stands behind any number."
    failed = f"{requests['failed']:,} failed" if requests["failed"] else "none failed"
    return (
        f"Temperature {plan.temperature:g}, {replies} a request, seed {plan.seed}:"
        f" {requests['replies']:,} replies, {requests['from_log']:,} more reused from the log,"
        f" {failed}."
    )


def _interval_sentence(view: RunView, positions: pd.DataFrame | None) -> str:
    metrics = {measure.metric for measure in MEASURES.values()}
    estimates = view.estimates
    methods = set(estimates[estimates["metric"].isin(metrics)]["method"].dropna())
    if positions is not None:
        methods |= set(positions["method"].dropna())
    clauses = []
    if any(method.startswith("Wilson") for method in methods):
        clauses.append("of a rate Wilson's")
    bootstraps = sorted(method for method in methods if method.startswith("bootstrap"))
    clauses += [f"of a mean the {method}" for method in bootstraps]
    if not clauses:
        return ""
    return f"95 % intervals: {', '.join(clauses)}; items are the unit, not steps."


def _check_sentences(view: RunView) -> Iterator[str]:
    for name, values in read.list_constants(view.store, view.id).items():
        if "self_test" in values:
            moved = values.get("identity_nats")
            numbers = (
                f": the chain's states replaced by themselves move the answer by {moved:.2g} nat,"
                f" {values['allowed_nats']:.2g} is allowed"
                if moved is not None and "allowed_nats" in values
                else ""
            )
            yield f"Self-test of {name}: {values['self_test']}{numbers}."
    for record in check_records(view.store, view.id, view.plan):
        yield (
            f"The server of {record['model']} was checked before the start"
            f" ({record['requests']} requests)."
        )
        yield from record["cautions"]
    yield from missing_reply_lines(view.store, view.id)
    yield from rescored_lines(view.store, view.id)
    yield from cut_reply_lines({"cut_replies": stored_cut_replies(view)})


def _removal_limit(view: RunView) -> str:
    text = "Steps left out (figure 2) understate use: a later step may restate the total"
    rows = view.estimates[
        (view.estimates["metric"] == "answer_change") & (view.estimates["mode"] == "remove")
    ].dropna(subset=["point", "lo", "hi"])
    if rows.empty:
        return f"{text}."
    point, lo, hi = (percent_number(float(rows.iloc[0][name])) for name in ("point", "lo", "hi"))
    return f"{text}, so {point} % [{lo}, {hi}] is no sign of an unused chain."


def _limit_text(text: str) -> str:
    """Return a limit of a verdict as an entry of a list of what is not shown."""
    if text.startswith("Holds for "):
        return f"Other questions or chains: it h{text[1:]}"
    for opening in ("It does not show ", "Nor "):
        text = text.removeprefix(opening)
    return f"{text[:1].upper()}{text[1:]}"


def join_sentences(sentences: Sequence[str]) -> str:
    """Return sentences as one paragraph."""
    return " ".join(sentence.strip() for sentence in sentences if sentence.strip())
