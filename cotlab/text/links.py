"""Old address of `cotlab.core.text_safety.unlinked`."""

from cotlab.core.text_safety import JOINER, unlinked

__all__ = ["JOINER", "unlinked"]
