"""Label: raters judge one chain after the other."""

from cotlab.ui import components
from cotlab.ui.label import new_queue, rater, widget
from cotlab.ui.label import queue as label_queue

components.render_heading("Label", "Is the answer right, and is the chain of thought acceptable?")
name = rater.current_rater()
widget.render_unconfirmed_notice(name)
if name is not None:
    rater.render_rater(name)
    queue_id = label_queue.select_queue(name)
    if queue_id is not None:
        label_queue.render_queue(queue_id, name)
    new_queue.render_queue_form(is_open=queue_id is None)
