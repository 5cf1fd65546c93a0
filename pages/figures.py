"""Figures: every figure of a run as it is printed, and its files."""

from cotlab.ui import components as parts
from cotlab.ui import figures

parts.head("Figures", "What does a figure look like in print, and what goes with it?")
row = figures.pick_run()
recipe = figures.choose(row) if row is not None else None
if row is not None and recipe is not None:
    preset = figures.pick_preset()
    figures.show(recipe, preset)
    figures.downloads(recipe, preset)
    figures.every(row, preset)
