"""Label: raters judge one chain after the other."""

from cotlab.ui import components
from cotlab.ui.label import queue as label_queue
from cotlab.ui.label import widget as label_widget

components.head("Label", "Is the answer right, and is the chain of thought acceptable?")
rater = label_queue.current_rater()
label_widget.render_unconfirmed(rater)
if rater is not None:
    queue = label_queue.select_queue()
    if queue is not None:
        label_queue.render_queue(queue, rater)
    label_queue.render_queue_form(visible=queue is None)
