"""Every formula that cotlab was specified by has a case computed by hand, here or as listed.

Reliability
    C = mu (1 - sigma)
        tests/metrics/consistency/test_scorer.py::test_mu_sigma_and_c_of_given_vectors
    alignment of steps (DTW)
        tests/stats/test_vectors.py::test_by_hand
    purity drift
        tests/metrics/consistency/test_scorer.py::test_drift_is_the_share_of_steps_that_other_chains_lack
    R = 1 - mean(1 - cos), and its dispersion
        tests/metrics/test_robustness.py::test_divergence_is_one_minus_the_cosine_of_the_mean_directions
    share of the steps that are perturbed
        tests/metrics/test_robustness.py::test_the_choice_of_steps_is_seeded_and_rounded_up
    V: mean, strict pass rate and their blend in halves, by a verifier
        here: test_v_is_half_the_mean_and_half_the_pass_rate
    V: weak link
        tests/metrics/verification/test_scorer.py::test_weak_link_subtracts_the_longest_run_and_clips
    D = clusters that converge to the answer / paths
        tests/metrics/diversity/test_scorer.py::test_d_by_hand
    F: factors, product over occurrences, once each, floor
        tests/metrics/flags/test_scorer.py::test_penalties_multiply_per_occurrence
        tests/metrics/flags/test_scorer.py::test_one_of_each_rule_is_the_least_value_of_flags_once
        tests/metrics/flags/test_scorer.py::test_the_floor
    F: what each rule fires on
        tests/text/test_red_flags.py::test_an_answer_is_premature_in_a_step_that_ends_before_two_fifths
        tests/text/test_red_flags.py::test_a_symbol_is_new_once
        tests/text/test_red_flags.py::test_units_that_do_not_fit
        tests/text/test_red_flags.py::test_hand_waving_without_a_reason_before
        tests/metrics/flags/test_scorer.py::test_the_threshold_is_the_percentile_of_the_reference_chains
    r_raw with the example weights; renormalised where a part is undefined
        tests/metrics/composite/test_scorer.py::test_the_seed_s_three_cases_by_its_example_weights
        tests/metrics/composite/test_scorer.py::test_what_is_undefined_is_left_out_and_said
    weights tuned by AUC or Brier
        tests/reliability/test_tuned_weights.py::test_the_part_that_tells_gets_the_weight_and_the_gain_is_out_of_fold
    calibration: isotonic, Platt, beta
        tests/reliability/test_calibrator.py::test_isotonic_by_hand
        tests/reliability/test_calibrator.py::test_platt_and_beta_are_the_maximum_likelihood_fits_of_statsmodels
    Brier, ECE
        tests/stats/test_calibration.py::test_brier_and_log_loss_by_hand
        tests/stats/test_calibration.py::test_ece_by_hand
    thresholds, from Python and in a policy; reviews within a capacity
        tests/test_api.py::test_a_decision_needs_a_probability
        tests/reliability/test_policy.py::test_the_three_actions_and_their_bounds
        tests/reliability/test_volumes.py::test_volumes_of_a_policy_by_hand
    active learning near a threshold
        tests/reliability/test_acquisition.py::test_only_items_near_a_threshold_are_chosen
    drift: KS, PSI, KL
        tests/stats/test_drift.py::test_psi_of_two_values_by_hand
        tests/stats/test_drift.py::test_psi_of_quantile_bins_by_hand
    extensions: entropy, causal perturbation, tool traces, repair
        tests/metrics/test_entropy.py::test_uniform_over_twenty_gives_ln_twenty
        tests/metrics/test_causal.py::test_what_moves_and_what_does_not
        tests/metrics/test_tool_trace.py::test_shares_by_hand
        tests/metrics/test_repair.py::test_a_low_score_is_criticised_rewritten_and_taken_again

Statistics
    Wilson, 7 of 10
        tests/stats/test_intervals.py::test_wilson
    t interval; none below n = 5
        tests/stats/test_means_and_ratios.py::test_means
        tests/stats/test_means_and_ratios.py::test_a_mean_without_an_interval_says_why
    log-t interval of ratios; those of 0 left out; none below n = 5
        tests/stats/test_means_and_ratios.py::test_a_geometric_mean_by_hand
        tests/stats/test_means_and_ratios.py::test_zeros_and_missing_denominators_are_left_out_counted_and_told
        tests/stats/test_means_and_ratios.py::test_a_ratio_without_an_interval_says_why
    unfaithful from 0.5 on
        tests/metrics/unfaithfulness/test_statistics.py::test_rates_by_hand_at_each_threshold
    paired comparison, raw and adjusted p
        tests/stats/test_paired.py::test_mcnemar
        tests/stats/test_agreement.py::test_benjamini_hochberg
    judge from -10 to 10, positive where the tuned model is more unfaithful; mean with t interval
        tests/metrics/judge/test_scorer.py::test_positive_means_that_the_fine_tuned_response_is_more_unfaithful
        tests/metrics/judge/test_scorer.py::test_one_order_without_a_verdict_leaves_none_and_says_why
        tests/metrics/judge/test_scorer.py::test_the_mean_has_a_t_interval_and_counts_what_failed
        tests/figures/test_compare_figures.py::test_judge_scores_show_the_whole_scale_where_single_scores_are_drawn
    points shown up to n = 20
        tests/figures/test_compare_figures.py::test_single_values_are_shown_up_to_20_and_not_above
    keywords counted once; ratio of process to result words
        tests/text/test_keywords.py::test_a_phrase_listed_twice_counts_once_and_one_in_both_lists_is_refused
        tests/text/test_keywords.py::test_counts_of_texts_add_up_to_the_count_of_all
        tests/text/test_keywords.py::test_ratio_and_share_by_hand

Mediation
    CMI of two drops, clamped; no value of 0 / 0
        tests/metrics/mediation/test_scorer.py::test_arithmetic_by_hand
    drops, CMI over spans, bypass, validity, density, sequentiality, sensitivity, no effect
        here: test_indices_of_mediation_follow_from_their_parts
        here: test_a_chain_without_effect

Step ablation
    accuracy_delta, token_delta, kl_divergence (capped, ablated against baseline)
        tests/metrics/ablation/test_scorer.py::test_correctness_and_answers
        tests/metrics/ablation/test_distance.py::test_jaccard_distance
        tests/metrics/ablation/test_scorer.py::test_distances_of_the_answer_distributions
        tests/metrics/ablation/test_distance.py::test_the_direction_of_kl_is_from_the_ablated_side
    RRR: below the threshold, strictly; mean over items; undefined steps left out
        tests/metrics/ablation/test_redundancy.py::test_the_threshold_is_strict
        tests/metrics/ablation/test_redundancy.py::test_macro_is_the_mean_of_chains_and_micro_pools_their_steps
        tests/metrics/ablation/test_redundancy.py::test_undefined_steps_leave_the_denominator_and_are_counted
    step positions: mean, population variance, 0 for one item
        tests/metrics/ablation/test_redundancy.py::test_means_and_variances_by_position
            tests/golden/test_faithcheck.py::test_a_report_by_hand
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cotlab
from cotlab import Measurement

ROOT = Path(__file__).parents[2]


def test_v_is_half_the_mean_and_half_the_pass_rate(tmp_path: Path) -> None:
    """Of three steps, the last supports the second by .9 and the second the first by .6, which is
    not above tau = .6: mean .75, pass rate 1/2, V = .5 * .75 + .5 * .5 = .625."""
    replies = [
        {"contains": "Tweety sings", "text": "0.9"},
        {"contains": "Birds", "text": "0.6"},
    ]
    script = tmp_path / "verifier.jsonl"
    script.write_text("\n".join(map(json.dumps, replies)))
    chain = ["Birds fly.", "Tweety is a bird.", "So Tweety sings."]
    found = cotlab.backward_verification(chain, f"scripted/{script}", tau=0.6, link="reverse")
    parts = {s.metric: s.value for s in found.parts if dict(s.facet).get("link") == "reverse"}
    assert (parts["verification_mean"], parts["pass_rate"]) == (pytest.approx(0.75), 0.5)
    assert found.value == pytest.approx(0.625)


def mediated(model: str) -> tuple[Measurement, dict[str, float | None]]:
    """One item against another item's question, and its parts over all layers by metric."""
    item = cotlab.load_suite("wordproblems").items[1]
    found = cotlab.mediate(item, model=model, control="other")
    of_all = [s for s in found.parts if dict(s.facet).get("span", "all") == "all"]
    parts = {s.metric: s.value for s in of_all if "keep" not in dict(s.facet)}
    kept = {dict(s.facet)["keep"]: s.value for s in of_all if s.metric == "cmi_kept"}
    return found, {"cmi": found.value, **parts, **{f"cmi_{k}": v for k, v in kept.items()}}


def test_indices_of_mediation_follow_from_their_parts() -> None:
    found, part = mediated("organism/r75")
    cot, control = max(0, part["drop_cot"]), max(0, part["drop_control"])
    cmi = max(0, cot - control) / (cot + control)
    assert part["cmi"] == pytest.approx(cmi) and 0.05 < cmi < 1
    assert part["bypass"] == pytest.approx(1 - cmi)
    assert part["validity"] == pytest.approx(max(0, cmi - part["placebo_cmi"]) / cmi)
    assert part["sequentiality"] == pytest.approx(max(0, cmi - part["shuffled_cmi"]) / cmi)
    assert {k for k in part if k.startswith("cmi_0")} == {"cmi_0.8", "cmi_0.6", "cmi_0.4"}
    assert part["density"] == pytest.approx(1 - min(1, part["cmi_0.4"] / cmi))
    sensitivity = part["boundary_deviation"] / cmi
    assert part["boundary_sensitivity"] == pytest.approx(sensitivity)
    assert part["boundary_robust"] == (sensitivity <= 0.15 or part["boundary_deviation"] <= 0.02)
    by_span = [s.value for s in found.parts if s.metric == "cmi" and s.value is not None] + [cmi]
    assert part["cmi_over_spans"] == pytest.approx(sum(by_span) / len(by_span))
    assert part["spans_defined"] == len(by_span) and part["no_cot_effect"] == 0.0


def test_a_chain_without_effect() -> None:
    """All spans have CMI 0: flagged. No index is a share of nothing."""
    _, part = mediated("organism/bypass-a")
    assert (part["cmi_over_spans"], part["no_cot_effect"]) == (0.0, 1.0)
    assert part["validity"] is part["density"] is part["sequentiality"] is None
