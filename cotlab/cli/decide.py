"""``cotlab decide``, ``cotlab policy``: decide what is released without a person."""

from __future__ import annotations

import json as _json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from cotlab.cli.commands import Commands
from cotlab.cli.options import JsonOption, acting_user, explain_write_errors, print_json
from cotlab.core.errors import ConfigError
from cotlab.core.text_safety import printable_line

if TYPE_CHECKING:
    from cotlab.core.labels import Decision
    from cotlab.reliability.policy import Policy, Thresholds

EXIT_REVIEWED, EXIT_ESCALATED = 1, 6
"""Exit codes where a person is needed: for reviews only, and for escalated or unscored items."""
policy_app = Commands(
    no_args_is_help=True, help="Show and set the thresholds that decisions are made by."
)

RunArgument = Annotated[str, typer.Argument(help="The run; `cotlab runs` lists them.")]
AuthorOption = Annotated[
    Optional[str],
    typer.Option(help="Who decides (default: who is logged in here); kept in the audit."),
]
LowThresholdOption = Annotated[
    Optional[float], typer.Option(help="Escalate below this r_cal, from 0 to 1.")
]
HighThresholdOption = Annotated[
    Optional[float], typer.Option(help="Release from this r_cal on, from 0 to 1.")
]
CapacityOption = Annotated[Optional[int], typer.Option(help="Reviews that people can do in a day.")]


def decide_command(
    run: RunArgument,
    low: LowThresholdOption = None,
    high: HighThresholdOption = None,
    capacity: CapacityOption = None,
    fail_on: Annotated[
        Literal["review", "escalate"],
        typer.Option(
            help=(
                "Exit above 0 for any item that a person must see (review), or for escalated ones"
                " only."
            )
        ),
    ] = "review",
    by: AuthorOption = None,
    with_run: Annotated[
        Optional[list[str]],
        typer.Option(
            "--with",
            metavar="RUN",
            help=(
                "A run on the same chains whose measurements fill what the run did not measure;"
                " repeatable."
            ),
        ),
    ] = None,
    json: JsonOption = False,
    out: Annotated[
        Optional[Path], typer.Option(help="Write the decisions to this .csv, .json or .jsonl file.")
    ] = None,
) -> None:
    """Decide which items of a run are released, reviewed or escalated, by r_cal and the policy.

    --low and --high hold for this time only. Exit code 0: all released. 1: some are reviewed, none
    escalated. 6: some are
    escalated, or have no scores yet. 2: usage.
    """
    from dataclasses import replace

    from cotlab.reliability.policy import DEFAULT_DOMAIN, Policy
    from cotlab.review.release.decide import count_unscored_items, decide_run, load_policy
    from cotlab.store import read
    from cotlab.store.database import Store

    store = Store()
    if out is not None and out.suffix.lower() not in (".csv", ".json", ".jsonl"):
        raise ConfigError(f"--out {out}: the file must end in .csv, .json or .jsonl")
    policy, policy_override = load_policy(store), None
    if low is not None or high is not None:
        thresholds = _new_thresholds(policy, DEFAULT_DOMAIN, low, high)
        policy = policy_override = Policy(
            {DEFAULT_DOMAIN: thresholds}, policy.capacity, policy.minutes
        )
    if capacity is not None:
        policy = replace(policy, capacity=capacity)
    for other_run in with_run or ():
        read.get_run(store, other_run)
    decisions = decide_run(
        store,
        run,
        author=acting_user(by),
        policy=policy_override,
        completed_by=with_run or (),
    )
    n_unscored = count_unscored_items(store, run, len(decisions))
    summary = _decisions_summary(run, decisions, policy, n_unscored)
    if out is not None:
        _write_decisions(out, decisions)
    if json:
        print_json(summary | {"decisions": [_decision_row(decision) for decision in decisions]})
    else:
        _print_decisions_summary(summary, out)
    raise typer.Exit(_exit_code(summary, fail_on))


@policy_app.command("show")
def show_policies(json: JsonOption = False) -> None:
    """Show the policy, those before it, and the rollout phase that the store has reached."""
    from cotlab.reliability.policy import Policy
    from cotlab.review.release.rollout import rollout_progress
    from cotlab.store.database import Store
    from cotlab.store.decisions import list_policies

    store = Store()
    rows = list_policies(store).to_dict("records")
    progress = rollout_progress(store)
    if json:
        records = [
            {
                **Policy.from_row(row).to_columns(),
                "version": int(row["version"]),
                "made_at": row["made_at"].isoformat(),
                "made_by": row["made_by"],
                "reason": row["reason"],
            }
            for row in rows
        ]
        phases = [phase._asdict() for phase in progress.phases]
        rollout_record = {"reached": progress.n_reached, "phases": phases}
        print_json({"policies": records, "rollout": rollout_record})
        return
    if not rows:
        print(
            "No policy yet: everything is escalated. Set one: cotlab policy set --low 0.5 --high"
            " 0.8 --reason WHY"
        )
    for row in rows[:10]:
        marker = "now" if row is rows[0] else "   "
        print(f"{marker} version {row['version']}: {_policy_text(Policy.from_row(row))}")
        made_by, reason = printable_line(row["made_by"]), printable_line(row["reason"])
        print(f"    {row['made_at']:%Y-%m-%d %H:%M} UTC by {made_by}: {reason}")
    print(f"Rollout: phase {progress.n_reached} of {len(progress.phases)} is reached.")
    if (phase := progress.next_phase) is not None:
        print(f"Phase {phase.number} ({phase.title}) needs {phase.needs}; so far: {phase.has}.")
        print(f"    {phase.command}")


@policy_app.command("set")
def set_thresholds(
    reason: Annotated[str, typer.Option(help="Why; kept in the audit.")],
    low: LowThresholdOption = None,
    high: HighThresholdOption = None,
    domain: Annotated[
        str, typer.Option(help="Only for items of this category (default: all without their own).")
    ] = "",
    force: Annotated[
        bool,
        typer.Option("--force", help="Also for a category that no suite in the store has yet."),
    ] = False,
    capacity: CapacityOption = None,
    minutes: Annotated[
        Optional[float], typer.Option(help="Minutes that one review takes (default 5).")
    ] = None,
    by: AuthorOption = None,
) -> None:
    """Let thresholds hold from now on; the policy before it stays in the store."""
    from dataclasses import replace

    from cotlab.review.release.decide import load_policy, resolve_domain, set_policy
    from cotlab.store.database import Store

    store = Store()
    policy, domain_key = load_policy(store), resolve_domain(store, domain, allow_unseen=force)
    if low is not None or high is not None:
        policy = policy.with_domain(domain_key, _new_thresholds(policy, domain_key, low, high))
    elif domain:
        raise ConfigError("--domain needs --low and --high")
    policy = replace(
        policy,
        capacity=policy.capacity if capacity is None else capacity,
        minutes=policy.minutes if minutes is None else minutes,
        how={"by": "hand"},
    )
    saved_policy = set_policy(store, policy, author=acting_user(by), reason=reason)
    print(
        f"Policy {saved_policy.version}: {_policy_text(saved_policy)}.\nDecide on a run with it:"
        " cotlab decide RUN"
    )


@policy_app.command("suggest")
def suggest_thresholds(
    run: Annotated[
        Optional[list[str]], typer.Argument(help="Runs with labels (default: all).")
    ] = None,
    target_precision: Annotated[
        Optional[float],
        typer.Option(help="Acceptable share that released answers must have, between 0 and 1."),
    ] = None,
    cost_error: Annotated[
        Optional[float], typer.Option(help="Cost of an unacceptable answer that goes out.")
    ] = None,
    cost_review: Annotated[float, typer.Option(help="Cost of a review.")] = 1.0,
    cost_escalation: Annotated[float, typer.Option(help="Cost of an escalation.")] = 3.0,
    missed: Annotated[
        float, typer.Option(help="Share of unacceptable answers that a review lets through.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 42,
) -> None:
    """Thresholds by target precision or by cost, from labelled answers; nothing is changed."""
    from cotlab.reliability.thresholds import Costs
    from cotlab.review.release.suggest import suggest_by_cost, suggest_by_precision
    from cotlab.store.database import Store

    if (target_precision is None) == (cost_error is None):
        raise ConfigError("give either --target-precision or --cost-error")
    store = Store()
    if cost_error is not None:
        costs = Costs(cost_error, cost_review, cost_escalation, missed)
        lines = suggest_by_cost(store, run, costs, seed=seed)
    elif target_precision is not None:
        lines = suggest_by_precision(store, run, target_precision)
    for line in lines:
        print(line.text)


def _new_thresholds(
    policy: Policy, domain: str, low: float | None, high: float | None
) -> Thresholds:
    """Return the thresholds of a domain, with those that are given in place of its stored ones."""
    from cotlab.reliability.policy import Thresholds

    current_thresholds = policy.domain_thresholds(domain)
    if current_thresholds is None and (low is None or high is None):
        raise ConfigError("the first thresholds need both --low and --high")
    stored_low, stored_high = (
        (current_thresholds.low, current_thresholds.high)
        if current_thresholds is not None
        else (0.0, 1.0)
    )
    return Thresholds(stored_low if low is None else low, stored_high if high is None else high)


def _decisions_summary(
    run: str, decisions: list[Decision], policy: Policy, n_unscored: int
) -> dict[str, Any]:
    import math

    from cotlab.core.labels import ACTIONS
    from cotlab.reliability.volumes import expected_errors
    from cotlab.review.release.decide import count_reasons

    n_by_action = {
        action: sum(decision.action == action for decision in decisions) for action in ACTIONS
    }
    released_scores = [decision.r_cal for decision in decisions if decision.action == "release"]
    error_interval = expected_errors([r_cal for r_cal in released_scores if r_cal is not None])
    fields = ("point", "lo", "hi", "method", "reason")
    return {
        "run": run,
        "n": len(decisions),
        "not_scored": n_unscored,
        "actions": n_by_action,
        "reasons": [
            {"action": decided_action, "reason": reason, "n": n}
            for decided_action, reason, n in count_reasons((d.action, d.reason) for d in decisions)
        ],
        "expected_errors": {field: getattr(error_interval, field) for field in fields},
        "review_hours": n_by_action["review"] * policy.minutes / 60,
        "capacity": policy.capacity,
        "review_days": (
            math.ceil(n_by_action["review"] / policy.capacity) if policy.capacity else None
        ),
        "calibrator": decisions[0].calibrator if decisions else None,
        "policy": decisions[0].policy if decisions else None,
        "thresholds": policy.to_columns()["thresholds"],
    }


def _print_decisions_summary(summary: dict[str, Any], output_path: Path | None) -> None:
    from cotlab.figures.style import interval_text

    n_by_action, error_interval = summary["actions"], summary["expected_errors"]
    print(
        f"Run {summary['run']}: {summary['n']} items. Released {n_by_action['release']}, review"
        f" {n_by_action['review']}, escalated {n_by_action['escalate']}."
    )
    if summary["not_scored"]:
        print(f"{summary['not_scored']} items have no scores yet: nothing is decided on them.")
    for row in summary["reasons"]:
        print(f"  {row['action']:>8}  {row['n']:>5}  {printable_line(row['reason'])}")
    calibrator_text = "none" if summary["calibrator"] is None else summary["calibrator"]
    policy_text = "thresholds of this time" if summary["thresholds"] else "no policy"
    if summary["policy"] is not None:
        policy_text = f"policy {summary['policy']}"
    print(
        f"Calibrator {calibrator_text}, {policy_text}: {_thresholds_text(summary['thresholds'])}."
    )
    errors_text = f"n/a, {error_interval['reason']}"
    if error_interval["point"] is not None:
        interval = interval_text(
            error_interval["point"], error_interval["lo"], error_interval["hi"]
        )
        errors_text = f"{interval} ({error_interval['method']})"
    print(f"Expected errors among the released: {errors_text}.")
    days_text = ""
    if summary["review_days"] is not None:
        days_text = f", {summary['review_days']} days at {summary['capacity']} a day"
    print(f"Review: {summary['review_hours']:.1f} hours{days_text}.")
    if output_path is not None:
        print(f"Decisions: {output_path}")


def _exit_code(summary: dict[str, Any], fail_on: str) -> int:
    if summary["actions"]["escalate"] or summary["not_scored"]:
        return EXIT_ESCALATED
    return EXIT_REVIEWED if summary["actions"]["review"] and fail_on == "review" else 0


def _decision_row(decision: Decision) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(decision), "at": decision.at.isoformat()}


def _write_decisions(output_path: Path, decisions: list[Decision]) -> None:
    import pandas as pd

    from cotlab.export.tabular import escape_formulas

    rows = [_decision_row(decision) for decision in decisions]
    lines = [_json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    text_by_suffix = {
        ".csv": escape_formulas(pd.DataFrame(rows)).to_csv(index=False),
        ".jsonl": "\n".join(lines) + "\n",
        ".json": "[" + ",\n".join(lines) + "]\n",
    }
    with explain_write_errors(str(output_path), " The decisions are in the store."):
        output_path.parent.mkdir(parents=True, exist_ok=True)
        output_path.write_text(text_by_suffix[output_path.suffix.lower()], "utf-8")


def _policy_text(policy: Policy) -> str:
    capacity_text = (
        "no capacity set" if policy.capacity is None else f"{policy.capacity} reviews a day"
    )
    thresholds_text = _thresholds_text(policy.to_columns()["thresholds"])
    return f"{thresholds_text}; {capacity_text}, {policy.minutes:g} minutes each"


def _thresholds_text(thresholds: dict[str, tuple[float, float]]) -> str:
    lines = [
        f"{printable_line(name)}: escalate below {low:g}, release from {high:g} on"
        for name, (low, high) in thresholds.items()
    ]
    return "; ".join(lines) or "no thresholds, everything is escalated"
