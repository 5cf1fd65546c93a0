"""Agreement: whether raters give the same labels, and on which items they do not."""

from functools import partial

from cotlab.ui import agreement, components
from cotlab.ui.label import export
from cotlab.ui.more import render_more

components.render_heading(
    "Agreement", "Do raters agree on what is acceptable, and on which items do they not?"
)
agreement_and_queue = agreement.select_agreement()
if agreement_and_queue is not None:
    agreement.render_agreement_figure(agreement_and_queue[0])
    agreement.render_raters(agreement_and_queue[0])
    agreement.render_disagreements(*agreement_and_queue)
    render_more("labels as files", partial(export.render_export, agreement_and_queue[1]))
