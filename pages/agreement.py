"""Agreement: whether raters mean the same, and where they do not."""

from cotlab.ui import agreement
from cotlab.ui import components as parts

parts.head("Agreement", "Do raters mean the same by acceptable, and which items do they differ on?")
selected = agreement.select_agreement()
if selected is not None:
    agreement.render_agreement_figure(selected[0])
    agreement.render_raters(selected[0])
    agreement.render_disagreements(*selected)
