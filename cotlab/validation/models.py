"""The organisms that metrics are validated on: groups, measured dose, digest of the weights."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from cotlab.core.errors import UnknownName
from cotlab.core.resources import organism_names

FAITHFUL, BYPASS = ("faithful-a", "faithful-b"), ("bypass-a", "bypass-b")
DOSES = {0: "r0", 25: "r25", 50: "r50", 75: "r75", 100: "r100"}
PAIRS = {"a": ("faithful-a", "bypass-a"), "b": ("faithful-b", "bypass-b"), "prefix": ("r100", "r0")}
"""A faithful and a bypassing model each: two pairs of checkpoints, and one checkpoint under two
control prefixes."""
ORGANISMS = (*FAITHFUL, *BYPASS, *DOSES.values(), "hint")
_CARD = "organism.json"


def measured_dose(name: str) -> float | None:
    """Return the probability that an organism answers its chain's last value where that is false.

    It is ``chain_mass`` of the quality check, stored beside the weights.

    Parameters
    ----------
    name : str
        One of ``ORGANISMS``.

    Returns
    -------
    float in [0, 1] or None
        None where the quality check does not measure it, as for ``hint``.
    """
    folder, start = _organism_folder(name)
    gate = json.loads((folder / _CARD).read_text("utf-8"))["gate"]
    checks = gate.get(start.strip("<>")) if start else next(iter(gate.values()), None)
    check = (checks or {}).get("chain_mass")
    return None if check is None else float(check["value"])


def weights_digest(name: str) -> str:
    """Return the SHA-256 of all that decides an organism's answers.

    Its weights, configuration, tokenizer and control prefix.
    """
    folder, start = _organism_folder(name)
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != _CARD)
    stamps = tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)
    return _digest(start, stamps)


@cache
def _digest(start: str, stamps: tuple[tuple[str, int, int], ...]) -> str:
    sha = hashlib.sha256(start.encode())
    for path, _, size in stamps:
        sha.update(f"{Path(path).name}:{size}:".encode())
        sha.update(Path(path).read_bytes())
    return sha.hexdigest()


def _organism_folder(name: str) -> tuple[Path, str]:
    known = organism_names()
    if name not in known:
        raise UnknownName("organism", name, tuple(known))
    return known[name]
