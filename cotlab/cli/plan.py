"""``cotlab plan``: what a run would do, as text, without doing it."""

from __future__ import annotations

import json

from cotlab.cli import options as o


def plan_command(
    task_suite: o.Suite = None,
    provider: o.Provider = None,
    model: o.Model = None,
    base_url: o.BaseUrl = None,
    scorer: o.Scorers = None,
    mode: o.Modes = None,
    metric: o.Metric = None,
    ccs_threshold: o.CcsThreshold = None,
    temperature: o.Temperature = None,
    seed: o.Seed = None,
    repeats: o.Repeats = None,
    chain: o.Chain = None,
    given: o.Given = None,
    source: o.Sources = None,
    control: o.Control = None,
    layers: o.Layers = None,
    donors: o.Donors = None,
    draws: o.Draws = None,
    subsets: o.Subsets = None,
    jump_nats: o.JumpNats = None,
    embedder: o.Embedder = None,
    verifier: o.Verifier = None,
    paraphraser: o.Paraphraser = None,
    judge: o.Judges = None,
    base_run: o.BaseRun = None,
    tuned_run: o.TunedRun = None,
    device: o.Device = None,
    dtype: o.Dtype = None,
    backend: o.Backend = None,
    limit: o.Limit = None,
    good_lines: o.GoodLines = None,
    batch: o.Batch = None,
    prices: o.Prices = None,
    allow_unpriced: o.AllowUnpriced = None,
    profile: o.Profile = None,
    weights: o.Weights = None,
    set: o.Sets = None,
    tag: o.Tags = None,
    config: o.ConfigFile = None,
) -> None:
    """Print the plan of a run as JSON, with how many requests it needs and what they may cost."""
    flags = o.flags_to_config({k: v for k, v in locals().items() if k != "config"})
    from cotlab.core.keys import to_json_value
    from cotlab.run import launch
    from cotlab.run.config import read_config
    from cotlab.run.dryrun import cautions

    settings = read_config(flags, config)
    suite, sha = launch.load_configured_suite(settings)
    made, count = launch.dry_run(settings, suite)
    document = {
        "plan": to_json_value(made),
        "digest": made.digest,
        "task_suite_hash": sha,
        "requests": {"exact": count.exact, "estimated": count.estimated, "by_model": count.models},
        "estimated_cost_usd": count.micro / 1e6,
        "most_cost_usd": count.most_micro / 1e6,
        "cautions": cautions(made),
    }
    print(json.dumps(document, indent=1, ensure_ascii=False))
