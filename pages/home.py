"""Home: the newest verdict, or the two of the demonstration side by side, and the latest runs."""

import streamlit as st

from cotlab.ui import cached, home, verdict

st.title("Can this model's chain of thought be trusted?")
all_runs = cached.stored_runs()
runs = [run for run in all_runs if not run.is_archived]
demo, newest = home.find_demo_runs(runs), home.find_newest_run(runs)
if not all_runs:
    home.render_first_use()
elif demo:
    home.render_demo(demo)
elif newest is not None:
    home.render_newest_run(newest)
if all_runs:
    home.render_running_runs(runs)
    home.render_recent_runs(runs, len(all_runs) - len(runs), None if demo else newest)
    home.render_pending_reviews(home.load_pending_reviews())
    verdict.render_explanation()
