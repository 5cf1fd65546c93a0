"""Agreement: whether raters mean the same, and where they do not."""

from cotlab.ui import parts

parts.head("Agreement", "Do raters mean the same by acceptable, and which items do they disagree on?")
