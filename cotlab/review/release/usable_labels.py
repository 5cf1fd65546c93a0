"""Refuse a fit on labels that do not suffice, naming those that are there and cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cotlab.reliability.maps import NotCalibrated, missing_labels_reason


def require_labels(
    n_labelled: int,
    targets: np.ndarray[Any, Any],
    left_out: Mapping[str, int],
    requirement: str,
    advice: str = "",
) -> None:
    """Raise where labels do not suffice for a fit.

    Parameters
    ----------
    n_labelled : int
        Labelled items with a target.
    targets : array (n,) of bool
        Those of the usable ones.
    left_out : mapping of reason to count
    requirement : str
        What a label needs beside a target: "an r_raw".
    advice : str
        What to do about unusable labels.

    Raises
    ------
    NotCalibrated
        With the number of labels, of usable ones, and the reasons of the others.
    """
    refusal_reason = missing_labels_reason("any", targets)
    if not refusal_reason:
        return
    if n_labelled == len(targets):
        raise NotCalibrated(
            f"No calibrator can be fitted: {refusal_reason}. Label more items, or cotlab labels"
            " import FILE."
        )
    n_usable_text = f"{len(targets)} of them have" if len(targets) else "none of them has"
    reasons_text = "; ".join(f"{reason}: {n}" for reason, n in left_out.items())
    raise NotCalibrated(
        f"No calibrator can be fitted: {n_labelled} items are labelled, and {n_usable_text}"
        f" {requirement} ({reasons_text})."
        + (f" Of these, {refusal_reason}." if len(targets) else "")
        + (f" {advice}" if advice else "")
    )
