"""Run: one run, its verdict and its evidence, in tabs of which only the open one is computed."""

from cotlab.ui.address import open_tab
from cotlab.ui.runs.header import render_header, select_run
from cotlab.ui.runs.measured import is_measured

run = select_run()
if run is not None:
    render_header(run)
    tab, panel = open_tab("run", preserved=("run", "item"))
    with panel:
        if is_measured(run, tab):
            match tab:
                case "verdict":
                    from cotlab.ui.runs.overview import render_verdict_tab as render
                case "steps":
                    from cotlab.ui.steps import render_steps_tab as render
                case "robustness":
                    from cotlab.ui.robustness import render_robustness_tab as render
                case "mediation":
                    from cotlab.ui.mediation import render_mediation_tab as render
                case "reliability":
                    from cotlab.ui.reliability import render_reliability_tab as render
                case "unfaithfulness":
                    from cotlab.ui.unfaithfulness import render_unfaithfulness_tab as render
                case _:
                    from cotlab.ui.item.item import render_items_tab as render
            render(run)
