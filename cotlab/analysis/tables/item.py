"""The table of each figure of one item: its steps, parts, links, wordings, perturbed steps, entropy and patched forwards."""

from __future__ import annotations

import pandas as pd

from cotlab.analysis.tables import mediation, reliability, robustness
from cotlab.analysis.tables import paraphrases as paraphrase_tables
from cotlab.analysis.tables.chains import (
    ablated_texts,
    link_scores,
    link_table,
    ranking_table,
    scored_chain,
)
from cotlab.analysis.tables.entropy import entropy_steps
from cotlab.analysis.tables.run import (
    chosen_setting,
    missing_scorer,
    robustness_measures,
    run_ccs_metrics,
    run_component_scores,
)
from cotlab.analysis.tables.source import Choice, FigureData, FigureTable, NoFigure, Source
from cotlab.core.types import Item
from cotlab.core.vocabulary import CCS_METRICS
from cotlab.figures.robustness import MEASURES, order_perturbations
from cotlab.figures.robustness import perturbation_label as perturbation_name
from cotlab.run.imports.mediation import is_imported

MAX_ITEMS = 50
"""So many items stand below each other in one figure."""


def _item_ids(rows: pd.DataFrame) -> list[str]:
    return [str(item_id) for item_id in rows["item_id"].unique()]


def _ranking(source: Source, choice: Choice) -> FigureData | NoFigure:
    known, spec = run_ccs_metrics(source), source.scorer("ablation")
    if not known or spec is None:
        return missing_scorer("ablation")
    metric = choice.select("metric", known)
    rows = source.scores[(source.scores["metric"] == metric) & source.scores["step"].notna()]
    if rows.empty:
        return NoFigure("no step has been scored")
    mode = choice.select("mode", [m for m in spec.params["modes"] if m in set(rows["mode"])])
    rows = rows[rows["mode"] == mode]
    item = source.item(choice, _item_ids(rows))
    item_scores = source.scores[source.scores["item_id"] == item.id]
    texts = ablated_texts(item, item_scores, spec.params["chain"] == "own", source.exchanges)
    table = ranking_table(texts, rows[rows["item_id"] == item.id])
    return FigureData(
        table, f"Item {item.id}; {metric}, {mode}.", Choice(item=item.id, metric=metric, mode=mode)
    )


def _components(source: Source, choice: Choice) -> FigureData | NoFigure:
    rows = run_component_scores(source)
    if rows.empty:
        return missing_scorer("composite")
    item = source.item(choice, _item_ids(rows))
    return _item(reliability.item_component_rows(rows, item.id), item)


def _links(source: Source, choice: Choice) -> FigureData | NoFigure:
    rows = source.scores[source.scores["scorer"] == "verification"]
    checked = link_scores(rows)
    if checked.empty:
        return missing_scorer("verification") if rows.empty else NoFigure("no link was checked")
    item = source.item(choice, _item_ids(checked))
    item_scores = rows[rows["item_id"] == item.id]
    chain = scored_chain(
        item, item_scores, source.plan.subject.form, source.exchanges, source.responses
    )
    return _item(link_table(item_scores, chain.steps), item)


def _cosines(source: Source, choice: Choice) -> FigureData | NoFigure:
    rows = reliability.component_scores(source.scores, ("mu",))
    if rows.empty:
        return missing_scorer("consistency")
    rows = rows[
        rows["status"] != "stopped"
    ]  # the evidence of a stopped one is that of the parts before
    if rows.empty:
        return NoFigure("no item got as far as its paraphrases")
    item = source.item(choice, _item_ids(rows))
    keys = tuple(rows[rows["item_id"] == item.id]["evidence"].iloc[0])
    logged, replies = source.exchanges(keys), source.responses(keys)
    requests = {key: logged[key][0] for key in keys if key in logged}
    chains = paraphrase_tables.paraphrase_chains(requests, replies, item, source.plan.subject.form)
    table = paraphrase_tables.cosine_table(
        paraphrase_tables.wording_labels(chains, item),
        chains,
        paraphrase_tables.embedded_vectors(requests, replies),
    )
    return (
        _item(table, item) if len(table) else NoFigure("the log holds no two chains of this item")
    )


def _cells(source: Source, choice: Choice) -> FigureData | NoFigure:
    known = robustness_measures(source)
    if not known:
        return missing_scorer("robustness")
    measure = choice.select("metric", known)
    step_scores = robustness.with_perturbation(
        source.scores[(source.scores["metric"] == measure) & source.scores["step"].notna()]
    )
    names = order_perturbations(step_scores["perturbation"])
    perturbation = choice.select("perturbation", sorted(names, key=lambda name: name != "all"))
    item_means = robustness.item_step_means(step_scores, perturbation)
    items = list(dict.fromkeys(item_means["item_id"]))
    table = robustness.item_cell_table(item_means, measure, items[:MAX_ITEMS])
    note = (
        f"Perturbation: {perturbation_name(perturbation)}; {len(items[:MAX_ITEMS])} of {len(items)}"
        " items."
    )
    return FigureData(table, note, Choice(metric=measure, perturbation=perturbation))


def _entropy(source: Source, choice: Choice) -> FigureData | NoFigure:
    spec = source.scorer("entropy")
    rows = source.scores[source.scores["scorer"] == "entropy"]
    known = rows[(rows["metric"] == "step_entropy") & rows["value"].notna()]
    if spec is None or rows.empty:
        return missing_scorer("entropy")
    if known.empty:
        return NoFigure("no step has an entropy")
    item = source.item(choice, _item_ids(known))
    note = (
        f"A jump: more than {spec.params['jump_nats']:g} nats above the mean of the earlier steps."
    )
    return _item(entropy_steps(rows[rows["item_id"] == item.id]), item, note)


def _drops(source: Source, choice: Choice) -> FigureData | NoFigure:
    scores = mediation.with_facets(source.scores)
    setting, rows = chosen_setting(scores, choice), scores[scores["metric"] == "patch_drop"]
    if setting is None or rows.empty:
        return (
            NoFigure("published rows hold no single draw")
            if is_imported(source.plan)
            else missing_scorer("mediation")
        )
    rows = setting.of(rows)
    item = source.item(choice, _item_ids(rows))
    item_scores = rows[rows["item_id"] == item.id]
    span = choice.select("span", mediation.drop_spans(item_scores) or [""])
    chosen = Choice(item=item.id, setting="~".join(setting), span=span)
    return FigureData(
        mediation.drop_table(item_scores, span),
        f"Item {item.id}; layers: {span or 'none'}.",
        chosen,
    )


def _density(source: Source, choice: Choice) -> FigureData | NoFigure:
    scores = mediation.with_facets(source.scores)
    setting, rows = chosen_setting(scores, choice), scores[scores["metric"] == "patch_drop"]
    if setting is None or rows.empty:
        return (
            NoFigure("published rows hold no single draw")
            if is_imported(source.plan)
            else missing_scorer("mediation")
        )
    rows = setting.of(rows)
    item = source.item(choice, _item_ids(rows))
    spreads = mediation.spread_table(rows, setting, item.id, source.plan.seed)
    table = mediation.item_density_table(spreads, rows[rows["item_id"] == item.id])
    if table.empty:
        return NoFigure("no share of the positions was patched")
    return FigureData(table, f"Item {item.id}.", Choice(item=item.id, setting="~".join(setting)))


def _item(table: pd.DataFrame, item: Item, note: str = "") -> FigureData:
    return FigureData(table, f"Item {item.id}. {note}".strip(), Choice(item=item.id))


CCS_RANKING = FigureTable("ccs_ranking", "item", _ranking, CCS_METRICS)
ITEM_PARTS = FigureTable("item_parts", "item", _components, reliability.METRICS)
VERIFICATION_LINKS = FigureTable("verification_links", "item", _links, ("link_support",))
CHAIN_COSINES = FigureTable("chain_cosines", "item", _cosines, ("consistency_mu", "feature"))
ITEM_CELLS = FigureTable("item_cells", "run", _cells, tuple(MEASURES))
ENTROPY_BY_STEP = FigureTable("entropy_by_step", "item", _entropy, ("step_entropy",))
DROPS_BY_DONOR = FigureTable("drops_by_donor", "item", _drops, ("patch_drop",))
ITEM_DENSITY = FigureTable("item_density", "item", _density, ("patch_drop",))
