"""Check before a process reward model ships that it judges fresh chains as their generator does."""

from __future__ import annotations

import random
from pathlib import Path

from cotlab.core.errors import CotlabError
from cotlab.core.requests import Response, StepRewards
from cotlab.core.types import ModelRef
from cotlab.organisms.checked_replies import QualityCheck
from cotlab.organisms.mistakes import MISTAKE_KINDS, JudgedChain, make_judged_chain
from cotlab.organisms.quality_check import N_ITEMS
from cotlab.providers.local.process_reward import open_process_reward
from cotlab.stats.calibration import auroc

MIN_AUROC = 0.99
MIN_LOCATED = 0.9
MAX_FALSE_ALARMS = 0.05


def check_process_reward(
    folder: Path, *, n_items: int = N_ITEMS, seed: int = 12345
) -> dict[str, list[QualityCheck]]:
    """Measure a trained folder on fresh chains, half of them with a mistake; nothing is written.

    The steps after a first mistake count for no figure: whether one that goes on from a false value
    is wrong too is a matter of definition.

    Parameters
    ----------
    folder : Path
        As ``train_process_reward`` writes it.
    n_items : int
        Chains.
    seed : int

    Returns
    -------
    dict of str to list of QualityCheck
        Under ``process_reward``: AUROC of right steps against first wrong ones, of chains by their
        least probability, and for each kind of mistake of right steps against its first wrong ones;
        the share of wrong chains whose first mistake is located; and that of right chains in which
        one is located.

    Raises
    ------
    CotlabError
        If a request to the model fails.
    """
    rng = random.Random(f"gate:{seed}:process_reward")
    chains = [make_judged_chain(rng, clean_share=0.5) for _ in range(n_items)]
    rewards = _chain_rewards(folder, chains)
    right = [
        reward
        for chain, values in zip(chains, rewards, strict=True)
        for reward in values[: chain.first_wrong]
    ]
    wrong_by_kind: dict[str, list[float]] = {kind: [] for kind in MISTAKE_KINDS}
    for chain, values in zip(chains, rewards, strict=True):
        if chain.first_wrong is not None and chain.kind is not None:
            wrong_by_kind[chain.kind].append(values[chain.first_wrong])
    located = [
        next((i for i, reward in enumerate(values) if reward < 0.5), None) for values in rewards
    ]
    hits = [
        place == chain.first_wrong
        for chain, place in zip(chains, located, strict=True)
        if chain.first_wrong is not None
    ]
    alarms = [
        place is not None
        for chain, place in zip(chains, located, strict=True)
        if chain.first_wrong is None
    ]
    wrong = [reward for values in wrong_by_kind.values() for reward in values]
    sound, unsound = (
        [
            min(values)
            for chain, values in zip(chains, rewards, strict=True)
            if (chain.first_wrong is None) is is_sound
        ]
        for is_sound in (True, False)
    )
    checks = [
        _auroc_check("step_auroc", right, wrong),
        _auroc_check("chain_auroc", sound, unsound),
        *(_auroc_check(f"step_auroc_{kind}", right, wrong_by_kind[kind]) for kind in MISTAKE_KINDS),
        QualityCheck("first_mistake_located", sum(hits) / len(hits), MIN_LOCATED, 1, len(hits)),
        QualityCheck("false_alarms", sum(alarms) / len(alarms), 0, MAX_FALSE_ALARMS, len(alarms)),
    ]
    return {"process_reward": checks}


def _chain_rewards(folder: Path, chains: list[JudgedChain]) -> list[tuple[float, ...]]:
    model = open_process_reward(ModelRef("prm", str(folder)))
    replies = model.send_batch(
        [StepRewards(model.ref, chain.problem.question, chain.steps) for chain in chains]
    )
    rewards = [reply.numbers or () for reply in replies if isinstance(reply, Response)]
    errors = [reply for reply in replies if not isinstance(reply, Response)]
    if errors:
        raise CotlabError(f"the quality check got no reply: {errors[0]}")
    return rewards


def _auroc_check(figure: str, right: list[float], wrong: list[float]) -> QualityCheck:
    value = auroc([*right, *wrong], [1] * len(right) + [0] * len(wrong))
    if value is None:
        raise CotlabError(f"the quality check has no case of both kinds for {figure}: more chains")
    return QualityCheck(figure, value, MIN_AUROC, 1, len(right) + len(wrong))
