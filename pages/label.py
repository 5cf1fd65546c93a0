"""Label: people say of one chain after the other whether it is adequate."""

from cotlab.ui import label, label_queue, parts

parts.head("Label", "Is the answer right, and is the chain of thought an acceptable way to it?")
rater = label.rater()
queue = label_queue.pick() if rater is not None else None
if rater is not None and queue is not None:
    now = label.read_now(queue, rater)
    label_queue.progress_line(now.progress)
    if now.target is None:
        label_queue.nothing_left(queue, rater, now)
    label.work(now)
    label.last_ten(now)
if rater is not None:
    label_queue.make(shown=queue is None)
