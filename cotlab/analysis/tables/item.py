"""The table of each figure of one item."""

from __future__ import annotations

import pandas as pd

from cotlab.analysis.tables import mediation, reliability
from cotlab.analysis.tables.chains import (
    cosine_table,
    embedded_vectors,
    entropy_steps,
    link_table,
    original_step_texts,
    paraphrase_chains,
    ranking_table,
    wording_labels,
)
from cotlab.analysis.tables.declare import (
    FigureChoice,
    FigureData,
    NoTable,
    figure_table,
    no_scores,
)
from cotlab.analysis.tables.run import (
    run_ccs_metrics,
    run_component_scores,
    select_measure,
    select_mediation_setting,
)
from cotlab.analysis.view import RunView
from cotlab.core.types import CCS_METRICS, Item
from cotlab.figures.robustness import MEASURE_NAMES, order_perturbations
from cotlab.figures.robustness import perturbation_label as perturbation_name
from cotlab.run.scored_chain import scored_chain
from cotlab.store import read

MAX_ITEM_ROWS = 50
"""Most items of one figure."""


def _select_item(view: RunView, choice: FigureChoice, rows: pd.DataFrame) -> Item:
    """Return the chosen item of those that have some scores, in the order of the suite."""
    scored_ids = set(rows["item_id"])
    return view.item(choice.select("item", [item for item in view.items if item in scored_ids]))


def _item_figure(table: pd.DataFrame, item: Item, note: str = "") -> FigureData:
    return FigureData(table, f"Item {item.id}. {note}".strip(), FigureChoice(item=item.id))


@figure_table(CCS_METRICS, scope="item", scorer="ablation")
def ccs_ranking(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the steps of a chain with their CCS."""
    spec = view.scorer("ablation")
    if spec is None:
        raise no_scores("ablation")
    metric = choice.select("metric", run_ccs_metrics(view))
    groups = view.score_groups
    step_groups = groups[(groups["metric"] == metric) & (groups["n_steps"] > 0)]
    if step_groups.empty:
        raise NoTable("no step has been scored")
    mode = choice.select("mode", [m for m in spec.params["modes"] if m in set(step_groups["mode"])])
    scored_ids = read.list_scored_items(
        view.store, view.id, (metric,), facet_values={"mode": mode}, only_steps=True
    )
    item = view.item(choice.select("item", scored_ids))
    item_scores = view.item_scores(item.id)
    texts = original_step_texts(item, item_scores, spec.params["chain"] == "own", view.exchanges)
    is_chosen = (item_scores["metric"] == metric) & (item_scores["mode"] == mode)
    table = ranking_table(texts, item_scores[is_chosen])
    chosen = FigureChoice(item=item.id, metric=metric, mode=mode)
    return FigureData(table, f"Item {item.id}; {metric}, {mode}.", chosen)


@figure_table(reliability.RELIABILITY_METRICS, scope="item", scorer="composite")
def item_parts(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the parts of reliability of an item."""
    rows = run_component_scores(view)
    item = _select_item(view, choice, rows)
    return _item_figure(reliability.item_component_rows(rows, item.id), item)


@figure_table(("link_support",), scope="item")
def verification_links(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the links between the steps of a chain, and what checked them."""
    if "link_support" not in view.step_metrics:
        if "verification" in set(view.score_groups["scorer"]):
            raise NoTable("no link was checked")
        raise no_scores("verification")
    ids = read.list_scored_items(view.store, view.id, ("link_support",), only_steps=True)
    item = view.item(choice.select("item", ids))
    scores = view.item_scores(item.id)
    scores = scores[scores["scorer"] == "verification"]
    chain = scored_chain(item, scores, view.plan.subject.form, view.exchanges, view.responses)
    return _item_figure(link_table(scores, chain.steps), item)


@figure_table(("consistency_mu", "feature"), scope="item")
def chain_cosines(view: RunView, choice: FigureChoice) -> FigureData:
    """Return how alike the chains of an item's wordings are."""
    rows = reliability.component_scores(view.scores(*reliability.RELIABILITY_METRICS), ("mu",))
    if rows.empty:
        raise no_scores("consistency")
    # the evidence of a stopped one is that of the parts before
    rows = rows[rows["status"] != "stopped"]
    if rows.empty:
        raise NoTable("no item got as far as its paraphrases")
    item = _select_item(view, choice, rows)
    keys = tuple(rows[rows["item_id"] == item.id]["evidence"].iloc[0])
    logged_exchanges, replies = view.exchanges(keys), view.responses(keys)
    requests = {key: logged_exchanges[key][0] for key in keys if key in logged_exchanges}
    chains = paraphrase_chains(requests, replies, item, view.plan.subject.form)
    vectors = embedded_vectors(requests, replies)
    table = cosine_table(wording_labels(chains, item), chains, vectors)
    if table.empty:
        raise NoTable("the log holds no two chains of this item")
    return _item_figure(table, item)


@figure_table(tuple(MEASURE_NAMES))
def item_cells(view: RunView, choice: FigureChoice) -> FigureData:
    """Return a measure of perturbed steps by item and position."""
    measure = select_measure(view, choice)
    step_scores = reliability.with_perturbation(view.scores(measure))
    step_scores = step_scores[step_scores["step"].notna()]
    names = order_perturbations(step_scores["perturbation"])
    perturbation = choice.select("perturbation", sorted(names, key=lambda name: name != "all"))
    item_means = reliability.item_step_means(step_scores, perturbation)
    items = list(dict.fromkeys(item_means["item_id"]))
    shown = items[:MAX_ITEM_ROWS]
    table = reliability.item_cell_table(item_means, measure, shown)
    name = perturbation_name(perturbation)
    note = f"Perturbation: {name}; {len(shown)} of {len(items)} items."
    return FigureData(table, note, FigureChoice(metric=measure, perturbation=perturbation))


@figure_table(("step_entropy",), scope="item")
def entropy_by_step(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the entropy of each step of a chain."""
    spec = view.scorer("entropy")
    if spec is None or "entropy" not in set(view.score_groups["scorer"]):
        raise no_scores("entropy")
    item_ids = view.items_with("step_entropy", with_value=True)
    if not item_ids:
        raise NoTable("no step has an entropy")
    item = view.item(choice.select("item", item_ids))
    rows, jump = view.item_scores(item.id), spec.params["jump_nats"]
    note = f"A jump: more than {jump:g} nats above the mean of the earlier steps."
    return _item_figure(entropy_steps(rows[rows["scorer"] == "entropy"]), item, note)


@figure_table(("patch_drop",), scope="item")
def drops_by_donor(view: RunView, choice: FigureChoice) -> FigureData:
    """Return what each patched forward of an item loses in a span."""
    item, item_scores, setting = _select_patched_item(view, choice)
    span = choice.select("span", mediation.drop_spans(item_scores) or [""])
    chosen = FigureChoice(item=item.id, setting="~".join(setting), span=span)
    table = mediation.drop_table(item_scores, span)
    return FigureData(table, f"Item {item.id}; layers: {span or 'none'}.", chosen)


@figure_table(("patch_drop",), scope="item")
def item_density(view: RunView, choice: FigureChoice) -> FigureData:
    """Return CMI of an item by share of positions."""
    item, item_scores, setting = _select_patched_item(view, choice)
    spreads = mediation.spread_table(item_scores, setting, item.id, view.plan.seed)
    table = mediation.item_density_table(spreads, item_scores)
    if table.empty:
        raise NoTable("no share of the positions was patched")
    chosen = FigureChoice(item=item.id, setting="~".join(setting))
    return FigureData(table, f"Item {item.id}.", chosen)


def _select_patched_item(
    view: RunView, choice: FigureChoice
) -> tuple[Item, pd.DataFrame, mediation.Setting]:
    """Return the chosen item, or the first patched under the setting, and its drops there."""
    setting = select_mediation_setting(view, choice)
    if "patch_drop" not in view.metrics:
        raise no_scores("mediation")
    groups = mediation.with_facets(view.score_groups)
    facets = setting.select_rows(groups[groups["metric"] == "patch_drop"])["facet"].tolist()
    patched_ids = read.list_scored_items(view.store, view.id, ("patch_drop",), facet_texts=facets)
    item = view.item(choice.select("item", patched_ids))
    scores = mediation.with_facets(view.item_scores(item.id))
    return item, setting.select_rows(scores[scores["metric"] == "patch_drop"]), setting
