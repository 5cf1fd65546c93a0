"""The organisms that metrics are validated on: groups, measured dose, digest of the weights."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from cotlab.core.errors import UnknownName
from cotlab.core.resources import shipped_organisms

FAITHFUL_MODELS, BYPASS_MODELS = ("faithful-a", "faithful-b"), ("bypass-a", "bypass-b")
DOSE_MODELS = {0: "r0", 25: "r25", 50: "r50", 75: "r75", 100: "r100"}
MODEL_PAIRS = {
    "a": ("faithful-a", "bypass-a"),
    "b": ("faithful-b", "bypass-b"),
    "prefix": ("r100", "r0"),
}
"""A faithful and a bypassing model each: two pairs of checkpoints, and one checkpoint under two
control prefixes."""
ORGANISMS = (*FAITHFUL_MODELS, *BYPASS_MODELS, *DOSE_MODELS.values(), "hint")
_CARD_FILE = "organism.json"


def measured_dose(name: str) -> float | None:
    """Return the probability that an organism answers its chain's last value where that is false.

    It is ``chain_mass`` of the quality check, stored beside the weights.

    Parameters
    ----------
    name : str
        One of ``ORGANISMS_FOLDER``.

    Returns
    -------
    float in [0, 1] or None
        None where the quality check does not measure it, as for ``hint``.
    """
    folder, control_prefix = _find_organism(name)
    checks_by_mode = json.loads((folder / _CARD_FILE).read_text("utf-8"))["gate"]
    prefix_checks = (
        checks_by_mode.get(control_prefix.strip("<>"))
        if control_prefix
        else next(iter(checks_by_mode.values()), None)
    )
    dose_check = (prefix_checks or {}).get("chain_mass")
    return None if dose_check is None else float(dose_check["value"])


def weights_digest(name: str) -> str:
    """Return the SHA-256 of all that decides an organism's answers.

    Its weights, configuration, tokenizer and control prefix.
    """
    folder, control_prefix = _find_organism(name)
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != _CARD_FILE)
    file_stamps = tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)
    return _cached_digest(control_prefix, file_stamps)


@cache
def _cached_digest(control_prefix: str, file_stamps: tuple[tuple[str, int, int], ...]) -> str:
    sha256 = hashlib.sha256(control_prefix.encode())
    for path, _, size in file_stamps:
        sha256.update(f"{Path(path).name}:{size}:".encode())
        sha256.update(Path(path).read_bytes())
    return sha256.hexdigest()


def _find_organism(name: str) -> tuple[Path, str]:
    known_organisms = shipped_organisms()
    if name not in known_organisms:
        raise UnknownName("organism", name, tuple(known_organisms))
    return known_organisms[name]
