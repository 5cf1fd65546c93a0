"""Figures: every figure of a run as it is printed, and its files."""

from cotlab.ui import components, figures

components.render_heading(
    "Figures", ("What does a figure look like in print, and which files does it have?")
)
row = figures.select_figure_run()
chosen = figures.select_figure(row) if row is not None else None
if row is not None and chosen is not None:
    preset = figures.select_preset()
    recipe = figures.make_recipe(chosen, preset)
    figures.render_figure(recipe, preset)
    figures.render_downloads(recipe, preset)
    figures.render_all_figures(row, preset)
    figures.render_command(chosen, preset)
