"""The table of each figure of one item: its steps, parts, links, wordings, perturbed steps, entropy and patched forwards."""

from __future__ import annotations

import pandas as pd

from cotlab.analysis.tables import mediation, reliability, robustness
from cotlab.analysis.tables import paraphrases as wordings
from cotlab.analysis.tables.chains import ablated_texts, chain_of, link_table, linked, ranking
from cotlab.analysis.tables.entropy import steps_of
from cotlab.analysis.tables.run import ccs_metrics, measures, needs, part_scores, setting_of
from cotlab.analysis.tables.source import Absent, Choice, Drawn, FigureTable, Source
from cotlab.core.types import Item
from cotlab.figures.robustness import MEASURES, in_order
from cotlab.figures.robustness import words as perturbation_words
from cotlab.metrics.ablation.cards import CCS_METRICS
from cotlab.run.imports.mediation import is_imported

MOST_ITEMS = 50
"""So many items stand below each other in one figure."""


def _of(rows: pd.DataFrame) -> list[str]:
    return [str(one) for one in rows["item_id"].unique()]


def _ranking(source: Source, choice: Choice) -> Drawn | Absent:
    known, spec = ccs_metrics(source), source.scorer("ablation")
    if not known or spec is None:
        return needs("ablation")
    metric = choice.one_of("metric", known)
    rows = source.scores[(source.scores["metric"] == metric) & source.scores["step"].notna()]
    if rows.empty:
        return Absent("no step has been scored")
    mode = choice.one_of("mode", [m for m in spec.params["modes"] if m in set(rows["mode"])])
    rows = rows[rows["mode"] == mode]
    item = source.item(choice, _of(rows))
    own = source.scores[source.scores["item_id"] == item.id]
    texts = ablated_texts(item, own, spec.params["chain"] == "own", source.exchanges)
    table = ranking(texts, rows[rows["item_id"] == item.id])
    return Drawn(table, f"Item {item.id}; {metric}, {mode}.", Choice(item=item.id, metric=metric, mode=mode))


def _parts(source: Source, choice: Choice) -> Drawn | Absent:
    rows = part_scores(source)
    if rows.empty:
        return needs("composite")
    item = source.item(choice, _of(rows))
    return _item(reliability.item_part_rows(rows, item.id), item)


def _links(source: Source, choice: Choice) -> Drawn | Absent:
    rows = source.scores[source.scores["scorer"] == "verification"]
    checked = linked(rows)
    if checked.empty:
        return needs("verification") if rows.empty else Absent("no link was checked")
    item = source.item(choice, _of(checked))
    own = rows[rows["item_id"] == item.id]
    chain = chain_of(item, own, source.plan.subject.form, source.exchanges, source.responses)
    return _item(link_table(own, chain.steps), item)


def _cosines(source: Source, choice: Choice) -> Drawn | Absent:
    rows = reliability.part_scores(source.scores, ("mu",))
    if rows.empty:
        return needs("consistency")
    rows = rows[rows["status"] != "stopped"]  # the evidence of a stopped one is that of the parts before
    if rows.empty:
        return Absent("no item got as far as its paraphrases")
    item = source.item(choice, _of(rows))
    keys = tuple(rows[rows["item_id"] == item.id]["evidence"].iloc[0])
    asked, replies = source.exchanges(keys), source.responses(keys)
    requests = {key: asked[key][0] for key in keys if key in asked}
    found = wordings.tellings(requests, replies, item, source.plan.subject.form)
    table = wordings.cosine_table(wordings.wordings(found, item), found, wordings.vectors_of(requests, replies))
    return _item(table, item) if len(table) else Absent("the log holds no two chains of this item")


def _cells(source: Source, choice: Choice) -> Drawn | Absent:
    known = measures(source)
    if not known:
        return needs("robustness")
    measure = choice.one_of("metric", known)
    own = robustness.with_perturbation(source.scores[(source.scores["metric"] == measure) & source.scores["step"].notna()])
    names = in_order(own["perturbation"])
    perturbation = choice.one_of("perturbation", sorted(names, key=lambda name: name != "all"))
    found = robustness.item_means(own, perturbation)
    items = list(dict.fromkeys(found["item_id"]))
    table = robustness.item_cells(found, measure, items[:MOST_ITEMS])
    note = f"Perturbation: {perturbation_words(perturbation)}; {len(items[:MOST_ITEMS])} of {len(items)} items."
    return Drawn(table, note, Choice(metric=measure, perturbation=perturbation))


def _entropy(source: Source, choice: Choice) -> Drawn | Absent:
    spec = source.scorer("entropy")
    rows = source.scores[source.scores["scorer"] == "entropy"]
    known = rows[(rows["metric"] == "step_entropy") & rows["value"].notna()]
    if spec is None or rows.empty:
        return needs("entropy")
    if known.empty:
        return Absent("no step has an entropy")
    item = source.item(choice, _of(known))
    note = f"A jump: more than {spec.params['jump_nats']:g} nats above the mean of the earlier steps."
    return _item(steps_of(rows[rows["item_id"] == item.id]), item, note)


def _drops(source: Source, choice: Choice) -> Drawn | Absent:
    scores = mediation.with_facets(source.scores)
    setting, rows = setting_of(scores, choice), scores[scores["metric"] == "patch_drop"]
    if setting is None or rows.empty:
        return Absent("published rows hold no single draw") if is_imported(source.plan) else needs("mediation")
    rows = setting.of(rows)
    item = source.item(choice, _of(rows))
    own = rows[rows["item_id"] == item.id]
    span = choice.one_of("span", mediation.drop_spans(own) or [""])
    chosen = Choice(item=item.id, setting="~".join(setting), span=span)
    return Drawn(mediation.drops(own, span), f"Item {item.id}; layers: {span or 'none'}.", chosen)


def _density(source: Source, choice: Choice) -> Drawn | Absent:
    scores = mediation.with_facets(source.scores)
    setting, rows = setting_of(scores, choice), scores[scores["metric"] == "patch_drop"]
    if setting is None or rows.empty:
        return Absent("published rows hold no single draw") if is_imported(source.plan) else needs("mediation")
    rows = setting.of(rows)
    item = source.item(choice, _of(rows))
    found = mediation.spreads(rows, setting, item.id, source.plan.seed)
    table = mediation.item_density(found, rows[rows["item_id"] == item.id])
    if table.empty:
        return Absent("no share of the positions was patched")
    return Drawn(table, f"Item {item.id}.", Choice(item=item.id, setting="~".join(setting)))


def _item(table: pd.DataFrame, item: Item, note: str = "") -> Drawn:
    return Drawn(table, f"Item {item.id}. {note}".strip(), Choice(item=item.id))


CCS_RANKING = FigureTable("ccs_ranking", "item", _ranking, CCS_METRICS)
ITEM_PARTS = FigureTable("item_parts", "item", _parts, reliability.METRICS)
VERIFICATION_LINKS = FigureTable("verification_links", "item", _links, ("link_support",))
CHAIN_COSINES = FigureTable("chain_cosines", "item", _cosines, ("consistency_mu", "feature"))
ITEM_CELLS = FigureTable("item_cells", "run", _cells, tuple(MEASURES))
ENTROPY_BY_STEP = FigureTable("entropy_by_step", "item", _entropy, ("step_entropy",))
DROPS_BY_DONOR = FigureTable("drops_by_donor", "item", _drops, ("patch_drop",))
ITEM_DENSITY = FigureTable("item_density", "item", _density, ("patch_drop",))
