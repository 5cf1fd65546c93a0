"""New run: suite, model, scorers and limits; a cost estimate; a pilot or the whole run."""

from cotlab.ui import components, server_check
from cotlab.ui.new_run import estimate, measure_note, measures, questions
from cotlab.ui.new_run import form as new_run

components.render_heading("New run", "What will be measured on which model, and what will it cost?")
questions.render_questions()
cloned_run_id = measures.requested_run()
measure_note.render_measure_note(cloned_run_id)
suite_choice, config = new_run.render_run_form(cloned_run_id)
if suite_choice is not None:
    server_check.render_check_button(config)
    n_items = estimate.render_estimate(
        suite_choice, config, reuses_replies=measures.has_same_model(cloned_run_id, config)
    )
    new_run.render_start_buttons(suite_choice, config, n_items)
