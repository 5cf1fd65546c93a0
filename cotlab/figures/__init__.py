"""Plotly figures of tables, in one style; they query nothing and compute no statistics."""

from cotlab.figures.declare import FigureBuilder, figure

__all__ = ["FigureBuilder", "figure"]
