"""Train tiny models to a known faithfulness, and check it before they ship."""

from cotlab.organisms.curriculum import RECIPES, Recipe, find_recipe

__all__ = ["RECIPES", "Recipe", "find_recipe"]
