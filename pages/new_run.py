"""New run: question, suite, model and number of items; what it would cost; the start."""

from cotlab.ui import components
from cotlab.ui.new_run import measures, questions
from cotlab.ui.new_run.form import render_new_run

components.render_heading("New run", "Choose a suite, a model and what to measure")
questions.render_questions()
run_id = measures.requested_run()
measures.render_measure_note(run_id)
render_new_run(run_id)
