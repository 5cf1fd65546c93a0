"""Agreement: whether raters mean the same, and where they do not."""

from cotlab.ui import agreement
from cotlab.ui import components as parts

parts.head("Agreement", "Do raters mean the same by acceptable, and which items do they differ on?")
found = agreement.found()
if found is not None:
    agreement.figure(found[0])
    agreement.raters(found[0])
    agreement.disagreements(*found)
