"""Agreement: whether raters give the same labels, and on which items they do not."""

from cotlab.ui import agreement, components

components.head(
    "Agreement", "Do raters agree on what is acceptable, and on which items do they not?"
)
selected = agreement.select_agreement()
if selected is not None:
    agreement.render_agreement_figure(selected[0])
    agreement.render_raters(selected[0])
    agreement.render_disagreements(*selected)
