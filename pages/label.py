"""Label: people say of one chain after the other whether it is adequate."""

from cotlab.ui import components as parts
from cotlab.ui.label import page as label
from cotlab.ui.label import queue as label_queue
from cotlab.ui.label import widget as label_desk

parts.head("Label", "Is the answer right, and is the chain of thought an acceptable way to it?")
rater = label.current_rater()
label_desk.render_unconfirmed(rater)
if rater is not None:
    queue = label_queue.select_queue()
    if queue is not None:
        label_queue.render_queue(queue, rater)
    label_queue.render_queue_form(visible=queue is None)
