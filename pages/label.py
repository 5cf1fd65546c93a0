"""Label: raters judge one chain after the other; their agreement, and where they do not agree."""

from functools import partial

from cotlab.ui import components
from cotlab.ui.address import open_tab
from cotlab.ui.more import render_more

components.render_heading("Label", "Judge chains and answers")
tab, panel = open_tab("label", preserved=("queue",))
with panel:
    if tab == "desk":
        from cotlab.ui.label.queue import render_desk

        render_desk()
    else:
        from cotlab.ui.label import agreement, export

        chosen = agreement.select_agreement()
        if chosen is not None and tab == "agreement":
            agreement.render_agreement_figure(chosen[0])
            agreement.render_raters(chosen[0])
            render_more("labels as files", partial(export.render_export, chosen[1]))
        elif chosen is not None:
            agreement.render_disagreements(*chosen)
