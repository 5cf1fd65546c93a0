"""Tables in, plotly figures out: one look for all of them, and no query, no page and no statistics."""

from cotlab.figures.declare import FigureBuilder, figure

__all__ = ["FigureBuilder", "figure"]
