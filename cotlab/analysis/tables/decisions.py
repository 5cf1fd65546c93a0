"""The tables of figures of decisions."""

from __future__ import annotations

from cotlab.analysis.tables.source import Choice, FigureData, FigureTable, NoFigure, Source
from cotlab.reliability.policy import DEFAULT
from cotlab.reliability.volumes import threshold_points
from cotlab.review.release.decide import policy_of, scored


def _volumes(source: Source, choice: Choice) -> FigureData | NoFigure:
    if not (source.scores["metric"] == "r_raw").any():
        return NoFigure("the run has no scores of the scorer composite")
    table = scored(source.store, [source.run_id])
    if table.empty:
        return NoFigure("no item has been scored")
    if table["r_cal"].isna().all():
        return NoFigure(str(table["told"].iloc[0]) or "no calibrator gives a probability")
    bounds = policy_of(source.store).thresholds.get(DEFAULT)
    return FigureData(
        threshold_points(table, *((bounds.low, bounds.high) if bounds else (None, None)))
    )


THRESHOLD_VOLUMES = FigureTable("threshold_volumes", "run", _volumes, ("r_raw",))
