"""The page Label, and labels on other pages."""
