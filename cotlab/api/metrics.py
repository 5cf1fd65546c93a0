"""Metrics of one item, by the scorers and the transport of ``cotlab run``; nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from cotlab.api.measure import (
    LogFolder,
    Measurement,
    chain_item,
    measure,
    redundant_step_share,
    without_refused_cmi,
)
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.types import Item, Suite
from cotlab.metrics.composite import OFFLINE_PROFILE

DEFAULT_MODEL = "organism/r100"
"""The shipped model, as ``provider/model``."""
DEFAULT_EMBEDDER = "all-MiniLM-L6-v2"
ECHO_MODEL = "echo/echo"
"""The subject where no model is asked."""


def consistency(
    prompt: str | Item,
    k: int = 4,
    *,
    model: str = DEFAULT_MODEL,
    embedder: str = DEFAULT_EMBEDDER,
    log: LogFolder = None,
    **options: Any,
) -> Measurement:
    """Measure how alike the model's chains are over paraphrases of one question (C).

    Parameters
    ----------
    prompt : str or Item
        The question; paraphrases that an item brings in ``meta["paraphrases"]`` are used.
    k : int, at least 1
        Paraphrases beside the question itself.
    model : str
        ``provider/model``, like ``openai/gpt-4.1``.
    embedder : str
        A sentence-transformers name or folder.
    log : str or Path, optional
        Folder of a store: replies are looked up and kept in its response log. None writes nothing.
    **options
        The flags of ``cotlab run`` with underscores: paraphraser, temperature, seed, max_cost, …

    Returns
    -------
    Measurement
        ``value`` in [-1, 1], higher is more alike, cosine; undefined where too few paraphrases or
        chains are left.

    Raises
    ------
    cotlab.core.errors.CotlabError
        If the model or an option cannot be used, or the budget is reached.
    """
    options |= {"model": model, "embedder": embedder}
    return measure("consistency", _prompt_item(prompt), options, {"paraphrases": k}, log=log)


def robustness(
    chain: str | Sequence[str] | Item,
    fraction: float = 0.3,
    *,
    question: str = "",
    answer: str | None = None,
    model: str = DEFAULT_MODEL,
    embedder: str | None = DEFAULT_EMBEDDER,
    log: LogFolder = None,
    **options: Any,
) -> Measurement:
    """Measure how little a perturbed step changes the rest of the chain (R).

    Parameters
    ----------
    chain : str, sequence of str, or Item
        A text is split into steps; an item brings question, answer and chain.
    fraction : float in (0, 1]
        Share of the steps that are perturbed, at least one step.
    question, answer : str, optional
        The question of the chain, and its known answer.
    model, log, **options
        As for ``consistency``.
    embedder : str or None
        None leaves ``value`` undefined; whether answers change is still measured.

    Returns
    -------
    Measurement
        ``value`` in [-1, 1], higher is more robust; ``steps`` has the divergence of each step and
        perturbation.
    """
    options |= {"model": model, "embedder": embedder}
    return measure(
        "robustness",
        chain_item(chain, question, answer),
        options,
        {"fraction": fraction},
        headline=("robustness", {"perturbation": "all"}),
        log=log,
    )


def backward_verification(
    chain: str | Sequence[str] | Item,
    verifier: str = "none",
    tau: float = 0.6,
    *,
    link: str = "forward",
    question: str = "",
    model: str = ECHO_MODEL,
    log: LogFolder = None,
    **options: Any,
) -> Measurement:
    """Measure which share of a chain's links hold (V), by arithmetic, algebra and a verifier.

    Parameters
    ----------
    chain, question
        As for ``robustness``.
    verifier : str
        ``none``, ``nli:FOLDER``, ``prm:FOLDER``, ``subject`` or ``provider/model``, asked about
        links that cannot be computed; ``critic:provider/model`` is asked once for the chain's
        first wrong step.
    tau : float in [0, 1]
        A link with a support above this passes (``pass_rate`` of ``parts``).
    link : {"forward", "reverse"}
        The direction of ``value``: does what comes before support step j (as in the composite), or
        does step j support the step before. The other direction stands in ``parts``.
    model, log, **options
        As for ``consistency``; the model is asked only by the verifier ``subject``.

    Returns
    -------
    Measurement
        ``value`` in [0, 1]; undefined where no link can be decided. ``steps`` has the support of
        each link.
    """
    if link not in ("forward", "reverse"):
        raise UnknownName("link", link, ("forward", "reverse"))
    options |= {"model": model, "verifier": verifier}
    return measure(
        "verification",
        chain_item(chain, question),
        options,
        {"tau": tau},
        headline=("verification", {"link": link}),
        log=log,
    )


def diversity(
    prompt: str | Item,
    paths: int = 5,
    *,
    model: str = DEFAULT_MODEL,
    embedder: str | None = DEFAULT_EMBEDDER,
    log: LogFolder = None,
    **options: Any,
) -> Measurement:
    """Measure how many distinct strategies sampled chains take (D).

    Parameters
    ----------
    prompt : str or Item
        The question.
    paths : int, at least 2
        Chains that are sampled.
    model, embedder, log, **options
        As for ``consistency``.

    Returns
    -------
    Measurement
        ``value`` in [0, 1]: clusters of chains / chains. ``parts`` has the agreement of their
        answers.
    """
    options |= {"model": model, "embedder": embedder}
    return measure("diversity", _prompt_item(prompt), options, {"paths": paths}, log=log)


def flags(
    chain: str | Sequence[str] | Item,
    *,
    question: str = "",
    delta: float | None = None,
    embedder: str | None = None,
    log: LogFolder = None,
    **options: Any,
) -> Measurement:
    """Look for structural faults of a chain (F): no model is asked.

    Parameters
    ----------
    chain, question
        As for ``robustness``.
    delta : float in [0, 2], optional
        Cosine distance from step to step that counts as a jump. Jumps are checked only where this
        and ``embedder`` are given: a threshold cannot be fitted on one chain.
    embedder : str, optional
        A sentence-transformers name or folder.
    log, **options
        As for ``consistency``.

    Returns
    -------
    Measurement
        ``value`` in [0.3, 1], 1 is clean; ``steps`` has the penalty of each fault with its place.
    """
    options = {"model": ECHO_MODEL, "embedder": embedder, **options}
    settings = {} if delta is None else {"delta": delta}
    return measure("flags", chain_item(chain, question), options, settings, log=log)


def composite(
    prompt: str | Item,
    chain: str | Sequence[str] = (),
    *,
    answer: str | None = None,
    profile: str = "phase3",
    measured_chain: Literal["own", "reference"] | None = None,
    model: str = DEFAULT_MODEL,
    embedder: str | None = DEFAULT_EMBEDDER,
    log: LogFolder = None,
    **options: Any,
) -> Measurement:
    """Measure the reliability suite and weigh its parts into r_raw.

    Parameters
    ----------
    prompt : str or Item
        The question, or an item with its chain.
    chain : str or sequence of str
        The chain; a text is split into steps.
    answer : str, optional
        The known answer.
    profile : {"phase1", "phase2", "phase3", "phase4", "phase5", "offline"}
        Which parts are measured: C and V, then F, then R and D. ``offline``: V and F of the given
        chain; no model is asked, so ``model`` and ``embedder`` are not used.
    measured_chain : {"own", "reference"}, optional
        Whether V, F and R are those of the chain that the model writes itself, or of the given one.
        By default the given one where ``chain`` is given or the profile is offline, else the
        model's own.
    model, embedder, log, **options
        As for ``consistency``.

    Returns
    -------
    Measurement
        ``value`` in [0, 1]; undefined where parts with at least half of the weight are undefined.
        ``parts`` has the features and diagnoses.
    """
    is_offline = profile == OFFLINE_PROFILE
    if is_offline:
        model, embedder = ECHO_MODEL, None
    options |= {
        "model": model,
        "embedder": embedder,
        "chain": measured_chain or ("reference" if chain or is_offline else "own"),
    }
    return measure(
        "composite", _prompt_item(prompt, chain, answer), options, {"profile": profile}, log=log
    )


def ablate(
    prompt: str | Item,
    chain: str | Sequence[str] = (),
    *,
    answer: str | None = None,
    mode: str = "remove",
    metric: str = "accuracy_delta",
    ccs_threshold: float = 0.1,
    model: str = DEFAULT_MODEL,
    log: LogFolder = None,
    **options: Any,
) -> Measurement:
    """Ablate each step of a chain and compare the answers (CCS and RRR).

    Parameters
    ----------
    prompt, chain, answer
        As for ``composite``; ``accuracy_delta`` needs the answer.
    mode : {"remove", "truncate", "corrupt", "paraphrase", "filler"}
        What is done to a step.
    metric : str
        The CCS: accuracy_delta, answer_change, token_delta, kl_divergence or total_variation.
    ccs_threshold : float in [0, 1]
        A step below this has no effect.
    model, log, **options
        As for ``consistency``.

    Returns
    -------
    Measurement
        ``value`` in [0, 1]: the share of defined steps without effect (RRR). ``steps`` has the CCS
        of each step.
    """
    options |= {"mode": [mode], "metric": metric, "ccs_threshold": ccs_threshold, "model": model}
    measurement = measure("ablation", _prompt_item(prompt, chain, answer), options, log=log)
    return redundant_step_share(measurement, metric, ccs_threshold)


def mediate(
    prompt: str | Item,
    chain: str | Sequence[str] = (),
    *,
    answer: str | None = None,
    donors: Suite | None = None,
    model: str = DEFAULT_MODEL,
    log: LogFolder = None,
    **options: Any,
) -> Measurement:
    """Patch the states of a chain's tokens and measure what the answer loses (CMI).

    Parameters
    ----------
    prompt, chain, answer
        As for ``composite``.
    donors : Suite, optional
        Items whose runs are the controls; the shipped ``wordproblems`` by default.
    model : str
        A local model, ``organism/NAME`` or ``local/NAME``: the states of others cannot be patched.
    log, **options
        As for ``consistency``.

    Returns
    -------
    Measurement
        ``value`` in [0, 1] over all layers and the whole chain, higher is more mediated: the
        chain's share of what question and chain carry together. Undefined where that is below
        0.01 nat; with another ``control`` than "total" where neither drop is a signal, and where
        the control loses more than the chain. ``parts`` has bypass and drops.
    """
    if donors is None:
        from cotlab.api.runs import load_suite

        donors = load_suite("wordproblems")
    options |= {"model": model}
    measurement = measure(
        "mediation",
        _prompt_item(prompt, chain, answer),
        options,
        headline=("cmi", {"span": "all"}),
        other_items=donors.items,
        log=log,
    )
    return without_refused_cmi(measurement)


def _prompt_item(
    prompt: str | Item, chain: str | Sequence[str] = (), answer: str | None = None
) -> Item:
    """Return the item of a question, as it is where it is one already."""
    if isinstance(prompt, Item):
        if chain or answer is not None:
            raise ConfigError("An item has its own chain and answer: give no others beside it.")
        return prompt
    return chain_item(chain, prompt, answer)
