"""``cotlab decide`` and ``cotlab policy``: what may be released without a person, and who said so."""

from __future__ import annotations

import json as _json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from cotlab.cli.who import who

if TYPE_CHECKING:
    from cotlab.core.labels import Decision
    from cotlab.reliability.policy import Policy
    from cotlab.store.database import Store

REVIEWED, ESCALATED = 1, 6
"""Exit codes for a person is needed: for reviews alone, and as soon as one item is escalated or not scored yet."""
policy_app = typer.Typer(no_args_is_help=True, help="Show and set the thresholds that decisions are made by.")

RunId = Annotated[str, typer.Argument(help="The run; `cotlab runs` lists them.")]
By = Annotated[Optional[str], typer.Option(help="Who decides (default: who is logged in here); kept in the audit.")]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
Low = Annotated[Optional[float], typer.Option(help="Escalate below this r_cal, from 0 to 1.")]
High = Annotated[Optional[float], typer.Option(help="Release from this r_cal on, from 0 to 1.")]
Capacity = Annotated[Optional[int], typer.Option(help="Reviews that people can do in a day.")]


def decide(
    run: RunId,
    low: Low = None,
    high: High = None,
    capacity: Capacity = None,
    fail_on: Annotated[
        Literal["review", "escalate"],
        typer.Option(help="Exit above 0 for any item that a person must see (review), or for escalated ones only."),
    ] = "review",
    by: By = None,
    json: Json = False,
    out: Annotated[Optional[Path], typer.Option(help="Write the decisions to this .csv, .json or .jsonl file.")] = None,
) -> None:
    """Decide which items of a run are released, reviewed or escalated, by r_cal and the policy.

    --low and --high hold for this time only. Exit code 0: all released. 1: some are reviewed, none escalated. 6: some are
    escalated, or have no scores yet. 2: usage.
    """
    from cotlab.review.release.decide import decide_run, unscored
    from cotlab.store.database import Store

    store = Store()
    ending = _ending(out)
    policy = _for_now(store, low, high, capacity)
    made = decide_run(store, run, by=who(by), policy=policy if low is not None or high is not None else None)
    held = policy if policy is not None else _held(store)
    missing = unscored(store, run, len(made))
    told = _told(run, made, held, missing)
    if out is not None:
        _write(out, ending, made)
    if json:
        rows = [_row(one) for one in made]
        sys.stdout.write(_json.dumps({**told, "decisions": rows}, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        _show(told, out)
    raise typer.Exit(_code(told, fail_on))


@policy_app.command("show")
def show(json: Json = False) -> None:
    """The policy that holds, those before it, and the rollout phase that the store has reached."""
    from cotlab.reliability.policy import Policy
    from cotlab.review.release.rollout import rollout
    from cotlab.store.database import Store
    from cotlab.store.decisions import policies

    store = Store()
    rows = policies(store).to_dict("records")
    found = rollout(store)
    if json:
        kept = [{**Policy.from_row(row).stored(), "version": int(row["version"]), "made_at": row["made_at"].isoformat(),
                 "made_by": row["made_by"], "reason": row["reason"]} for row in rows]  # fmt: skip
        phases = {"reached": found.reached, "phases": [phase._asdict() for phase in found.phases]}
        sys.stdout.write(_json.dumps({"policies": kept, "rollout": phases}, ensure_ascii=False, allow_nan=False) + "\n")
        return
    if not rows:
        print("No policy yet: everything is escalated. Set one: cotlab policy set --low 0.5 --high 0.8 --reason WHY")
    for row in rows[:10]:
        policy = Policy.from_row(row)
        print(f"{'now' if row is rows[0] else '   '} version {row['version']}: {_words(policy)}")
        print(f"    {row['made_at']:%Y-%m-%d %H:%M} UTC by {_line(row['made_by'])}: {_line(row['reason'])}")
    print(f"Rollout: phase {found.reached} of {len(found.phases)} is reached.")
    if found.next is not None:
        told = found.next
        print(f"Phase {told.number} ({told.title}) needs {told.needs}; so far: {told.has}.\n    {told.command}")


@policy_app.command("set")
def set_(
    reason: Annotated[str, typer.Option(help="Why; kept in the audit.")],
    low: Low = None,
    high: High = None,
    domain: Annotated[str, typer.Option(help="Only for items of this category (default: all without their own).")] = "",
    force: Annotated[bool, typer.Option("--force", help="Also for a category that no suite in the store has yet.")] = False,
    capacity: Capacity = None,
    minutes: Annotated[Optional[float], typer.Option(help="Minutes that one review takes (default 5).")] = None,
    by: By = None,
) -> None:
    """Let thresholds hold from now on; the policy before it stays in the store."""
    from dataclasses import replace

    from cotlab.review.release.decide import domain_for, set_policy
    from cotlab.store.database import Store

    store = Store()
    held = _held(store)
    policy, of = held, domain_for(store, domain, unseen=force)
    if low is not None or high is not None:
        policy = policy.with_domain(of, _bounds(held, of, low, high))
    elif domain:
        _usage("--domain needs --low and --high")
    policy = replace(
        policy, capacity=policy.capacity if capacity is None else capacity,
        minutes=policy.minutes if minutes is None else minutes, how={"by": "hand"},
    )  # fmt: skip
    kept = set_policy(store, policy, by=who(by), reason=reason)
    print(f"Policy {kept.version}: {_words(kept)}.\nDecide on a run with it: cotlab decide RUN")


@policy_app.command("suggest")
def suggest(
    run: Annotated[Optional[list[str]], typer.Argument(help="Runs with labels (default: all).")] = None,
    target_precision: Annotated[
        Optional[float], typer.Option(help="Acceptable share that released answers must have, between 0 and 1.")
    ] = None,
    cost_error: Annotated[Optional[float], typer.Option(help="Cost of an unacceptable answer that goes out.")] = None,
    cost_review: Annotated[float, typer.Option(help="Cost of a review.")] = 1.0,
    cost_escalation: Annotated[float, typer.Option(help="Cost of an escalation.")] = 3.0,
    missed: Annotated[float, typer.Option(help="Share of unacceptable answers that a review lets through.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 42,
) -> None:
    """Thresholds by target precision or by cost, from labelled answers; nothing is changed."""
    from cotlab.reliability.thresholds import Costs
    from cotlab.review.release.suggest import by_cost, by_precision
    from cotlab.store.database import Store

    if (target_precision is None) == (cost_error is None):
        _usage("give either --target-precision or --cost-error")
    store = Store()
    if target_precision is not None:
        lines = by_precision(store, run, target_precision)
    else:
        assert cost_error is not None
        lines = by_cost(store, run, Costs(cost_error, cost_review, cost_escalation, missed), seed=seed)
    for line in lines:
        print(line.text)


def _for_now(store: Store, low: float | None, high: float | None, capacity: int | None) -> Policy | None:
    """The policy that holds with what was given for this time; None where nothing was."""
    from dataclasses import replace

    from cotlab.reliability.policy import DEFAULT, Policy

    if low is None and high is None and capacity is None:
        return None
    held = _held(store)
    if low is not None or high is not None:
        bounds = _bounds(held, DEFAULT, low, high)
        held = Policy({DEFAULT: bounds}, held.capacity, held.minutes)
    return held if capacity is None else replace(held, capacity=capacity)


def _bounds(held: Policy, domain: str, low: float | None, high: float | None) -> Any:
    from cotlab.reliability.policy import Thresholds

    now = held.of(domain)
    if now is None and (low is None or high is None):
        _usage("the first thresholds need both --low and --high")
    first, last = (now.low, now.high) if now is not None else (0.0, 1.0)
    return Thresholds(first if low is None else low, last if high is None else high)


def _held(store: Store) -> Policy:
    from cotlab.review.release.decide import policy_of

    return policy_of(store)


def _told(run: str, made: list[Decision], policy: Policy, missing: int) -> dict[str, Any]:
    import math

    from cotlab.core.labels import ACTIONS
    from cotlab.reliability.volumes import expected_errors
    from cotlab.review.release.decide import reasons

    sizes = {action: sum(one.action == action for one in made) for action in ACTIONS}
    errors = expected_errors([one.r_cal for one in made if one.action == "release" and one.r_cal is not None])
    days = math.ceil(sizes["review"] / policy.capacity) if policy.capacity else None
    return {
        "run": run, "n": len(made), "not_scored": missing, "actions": sizes,
        "reasons": [{"action": a, "reason": why, "n": n} for a, why, n in reasons(made)],
        "expected_errors": {"point": errors.point, "lo": errors.lo, "hi": errors.hi, "method": errors.method,
                            "reason": errors.reason},
        "review_hours": sizes["review"] * policy.minutes / 60, "capacity": policy.capacity, "review_days": days,
        "calibrator": made[0].calibrator if made else None, "policy": made[0].policy if made else None,
        "thresholds": policy.stored()["thresholds"],
    }  # fmt: skip


def _show(told: dict[str, Any], out: Path | None) -> None:
    from cotlab.figures.style import interval_text

    sizes, errors = told["actions"], told["expected_errors"]
    print(f"Run {told['run']}: {told['n']} items. Released {sizes['release']}, review {sizes['review']}, "
          f"escalated {sizes['escalate']}.")  # fmt: skip
    if told["not_scored"]:
        print(f"{told['not_scored']} items have no scores yet: nothing is decided on them.")
    for row in told["reasons"]:
        print(f"  {row['action']:>8}  {row['n']:>5}  {_line(row['reason'])}")
    version = "none" if told["calibrator"] is None else told["calibrator"]
    once = "thresholds of this time" if told["thresholds"] else "no policy"
    policy = once if told["policy"] is None else f"policy {told['policy']}"
    print(f"Calibrator {version}, {policy}: {_pairs(told['thresholds'])}.")
    known = f"{interval_text(errors['point'], errors['lo'], errors['hi'])} ({errors['method']})"
    print(f"Expected errors among the released: {known if errors['point'] is not None else 'n/a, ' + errors['reason']}.")
    per = "" if told["review_days"] is None else f", {told['review_days']} days at {told['capacity']} a day"
    print(f"Review: {told['review_hours']:.1f} hours{per}.")
    if out is not None:
        print(f"Decisions: {out}")


def _code(told: dict[str, Any], fail_on: str) -> int:
    if told["actions"]["escalate"] or told["not_scored"]:
        return ESCALATED
    return REVIEWED if told["actions"]["review"] and fail_on == "review" else 0


def _row(one: Decision) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(one), "at": one.at.isoformat()}


def _ending(out: Path | None) -> str:
    if out is None or out.suffix.lower() in (".csv", ".json", ".jsonl"):
        return "" if out is None else out.suffix.lower()
    _usage(f"--out {out}: the file must end in .csv, .json or .jsonl")
    return ""


def _write(out: Path, ending: str, made: list[Decision]) -> None:
    import pandas as pd

    from cotlab.core.errors import ConfigError
    from cotlab.run.report import disarmed

    rows = [_row(one) for one in made]
    lines = [_json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    if ending == ".csv":
        text = disarmed(pd.DataFrame(rows)).to_csv(index=False)
    else:
        text = "\n".join(lines) + "\n" if ending == ".jsonl" else "[" + ",\n".join(lines) + "]\n"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror}. The decisions are in the store.") from error


def _words(policy: Policy) -> str:
    capacity = "no capacity set" if policy.capacity is None else f"{policy.capacity} reviews a day"
    return f"{_pairs(policy.stored()['thresholds'])}; {capacity}, {policy.minutes:g} minutes each"


def _pairs(thresholds: dict[str, tuple[float, float]]) -> str:
    told = [f"{_line(name)}: escalate below {low:g}, release from {high:g} on" for name, (low, high) in thresholds.items()]
    return "; ".join(told) or "no thresholds, everything is escalated"


def _line(text: Any) -> str:
    """Text from outside on one line, without characters that steer a terminal."""
    return "".join(c for c in " ".join(str(text).split()) if c.isprintable())


def _usage(message: str) -> None:
    from cotlab.core.errors import ConfigError

    raise ConfigError(message)
