"""run.log: one JSON object a line for each thing a run did, so that a night's run can be read in the morning.

Requests appear by their key (a SHA-256) only; words of a server only where prompts are not
redacted.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

log = logging.getLogger(__name__)
FILE = "run.log"


class Journal:
    """Appends events to ``folder/run.log``; without a folder it writes nothing."""

    def __init__(self, folder: Path | None = None, *, redact: bool = False) -> None:
        self.redact = redact
        self._file: TextIO | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / FILE).open("a", encoding="utf-8", buffering=1)

    def note(self, event: str, *, error_text: str = "", **facts: Any) -> None:
        """One line: the time, the event, its facts, and the ``words`` of an error unless they are redacted."""
        if self._file is None:
            return
        record = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event}
        record |= {name: value for name, value in facts.items() if value is not None}
        if error_text and not self.redact:
            record["words"] = error_text
        try:
            self._file.write(json.dumps(record, ensure_ascii=True) + "\n")
        except OSError as error:  # a full disk: the run goes on, for its replies are kept elsewhere
            log.warning("run.log cannot be written any more: %s", error)
            self._file = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
