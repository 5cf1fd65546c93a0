"""The page Mediation."""
