"""``cotlab decide``, ``cotlab policy``: decide what is released without a person."""

from __future__ import annotations

import json as _json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from cotlab.cli.options import acting_user

if TYPE_CHECKING:
    from cotlab.core.labels import Decision
    from cotlab.reliability.policy import Policy
    from cotlab.store.database import Store

REVIEWED, ESCALATED = 1, 6
"""Exit codes for a person is needed: for reviews alone, and as soon as one item is escalated or not
scored yet."""
policy_app = typer.Typer(
    no_args_is_help=True, help="Show and set the thresholds that decisions are made by."
)

RunId = Annotated[str, typer.Argument(help="The run; `cotlab runs` lists them.")]
By = Annotated[
    Optional[str],
    typer.Option(help="Who decides (default: who is logged in here); kept in the audit."),
]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
Low = Annotated[Optional[float], typer.Option(help="Escalate below this r_cal, from 0 to 1.")]
High = Annotated[Optional[float], typer.Option(help="Release from this r_cal on, from 0 to 1.")]
Capacity = Annotated[Optional[int], typer.Option(help="Reviews that people can do in a day.")]


def decide_command(
    run: RunId,
    low: Low = None,
    high: High = None,
    capacity: Capacity = None,
    fail_on: Annotated[
        Literal["review", "escalate"],
        typer.Option(
            help=(
                "Exit above 0 for any item that a person must see (review), or for escalated ones"
                " only."
            )
        ),
    ] = "review",
    by: By = None,
    json: Json = False,
    out: Annotated[
        Optional[Path], typer.Option(help="Write the decisions to this .csv, .json or .jsonl file.")
    ] = None,
) -> None:
    """Decide which items of a run are released, reviewed or escalated, by r_cal and the policy.

    --low and --high hold for this time only. Exit code 0: all released. 1: some are reviewed, none
    escalated. 6: some are
    escalated, or have no scores yet. 2: usage.
    """
    from cotlab.review.release.decide import decide_run, unscored
    from cotlab.store.database import Store

    store = Store()
    ending = _check_suffix(out)
    policy = _policy_override(store, low, high, capacity)
    decisions = decide_run(
        store,
        run,
        by=acting_user(by),
        policy=policy if low is not None or high is not None else None,
    )
    current_policy = policy if policy is not None else _stored_policy(store)
    n_unscored = unscored(store, run, len(decisions))
    record = _decision_record(run, decisions, current_policy, n_unscored)
    if out is not None:
        _write_decisions(out, ending, decisions)
    if json:
        rows = [_decision_row(decision) for decision in decisions]
        sys.stdout.write(
            _json.dumps({**record, "decisions": rows}, ensure_ascii=False, allow_nan=False) + "\n"
        )
    else:
        _print_record(record, out)
    raise typer.Exit(_exit_code(record, fail_on))


@policy_app.command("show")
def show_policies(json: Json = False) -> None:
    """Show the policy, those before it, and the rollout phase that the store has reached."""
    from cotlab.reliability.policy import Policy
    from cotlab.review.release.rollout import rollout
    from cotlab.store.database import Store
    from cotlab.store.decisions import policies

    store = Store()
    rows = policies(store).to_dict("records")
    progress = rollout(store)
    if json:
        records = [
            {
                **Policy.from_row(row).stored(),
                "version": int(row["version"]),
                "made_at": row["made_at"].isoformat(),
                "made_by": row["made_by"],
                "reason": row["reason"],
            }
            for row in rows
        ]
        phases = {
            "reached": progress.reached,
            "phases": [phase._asdict() for phase in progress.phases],
        }
        sys.stdout.write(
            _json.dumps(
                {"policies": records, "rollout": phases}, ensure_ascii=False, allow_nan=False
            )
            + "\n"
        )
        return
    if not rows:
        print(
            "No policy yet: everything is escalated. Set one: cotlab policy set --low 0.5 --high"
            " 0.8 --reason WHY"
        )
    for row in rows[:10]:
        policy = Policy.from_row(row)
        print(
            f"{'now' if row is rows[0] else '   '} version {row['version']}: {_policy_text(policy)}"
        )
        print(
            f"    {row['made_at']:%Y-%m-%d %H:%M} UTC by {_line(row['made_by'])}:"
            f" {_line(row['reason'])}"
        )
    print(f"Rollout: phase {progress.reached} of {len(progress.phases)} is reached.")
    if progress.next is not None:
        next_phase = progress.next
        print(
            f"Phase {next_phase.number} ({next_phase.title}) needs {next_phase.needs}; so far:"
            f" {next_phase.has}.\n    {next_phase.command}"
        )


@policy_app.command("set")
def set_thresholds(
    reason: Annotated[str, typer.Option(help="Why; kept in the audit.")],
    low: Low = None,
    high: High = None,
    domain: Annotated[
        str, typer.Option(help="Only for items of this category (default: all without their own).")
    ] = "",
    force: Annotated[
        bool,
        typer.Option("--force", help="Also for a category that no suite in the store has yet."),
    ] = False,
    capacity: Capacity = None,
    minutes: Annotated[
        Optional[float], typer.Option(help="Minutes that one review takes (default 5).")
    ] = None,
    by: By = None,
) -> None:
    """Let thresholds hold from now on; the policy before it stays in the store."""
    from dataclasses import replace

    from cotlab.review.release.decide import domain_for, set_policy
    from cotlab.store.database import Store

    store = Store()
    current = _stored_policy(store)
    policy, domain_key = current, domain_for(store, domain, unseen=force)
    if low is not None or high is not None:
        policy = policy.with_domain(domain_key, _bounds(current, domain_key, low, high))
    elif domain:
        _raise_usage("--domain needs --low and --high")
    policy = replace(
        policy,
        capacity=policy.capacity if capacity is None else capacity,
        minutes=policy.minutes if minutes is None else minutes,
        how={"by": "hand"},
    )
    saved = set_policy(store, policy, by=acting_user(by), reason=reason)
    print(
        f"Policy {saved.version}: {_policy_text(saved)}.\nDecide on a run with it: cotlab"
        " decide RUN"
    )


@policy_app.command("suggest")
def suggest(
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
        _raise_usage("give either --target-precision or --cost-error")
    store = Store()
    if target_precision is not None:
        lines = suggest_by_precision(store, run, target_precision)
    else:
        assert cost_error is not None
        lines = suggest_by_cost(
            store, run, Costs(cost_error, cost_review, cost_escalation, missed), seed=seed
        )
    for line in lines:
        print(line.text)


def _policy_override(
    store: Store, low: float | None, high: float | None, capacity: int | None
) -> Policy | None:
    """Return the policy with the thresholds given for this time; None where none was given."""
    from dataclasses import replace

    from cotlab.reliability.policy import DEFAULT, Policy

    if low is None and high is None and capacity is None:
        return None
    policy = _stored_policy(store)
    if low is not None or high is not None:
        bounds = _bounds(policy, DEFAULT, low, high)
        policy = Policy({DEFAULT: bounds}, policy.capacity, policy.minutes)
    return policy if capacity is None else replace(policy, capacity=capacity)


def _bounds(policy: Policy, domain: str, low: float | None, high: float | None) -> Any:
    from cotlab.reliability.policy import Thresholds

    current = policy.of(domain)
    if current is None and (low is None or high is None):
        _raise_usage("the first thresholds need both --low and --high")
    first, last = (current.low, current.high) if current is not None else (0.0, 1.0)
    return Thresholds(first if low is None else low, last if high is None else high)


def _stored_policy(store: Store) -> Policy:
    from cotlab.review.release.decide import policy_of

    return policy_of(store)


def _decision_record(
    run: str, decisions: list[Decision], policy: Policy, missing: int
) -> dict[str, Any]:
    import math

    from cotlab.core.labels import ACTIONS
    from cotlab.reliability.volumes import expected_errors
    from cotlab.review.release.decide import reasons

    sizes = {action: sum(decision.action == action for decision in decisions) for action in ACTIONS}
    errors = expected_errors(
        [
            decision.r_cal
            for decision in decisions
            if decision.action == "release" and decision.r_cal is not None
        ]
    )
    days = math.ceil(sizes["review"] / policy.capacity) if policy.capacity else None
    return {
        "run": run,
        "n": len(decisions),
        "not_scored": missing,
        "actions": sizes,
        "reasons": [{"action": a, "reason": reason, "n": n} for a, reason, n in reasons(decisions)],
        "expected_errors": {
            "point": errors.point,
            "lo": errors.lo,
            "hi": errors.hi,
            "method": errors.method,
            "reason": errors.reason,
        },
        "review_hours": sizes["review"] * policy.minutes / 60,
        "capacity": policy.capacity,
        "review_days": days,
        "calibrator": decisions[0].calibrator if decisions else None,
        "policy": decisions[0].policy if decisions else None,
        "thresholds": policy.stored()["thresholds"],
    }


def _print_record(record: dict[str, Any], out: Path | None) -> None:
    from cotlab.figures.style import interval_text

    sizes, errors = record["actions"], record["expected_errors"]
    print(
        f"Run {record['run']}: {record['n']} items. Released {sizes['release']}, review"
        f" {sizes['review']}, escalated {sizes['escalate']}."
    )
    if record["not_scored"]:
        print(f"{record['not_scored']} items have no scores yet: nothing is decided on them.")
    for row in record["reasons"]:
        print(f"  {row['action']:>8}  {row['n']:>5}  {_line(row['reason'])}")
    version = "none" if record["calibrator"] is None else record["calibrator"]
    once = "thresholds of this time" if record["thresholds"] else "no policy"
    policy = once if record["policy"] is None else f"policy {record['policy']}"
    print(f"Calibrator {version}, {policy}: {_thresholds_text(record['thresholds'])}.")
    known = f"{interval_text(errors['point'], errors['lo'], errors['hi'])} ({errors['method']})"
    print(
        "Expected errors among the released:"
        f" {known if errors['point'] is not None else 'n/a, ' + errors['reason']}."
    )
    per = (
        ""
        if record["review_days"] is None
        else f", {record['review_days']} days at {record['capacity']} a day"
    )
    print(f"Review: {record['review_hours']:.1f} hours{per}.")
    if out is not None:
        print(f"Decisions: {out}")


def _exit_code(record: dict[str, Any], fail_on: str) -> int:
    if record["actions"]["escalate"] or record["not_scored"]:
        return ESCALATED
    return REVIEWED if record["actions"]["review"] and fail_on == "review" else 0


def _decision_row(decision: Decision) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(decision), "at": decision.at.isoformat()}


def _check_suffix(out: Path | None) -> str:
    if out is None or out.suffix.lower() in (".csv", ".json", ".jsonl"):
        return "" if out is None else out.suffix.lower()
    _raise_usage(f"--out {out}: the file must end in .csv, .json or .jsonl")
    return ""


def _write_decisions(out: Path, ending: str, decisions: list[Decision]) -> None:
    import pandas as pd

    from cotlab.core.errors import ConfigError
    from cotlab.export.tabular import disarmed

    rows = [_decision_row(decision) for decision in decisions]
    lines = [_json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    if ending == ".csv":
        text = disarmed(pd.DataFrame(rows)).to_csv(index=False)
    else:
        text = "\n".join(lines) + "\n" if ending == ".jsonl" else "[" + ",\n".join(lines) + "]\n"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(
            f"{out}: cannot be written: {error.strerror}. The decisions are in the store."
        ) from error


def _policy_text(policy: Policy) -> str:
    capacity = "no capacity set" if policy.capacity is None else f"{policy.capacity} reviews a day"
    return (
        f"{_thresholds_text(policy.stored()['thresholds'])}; {capacity}, {policy.minutes:g} minutes"
        " each"
    )


def _thresholds_text(thresholds: dict[str, tuple[float, float]]) -> str:
    lines = [
        f"{_line(name)}: escalate below {low:g}, release from {high:g} on"
        for name, (low, high) in thresholds.items()
    ]
    return "; ".join(lines) or "no thresholds, everything is escalated"


def _line(text: Any) -> str:
    """Text from outside on one line, without characters that steer a terminal."""
    return "".join(c for c in " ".join(str(text).split()) if c.isprintable())


def _raise_usage(message: str) -> None:
    from cotlab.core.errors import ConfigError

    raise ConfigError(message)
