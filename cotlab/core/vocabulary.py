"""Name what several packages share: modes, CCS metrics, mediation sources, kinds of providers."""

from __future__ import annotations

MODES = ("remove", "truncate", "corrupt", "paraphrase", "filler")
"""Ways to ablate a step, in the order in which figures show them."""
CCS_METRICS = ("accuracy_delta", "answer_change", "token_delta", "kl_divergence", "total_variation")
"""Metrics of the causal contribution of a step, in the order in which figures show them."""
DISTRIBUTION_METRICS = ("kl_divergence", "kl_nats", "total_variation", "topk_rest")
"""Metrics that need the log-probabilities of the model."""
SOURCES = ("filler", "interchange", "right", "mean", "literal")
"""Sources of the states that mediation patches in, in the order in which figures show them."""
CHAINS = ("reference", "own")
"""Chains that a scorer may measure: that of the suite, or the one that the model writes."""
IN_PROCESS = ("organism", "local")
"""Providers of language models that run in this process, whose activations can be read."""
UNLIMITED = ("echo", "scripted")
"""Providers that imitate a model in this process; no rate limit applies to them."""
FREE_PROVIDERS = (*IN_PROCESS, *UNLIMITED, "symbolic", "nli", "embedder")
"""Providers of this package that cost nothing; one of another package declares ``free = True``."""
