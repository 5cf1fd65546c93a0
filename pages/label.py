"""Label: people say of one chain after the other whether it is adequate."""

from cotlab.ui import components as parts
from cotlab.ui.label import page as label
from cotlab.ui.label import queue as label_queue
from cotlab.ui.label import widget as label_desk

parts.head("Label", "Is the answer right, and is the chain of thought an acceptable way to it?")
rater = label.rater()
label_desk.waiting(rater)
if rater is not None:
    queue = label_queue.pick()
    if queue is not None:
        label_queue.show(queue, rater)
    label_queue.make(shown=queue is None)
