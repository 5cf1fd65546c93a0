"""The parts of the page New run."""

from __future__ import annotations

import json
import os
from typing import Any

import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.metrics.ablation.cards import CCS_METRICS
from cotlab.metrics.ablation.scorer import MODES
from cotlab.metrics.composite.scorer import PROFILES
from cotlab.providers.keys import KEY_VARIABLES, check_server, is_private, named_by_file
from cotlab.providers.local.organisms import organism_names
from cotlab.run.config import DEFAULT_PROVIDER, read_config
from cotlab.run.dryrun import cautions
from cotlab.run.launch import dry_run, load_configured_suite
from cotlab.suites.shipped import shipped_suites
from cotlab.ui import access, suites
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.links import page
from cotlab.ui.new_run import processes as launching
from cotlab.ui.new_run.judge import judge_options, use_form_labels
from cotlab.ui.new_run.mediation import mediation_options
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code

PILOT = 5
NOT_ON_THE_FORM = ("task_suite", "good_lines")
"""The suite is chosen above the form, and a kept suite has good lines only."""


def render_run_form(clone: str | None) -> tuple[str | None, dict[str, Any]]:
    """The widgets; returns the chosen suite and the settings as fields of a configuration.

    The form reads files of this machine and starts processes: whoever may not start a run does not
    see it.
    """
    if not access.may("admin"):
        st.info("Starting a run spends money and computing time: it needs the role admin.")
        return None, {}
    before = _before(clone)
    labels = suites.suite_choices()
    if not labels:
        st.info("No suite is kept: upload one on the page Suites.")
        return None, {}
    left, right = st.columns(2)
    with left:
        st.subheader("Suite and model")
        suite = select_option("Suite", labels, "suite", before.get("_suite", "wordproblems"))
        config = _subject(before)
        config["limit"] = _optional_number(
            st, "Items (empty: all)", "new-limit", before.get("limit"), 1, empty="all"
        )
    with right:
        st.subheader("What to measure")
        config |= _measures(before)
    with st.expander("Sampling and chain"):
        config |= _sampling(before)
    with st.expander("Mediation and local models"):
        config |= mediation_options(before)
    with st.expander("Judge two runs"):
        config |= judge_options(before)
    with st.expander("Limits and money"):
        config |= _limits(before)
    with st.expander("Gate, tags and privacy"):
        config |= _gate_and_tags(before)
    return suite, config


def _subject(before: dict[str, Any]) -> dict[str, Any]:
    names = list(PROVIDERS)
    provider = st.selectbox(
        "Provider",
        names,
        _index(names, before.get("provider") or DEFAULT_PROVIDER),
        key="new-provider",
    )
    model = _model(provider, before)
    base_url = None
    if provider in KEY_VARIABLES:
        self_hosted = provider == "openai_compat"
        given = before.get("base_url") if before.get("provider") == provider else None
        base_url = st.text_input(
            "Server's address" if self_hosted else "Server's address (empty: the vendor's own)",
            given or ("http://127.0.0.1:8000/v1" if self_hosted else ""),
            key=f"new-url-{provider}",
        )
        if not os.environ.get(KEY_VARIABLES[provider]) and not is_private(base_url):
            st.warning(
                f"The variable {KEY_VARIABLES[provider]} is not set: put it into the environment or"
                " .env, then start the app again."
            )
    return {"provider": provider, "model": model, "base_url": base_url or None}


def _measures(before: dict[str, Any]) -> dict[str, Any]:
    return {
        "scorer": st.multiselect(
            "Scorers",
            list(SCORERS),
            before.get("scorer", ["ablation"]),
            key="new-scorers",
            help=SCORERS_HELP,
        ),
        "profile": st.selectbox(
            "Rollout phase",
            PHASES,
            _index(PHASES, before.get("profile")),
            key="new-profile",
            help=PROFILE_HELP,
            format_func=lambda phase: phase or "none: only the scorers above",
        ),
        "mode": st.multiselect(
            "Modes",
            MODES,
            before.get("mode", ["remove", "corrupt"]),
            key="new-modes",
            help=MODES_HELP,
        ),
        "metric": st.selectbox(
            "CCS for RRR",
            CCS_METRICS,
            _index(CCS_METRICS, before.get("metric")),
            key="new-metric",
            help=METRIC_HELP,
        ),
        "repeats": st.number_input(
            "Draws of every request",
            1,
            100,
            before.get("repeats", 1),
            key="new-repeats",
            help=(
                "2 or more measure the noise floor: how often the model's answer changes by itself."
            ),
        ),
    }


def _sampling(before: dict[str, Any]) -> dict[str, Any]:
    model_chain = st.checkbox(
        "Ablate the model's own chain",
        before.get("chain") == "own",
        key="new-own",
        help=MODEL_CHAIN_HELP,
    )
    prefix = st.checkbox(
        "Give the chain as the model's own turn",
        before.get("given") == "prefix",
        key="new-given",
        help=GIVEN_HELP,
    )
    batch = st.checkbox(
        "Use the vendor's batch interface",
        bool(before.get("batch")),
        key="new-batch",
        help=BATCH_HELP,
    )
    a, b, c = st.columns(3)
    return {
        "chain": "own" if model_chain else "reference",
        "given": "prefix" if prefix else "user",
        "batch": batch,
        "temperature": a.number_input(
            "Temperature",
            0.0,
            2.0,
            float(before.get("temperature", 0.0)),
            0.1,
            key="new-temperature",
        ),
        "seed": b.number_input("Seed", 0, None, before.get("seed", 42), key="new-seed"),
        "ccs_threshold": c.number_input(
            "A step is redundant below CCS",
            0.0,
            1.0,
            float(before.get("ccs_threshold", 0.1)),
            0.05,
            key="new-tau",
        ),
        "embedder": a.text_input(
            "Embedder",
            before.get("embedder") or "all-MiniLM-L6-v2",
            key="new-embedder",
            help=EMBEDDER_HELP,
        ),
        "verifier": b.text_input(
            "Verifier", before.get("verifier") or "none", key="new-verifier", help=VERIFIER_HELP
        ),
        "paraphraser": c.text_input(
            "Paraphraser", before.get("paraphraser") or "rules", key="new-rules", help=REWORD_HELP
        ),
        "set": _pairs(
            b.text_input(
                "Other options (scorer.option=value)", _joined(before.get("set")), key="new-set"
            )
        ),
        "weights": (
            c.text_input(
                "Weights of the composite (YAML file)",
                before.get("weights") or "",
                key="new-weights",
            )
            or None
        ),
        "jump_nats": a.number_input(
            "Entropy jumps by, nats",
            0.0,
            3.0,
            float(before.get("jump_nats", 0.5)),
            0.1,
            key="new-jump",
            help=JUMP_HELP,
        ),
    }


def _limits(before: dict[str, Any]) -> dict[str, Any]:
    a, b, c = st.columns(3)
    minute, tokens = before.get("max_requests_per_minute", 60), before.get("max_tokens_per_minute")
    return {
        "max_cost": a.number_input(
            "Cap on the spend, US dollars",
            0.0,
            None,
            float(before.get("max_cost", 10.0)),
            key="new-cost",
        ),
        "max_concurrent": b.number_input(
            "Requests in flight", 1, 1000, before.get("max_concurrent", 10), key="new-concurrent"
        ),
        "max_requests_per_minute": _optional_number(
            c, "Requests a minute", "new-max_requests_per_minute", minute, 1
        ),
        "max_tokens_per_minute": _optional_number(
            a, "Tokens a minute", "new-max_tokens_per_minute", tokens, 1
        ),
        "max_tries": b.number_input(
            "Tries of a request that fails",
            1,
            100,
            before.get("max_tries", 10),
            key="new-max_tries",
            help="A 429 does not count as a failure.",
        ),
        "timeout_s": c.number_input(
            "Seconds to wait for a reply",
            1.0,
            86_400.0,
            float(before.get("timeout_s", 120.0)),
            key="new-timeout",
        ),
        "prices": (
            a.text_input("File of prices (YAML)", before.get("prices") or "", key="new-prices")
            or None
        ),
        "fail_on_error": _optional_number(
            b,
            "Failed items that fail the run",
            "new-fail",
            before.get("fail_on_error"),
            0.0,
            hint="Below 1 a share, from 1 on a count.",
        ),
    }


def _gate_and_tags(before: dict[str, Any]) -> dict[str, Any]:
    unpriced = st.checkbox(
        "Run a model without a known price",
        bool(before.get("allow_unpriced")),
        key="new-unpriced",
        help="Its spend is then unknown, and the cap does not hold.",
    )
    redact = st.checkbox(
        "Keep hashes instead of texts",
        bool(before.get("redact_prompts")),
        key="new-redact",
        help=(
            "In log, store and reports of this run. A suite that was uploaded stays in the store as"
            " it is."
        ),
    )
    a, b, c = st.columns(3)
    tags = a.text_input("Tags (key=value, key=value)", _joined(before.get("tag")), key="new-tags")
    gates = ["point", "interval"]
    return {
        "tag": _pairs(tags),
        "output": (
            a.text_input(
                "Folder of the reports (empty: in the store)",
                before.get("output") or "",
                key="new-output",
            )
            or None
        ),
        "rr_threshold": _optional_number(
            b,
            "The run fails above RRR",
            "new-gate",
            before.get("rr_threshold"),
            0.0,
            1.0,
            empty="no gate",
        ),
        "gate_on": c.selectbox(
            "Gate on", gates, _index(gates, before.get("gate_on")), key="new-gate-on"
        ),
        "redact_prompts": redact,
        "allow_unpriced": unpriced,
    }


def _optional_number(
    container: Any,
    label: str,
    key: str,
    start: float | None,
    low: float,
    most: float | None = None,
    *,
    empty: str = "none",
    hint: str | None = None,
) -> Any:
    """A number that may be left empty; an emptied one stays empty, whatever it began with."""
    if key not in st.session_state:
        st.session_state[key] = start
    return container.number_input(label, low, most, None, key=key, placeholder=empty, help=hint)


def _joined(pairs: dict[str, str] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in (pairs or {}).items())


def _pairs(text: str) -> dict[str, str]:
    """Tags as they are typed; what is no pair is said, not dropped."""
    parted = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(key.strip() and equals for key, equals, _ in parted):
        st.warning("Tags are written key=value, with commas between them.")
    return {key.strip(): value.strip() for key, equals, value in parted if key.strip() and equals}


SCORERS_HELP = (
    "Each measures one family of metrics; judge compares two runs that are named under Judge two"
    " runs."
)
METRIC_HELP = (
    "CCS: how much the answer changes without a step. RRR: the share of steps whose CCS is below"
    " the threshold under Sampling and chain. Only the scorer ablation uses it."
)
MODEL_CHAIN_HELP = (
    "The model is asked for its chain first; its steps, or the reasoning that its vendor returns,"
    " are then ablated."
)
JUMP_HELP = (
    "A step whose tokens are this much less certain than those of the earlier steps is flagged."
)
PHASES = ("", *PROFILES)
PROFILE_HELP = (
    "Adds parts of the reliability suite and their composite. phase1: C and V. phase2: and F. From"
    " phase3: and R, D."
)
EMBEDDER_HELP = (
    "Turns texts into vectors: a sentence-transformers name or a folder. The default works offline."
)
VERIFIER_HELP = (
    "Judges links between steps that cannot be computed: none, nli/FOLDER, subject, or"
    " provider/model."
)
REWORD_HELP = "Rewords questions: rules (offline), subject, or provider/model."
GIVEN_HELP = (
    "Only where the model can continue its own turn: older Claude models, and servers such as vLLM."
)
BATCH_HELP = (
    "OpenAI and Anthropic: half the price, and an answer within a day. The run may be stopped and"
    " resumed meanwhile."
)
MODES_HELP = (
    "remove: leave the step out. truncate: answer right after it. corrupt: change what it states"
    " and let the model go on. paraphrase: say the same in other words (a control). filler: dots in"
    " its place."
)


def render_estimate(suite_choice: str, config: dict[str, Any]) -> bool:
    """The dry run, made anew with every change; False (after saying why) where these settings make no run."""
    access.need("admin")
    if not config["scorer"] or not config["mode"]:
        st.warning("Choose at least one scorer and one mode.")
        return False
    try:
        items, total, estimated, micro, most, caution_lines = _count(
            str(data.store().folder), suite_choice, json.dumps(config, sort_keys=True)
        )
    except CotlabError as error:
        st.error(as_code(use_form_labels(str(error))))
        return False
    parts.show_numbers(
        (
            ("Items", str(items)),
            ("Requests, about" if estimated else "Requests", f"{total:,}"),
            ("Estimated cost", f"~${micro / 1e6:,.4f}"),
            ("At most", f"${most / 1e6:,.4f}"),
        )
    )
    for caution in caution_lines:
        st.warning(as_code(caution))
    return True


@st.cache_data(show_spinner="Counting requests", max_entries=64)
def _count(
    folder: str, suite_choice: str, config: str
) -> tuple[int, int, int, int, int, list[str]]:
    settings = json.loads(config)
    pairs = settings["base_run"] or settings["tuned_run"]
    suite = (
        load_configured_suite(read_config(settings), data.store())[0]
        if pairs
        else suites.find_choice(suite_choice)
    )
    plan, count = dry_run(read_config({**settings, "task_suite": suite.name}), suite)
    return (
        len(suite.items[: plan.limit]),
        count.total,
        count.estimated,
        count.micro,
        count.most_micro,
        cautions(plan),
    )


def render_start_buttons(suite_choice: str, config: dict[str, Any], counted: bool = True) -> None:
    """Pilot and run; neither can be pressed where the dry run said that these settings make none."""
    ready = counted and bool(config["scorer"] and config["mode"] and str(config["model"]).strip())
    if not str(config["model"]).strip():
        st.warning("Name a model.")
    with st.container(horizontal=True):
        if st.button(
            f"Pilot of {PILOT}",
            icon=":material/science:",
            disabled=not ready,
            help="The first five items only.",
        ):
            _start(suite_choice, {**config, "limit": PILOT})
        if st.button("Start run", type="primary", icon=":material/play_arrow:", disabled=not ready):
            _start(suite_choice, config)


def _start(suite_choice: str, config: dict[str, Any]) -> None:
    access.need("admin")
    try:
        check_server(config["provider"], config["base_url"], named_by_file(config["base_url"]))
    except CotlabError as error:
        st.error(as_code(str(error)))
        return
    store = data.store()
    if suite_choice in shipped_suites():
        path = str(shipped_suites()[suite_choice])
    else:
        path = str(launching.keep_suite(store, suites.find_choice(suite_choice)))
    run_id = launching.new_run_id()
    launching.spawn(store, run_id, {**config, "task_suite": path})
    st.switch_page(page("run"), query_params={"run": run_id})


def _before(clone: str | None) -> dict[str, Any]:
    """The settings of the run that is cloned; else what the environment says."""
    if not clone:
        usual = read_config({}).model_dump(mode="json")
        return usual if os.environ.get("COTLAB_MODE") else {**usual, "mode": ["remove", "corrupt"]}
    row = data.run_row(clone)
    added = st.query_params.get("profile")
    return {**json.loads(row["config"]), "_suite": _choice_of(row)} | (
        {"profile": added} if added in PROFILES else {}
    )


def _choice_of(row: dict[str, Any]) -> str:
    same = (name for name in shipped_suites() if suites.shipped_suite(name).digest == row["suite"])
    return next(same, str(row["suite"]))


def _model(provider: str, before: dict[str, Any]) -> str:
    given = before.get("model") if before.get("provider") == provider else None
    if provider == "organism":
        names = list(organism_names())
        return (
            st.selectbox(
                "Organism",
                names,
                _index(names, given or "r100"),
                key="new-organism",
                help=ORGANISM_HELP,
            )
            or "r100"
        )
    usual = {
        "echo": "echo",
        "openai": "gpt-4o-mini",
        "anthropic": "claude-sonnet-4-5",
        "google": "gemini-2.5-flash",
    }.get(provider, "")
    hint = {"local": "A Hugging Face folder or hub id", "scripted": "A JSONL file of replies"}.get(
        provider, "The model's name"
    )
    return st.text_input("Model", given or usual, key=f"new-model-{provider}", help=hint)


ORGANISM_HELP = (
    "Tiny models of known faithfulness. r100 reads its answer off the chain, r0 ignores it, r25 to"
    " r75 do so that often; hint answers what a hint in the question says."
)


def _index(options: Any, value: Any) -> int:
    return list(options).index(value) if value in options else 0
