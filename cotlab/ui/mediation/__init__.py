"""The tab Mediation."""
