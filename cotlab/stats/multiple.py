"""Several tests at once: p-values that keep the share of false findings in check, beside the raw ones."""

from __future__ import annotations

from collections.abc import Sequence


def benjamini_hochberg(ps: Sequence[float | None]) -> list[float | None]:
    """P-values adjusted by Benjamini and Hochberg: rejecting those up to q keeps the false discovery rate at q.

    Parameters
    ----------
    ps : sequence of float in [0, 1], or None where a test is undefined
        An undefined test stays undefined and does not count among those made.

    Returns
    -------
    list of float in [0, 1] or None, in the given order
        Each at least its raw p-value.

    Raises
    ------
    ValueError
        If a p-value lies outside [0, 1].

    References
    ----------
    Benjamini and Hochberg (1995), JRSS B 57:289; statsmodels ``multipletests``. R: p.adjust(ps,
    "BH").
    """
    from statsmodels.stats.multitest import multipletests

    known = [p for p in ps if p is not None]
    if not all(0 <= p <= 1 for p in known):
        raise ValueError(
            f"a p-value lies in [0, 1] or is None, got {[p for p in known if not 0 <= p <= 1]}"
        )
    if not known:
        return [None] * len(ps)
    adjusted = iter(multipletests(known, method="fdr_bh")[1].tolist())
    return [None if p is None else max(p, next(adjusted)) for p in ps]
