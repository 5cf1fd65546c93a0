"""Steps: which steps of a chain the answer depends on, over the suite and in one chain."""

from functools import partial

from cotlab.ui import components, steps
from cotlab.ui.address import show_tabs
from cotlab.ui.category_split import render_category_split
from cotlab.ui.more import render_more
from cotlab.ui.pickers import pick_run
from cotlab.ui.verdict_number import render_verdict_line, render_verdict_number

components.render_heading("Steps", "Which steps does the answer depend on?")
row = pick_run("ablation")
if row is not None:
    render_verdict_line(row.id)
    render_verdict_number(row.id)
    metric = steps.select_ccs_metric(row)
    suite_tab, chain_tab = show_tabs(["Over the suite", steps.CHAIN_TAB_LABEL])
    if suite_tab.open:
        with suite_tab:
            render_category_split(row)
            steps.render_ccs_by_position(row, metric)
            render_more(
                "by kind of change, and steps without effect",
                partial(steps.render_mode_comparison, row),
                partial(steps.render_redundancy, row, metric),
            )
    if chain_tab.open:
        with chain_tab:
            item = steps.select_item(row)
            if item is not None:
                steps.render_step_chain(row, item, metric, steps.select_mode(row))
    steps.render_step_notes(row, metric)
