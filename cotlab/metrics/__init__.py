"""One metric family a file: cards, and a generator that measures one item."""
