"""Numbers on which privacy or a level rests, each with the test that fails when it is changed.

`found` lists numbers that have a name in a module or a class of the rooms where sensitivities,
noise and levels are declared. Each of them stands in one of two tables: in `RESTS_ON` with a
factor that would harm and with a test that fails then, or in `FREE` with a reason why no guarantee
rests on it. The slow part of `test_halved.py` changes them in a copy of the package.
"""

import ast
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sizes import parsed

import skpriv

PACKAGE = Path(skpriv.__file__).parent
ROOT = Path(__file__).parents[2]
ROOMS = (
    "_linalg.py", "_wire.py", "privacy/", "protocol/", "_estimation/", "linear_model/",
    "model_selection/", "bandits/_off_policy.py", "bandits/_ucb/",
)  # fmt: skip
# Names that are no numbers of this kind: shapes, and what registries are made from.
OTHERS = {"shape", "capabilities", "_spec", "_STATED"}

# By test file, and by function or choice in it: numbers, and how many times as large they become
_RESTS_ON = {
    "estimation/loop/test_line.py": {
        "test_a_tail_is_as_heavy_as_counts_below_it_say": {
            "_estimation/_loop/_line.py SLOWER": 0.5,
        },
        "test_half_of_the_mean_is_put_back_because_the_rest_is_bounded_as_well": {
            "_estimation/_loop/_line_queries.py UNEVEN": 0.5,
        },
        "test_what_is_still_missing_is_counted": {"_estimation/_loop/_line.py MISSED": 0.5},
        "test_half_of_what_is_asked_of_long_scores_is_put_back": {
            "_estimation/_loop/_line.py PUT_BACK[0][0]": 0.5,
        },
        "test_what_shortened_counts_miss_beside_a_rare_category_is_what_is_said": {
            "_estimation/_loop/_line.py COUNTS_PUT_BACK[1]": 0.5,
        },
    },
    "estimation/loop/test_estimate.py": {
        "test_a_noisy_variance_costs_no_coverage": {
            "_estimation/_loop/_law.py STUDENT": 0.5,
            "_estimation/_loop/_law.py UNEQUAL": 0.5,
        },
        "test_weights_move_a_mean_by_no_more_than_an_interval_counts": {
            "_estimation/_loop/_evidence.py WEIGHTING": 0.5,
        },
    },
    "estimation/loop/test_far_rows.py": {
        "test_noise_of_one_number_is_taken_for_far_rows_as_seldom_as_is_stated": {
            "_estimation/_loop/_far_rows.py SELDOM": 2,
        },
    },
    "estimation/loop/test_few_records.py": {
        "test_a_mean_of_few_targets_has_the_noise_of_few": {
            "_estimation/_targets.py LEAST_RATE": 0.5,
        },
        "test_the_line_has_a_whole_question_from_three_times_resolved_on": {
            "_estimation/_loop/_rules.py RESOLVED": 0.5,
            "_estimation/_loop/_rules.py TOLD_LINE": 0.5,
        },
    },
    "estimation/loop/test_known_mean.py": {
        "test_a_clip_moves_a_mean_of_counts_by_no_more_than_counts_say": {
            "_estimation/_loop/_evidence.py MOST_SKEW": 0.5,
        },
    },
    "estimation/loop/test_length.py": {
        "test_an_indicator_is_guarded_whatever_noise_its_mean_square_has": {
            "_estimation/_loop/_whitening.py AT_ENDS": 0.5,
        },
        "test_the_length_of_a_normal_line_is_asked_without_a_bias": {
            "_estimation/_loop/_evidence.py FAR_FIT": 0.5,
        },
    },
    "estimation/test_conformal.py": {
        "test_shortfalls_beyond_the_grid_add_nothing": {"_estimation/_conformal.py STEP": 0.5},
    },
    "estimation/test_persons.py": {
        "test_one_person_in_seven_hundred_is_not_cut": {"_estimation/_persons.py MOST_CUT": 2},
    },
    "estimation/test_certified_tails.py": {
        "test_the_quantile_of_symmetric_noise": {"_estimation/_intervals.py ROUNDED_UP": 0.5},
        "test_the_region_of_the_main_part_has_its_probability": {
            "_estimation/_intervals.py TIMES_UP": 0.5,
        },
    },
    "estimation/test_coefficients.py": {
        "test_mapping_twice_is_mapping_by_the_product": {
            "_estimation/_coefficients.py NULL": 0.001,
        },
    },
    "estimation/test_fit_statistics.py": {
        "test_a_tail_is_that_of_a_power_whose_inverse_is_uniform": {
            "_estimation/_fit_statistics.py TAIL": 0.5,
            "_estimation/_fit_statistics.py TAIL_DEVIATION": 0.5,
        },
        "test_explained_deviance_of_effects_that_tell_nearly_every_class": {
            "_estimation/_fit_statistics.py WIDEST": 0.5,
        },
    },
    "estimation/test_intervals.py": {
        "test_coefficients_begin_at_twice_the_norm_of_the_noise": {
            "_estimation/_coefficients.py MIN_RESOLUTION_FOR_COEFFICIENTS": 0.5,
        },
        "test_normal_intervals_begin_where_coverage_stays_near_the_level": {
            "_estimation/_intervals.py RESOLUTION_ABOVE_QUANTILE": 0.5,
        },
    },
    "bandits/ucb/test_windows.py": {
        "test_thresholds_of_all_reads_add_up_to_the_stated_rate_of_false_alarms": {
            "bandits/_ucb/_sums.py FALSE_ALARMS": 2,
        },
        "test_weights_of_a_bent_world_may_differ_by_what_predictions_are_taken_to_move": {
            "bandits/_ucb/_sums.py MISFIT": 0.5,
        },
    },
    "linear_model/test_instruments.py": {
        "test_no_interval_holds_below_an_f_of_ten": {"linear_model/_instruments.py WEAK": 0.5},
    },
    "estimation/test_levels.py": {
        "test_a_usual_range_holds_nine_tenths": {"_estimation/_levels.py USUAL_DEVIATIONS": 0.5},
        "test_intervals_are_wider_at_95_than_at_50_by_the_normal_ratio": {
            "_estimation/_levels.py USUAL_QUANTILE": 0.5,
        },
        "test_nine_of_ten_are_told_from_zero_so_many_deviations_away": {
            "_estimation/_coefficients.py NINE_OF_TEN": 0.5,
        },
    },
    "linear_model/additive/test_additive.py": {
        "test_bands_cover_in_every_model_or_are_open": {
            "linear_model/_additive.py MIN_RESOLUTION_FOR_KNOTS": 0.5,
        },
    },
    "linear_model/generalized/test_few_records.py": {
        "test_classes_have_standard_errors_from_a_hundred_effective_records_on": {
            "_estimation/_links.py BentLink.told_effective_records": 0.5,
        },
        "test_the_records_that_are_asked_for_are_enough_for_slopes": {
            "_estimation/_links.py StepLink.told_effective_records": 0.5,
        },
    },
    "linear_model/generalized/test_strong_effects.py": {
        "test_strong_effects_are_farther_away_than_shrunk_ones_say": {
            "_estimation/_links.py Logit.shrunk_by": 0.5,
        },
    },
    "linear_model/gradients/test_improper.py": {
        "test_momentum_goes_as_far_as_is_asked": {
            "linear_model/_gradients/_improper_sgd.py CONTRACTION": 0.5,
        },
    },
    "linear_model/gradients/test_niht.py": {
        "test_the_parts_of_the_certificate_add_up": {
            "linear_model/_gradients/_niht.py FAILURE_WEIGHTS[0]": 2,
        },
    },
    "linear_model/test_plan.py": {
        "test_the_rows_that_a_plan_says_tell_a_level_that_has_an_effect": {
            "_estimation/_links.py BentLink.run_off": 0.5,
            "_estimation/_links.py BentLink.slope_left": 2,
        },
    },
    "linear_model/reweighted/test_normalisation.py": {
        "test_what_the_noise_of_the_moments_hides_is_not_made_larger": {
            "linear_model/_reweighted/_normalisation.py HIDDEN_DEVIATION": 0.5,
        },
    },
    "linear_model/lplr/test_layered.py": {
        "test_bins_share_the_failure_probability": {
            "linear_model/_lplr/_equations.py TARGETS_WEIGHTS[0]": 2,
            "linear_model/_lplr/_tree.py NOISE_WEIGHTS[0]": 2,
        },
    },
    "privacy/accounting/test_lattice.py": {
        "test_no_sum_can_wrap_around": {"privacy/_accounting/_lattice.py HEADROOM": 2},
        "test_the_width_of_the_rounding_is_paid_for_where_it_is_seen": {
            "privacy/_accounting/_lattice.py FINEST": 2,
            "privacy/_accounting/_lattice.py WIDTH": 0.5,
        },
        "test_what_cannot_be_had_is_refused": {"privacy/_accounting/_lattice.py COARSEST": 0.5},
    },
    "privacy/accounting/test_sharing.py": {
        "test_the_number_of_shares_is_the_smallest_that_is_proved": {
            "privacy/_accounting/_lattice.py SECURITY": 2,
        },
    },
    "privacy/amplification/test_amplified.py": {
        "test_no_amplification_without_delta_or_beyond_the_range": {
            "privacy/_amplification.py LARGEST_AMPLIFIED": 2,
        },
        "test_the_bound_less_the_margin": {"privacy/_amplification.py MARGIN": 0.5},
    },
    "privacy/amplification/test_sorter.py": {
        "test_a_ball_round_every_set": {"privacy/_amplification.py LARGEST_REACH": 0.5},
        "test_tails_have_the_error_that_is_allowed_up_to_the_smallest_double": {
            "privacy/_amplification.py RELATIVE": 0.5,
        },
        "test_the_errors_of_logarithms_are_in_the_bounds": {
            "privacy/_amplification.py ABSOLUTE": 0.5,
            "privacy/_amplification.py LARGEST_EXPONENT": 2,
        },
    },
    "privacy/noise/test_codebook.py": {
        "test_weights_lie_below_the_exponential_and_as_close_as_their_bits": {
            "_wire.py LARGEST_EPSILON": 0.5,
            "_wire.py WEIGHT_BITS": 0.5,
        },
    },
    "privacy/noise/test_codebook_law.py": {
        "test_a_simulated_report_costs_no_more_than_its_weights": {
            "privacy/_noise/_codebook_law.py UNIFORM_STEPS": 0.5,
        },
    },
    "privacy/noise/test_discrete_gaussian.py": {
        "test_the_error_of_doubles_is_an_eighth_of_the_margin": {
            "privacy/_noise/_lattice.py CLOSE": 0.5,
            "privacy/_noise/_lattice.py NO_DIFFERENCE": 0.5,
        },
        "test_the_law_of_a_draw": {"privacy/_noise/_lattice.py PROPOSAL_ROUNDS": 0.002},
        "test_words_name_buckets_in_proportion_to_their_weights": {
            "privacy/_noise/_lattice.py CHANCE_BITS": 0.5,
        },
    },
    "privacy/noise/test_lattice.py": {
        "test_released_noise_is_no_less_than_its_scale": {
            "privacy/_noise/_lattice.py GRANULARITY": 0.5,
        },
    },
    "privacy/session/test_groups.py": {
        "test_more_places_are_counted_than_noise_hides": {
            "privacy/_session/_base.py PLACES_SURE": 0.5,
        },
    },
    "privacy/session/test_rounding.py": {
        "test_more_records_are_refused_before_the_charge": {"privacy/_query.py MOST_RECORDS": 2},
        "test_noise_allows_for_the_order": {
            "privacy/_query.py RECORDS_IN_ROUNDING": 2,
            "privacy/_query.py REORDERED": 0.5,
            "privacy/_query.py ROUNDING": 0.99999952316,
        },
    },
    "privacy/test_sensitivity.py": {
        "-k ClassScoreQuery": {
            "linear_model/_generalized/_classes.py ClassScoreQuery.weights[residual]": 2,
        },
        "-k ErrorMoments": {"model_selection/_private_score.py ErrorMoments.sensitivity": 0.5},
        "-k FarRowsQuery": {"_estimation/_loop/_far_rows.py FarRowsQuery.sensitivity": 0.5},
        "-k FilledPlaces": {"privacy/_session/_groups.py FilledPlaces.sensitivity": 0.5},
        "-k FilledQuery": {"bandits/_off_policy.py FilledQuery.sensitivity": 0.5},
        "-k Gains": {"model_selection/_private_score.py Gains.sensitivity": 0.5},
        "-k LiftedMomentsQuery": {"_estimation/_reports.py LiftedMomentsQuery.sensitivity": 0.5},
        "-k LocationQuery": {"_estimation/_targets.py LocationQuery.sensitivity": 0.5},
        "-k MarginsQuery": {"_estimation/_loop/_rows.py SQUARES": 2},
        "-k MomentsQuery": {
            "_estimation/_moments.py MomentsQuery.sensitivity": 0.5,
            "_estimation/_moments.py SQUARE_WEIGHT": 2,
        },
        "-k NormalisationQuery": {
            "linear_model/_reweighted/_normalisation.py NormalisationQuery.sensitivity": 0.5,
        },
        "-k PersonClassScoreQuery": {
            "linear_model/_generalized/_classes.py Softmax.slope_weight": 2,
        },
        "-k PersonGramQuery": {"_estimation/_moments.py PersonGramQuery.sensitivity": 0.5},
        "-k ResidualGramQuery": {"_estimation/_moments.py ResidualGramQuery.sensitivity": 0.5},
        "-k ResidualMeanQuery": {
            "_estimation/_loop/_evidence.py ResidualMeanQuery.sensitivity": 0.5,
        },
        "-k ReweightedMomentsQuery": {
            "linear_model/_reweighted/_normalisation.py REWEIGHTED_SQUARE_WEIGHT": 2,
        },
        "-k ScoreQuery": {
            "_estimation/_links.py SLOPE_WEIGHT": 2,
            "_estimation/_loop/_score.py COUNT_WEIGHT": 2,
            "_estimation/_loop/_score.py CUT": 1.3333333333,
            "_estimation/_loop/_score.py FALL": 2,
            "_estimation/_loop/_score.py RESIDUAL_WEIGHT": 2,
            "_estimation/_loop/_score.py SIDE_WEIGHT": 2,
        },
        "-k SpreadOfCountsQuery": {"_estimation/_loop/_evidence.py SPREAD_WEIGHT": 2},
        "-k SpreadQuery": {"_estimation/_targets.py SpreadQuery.sensitivity": 0.5},
        "-k SquaredErrors": {"model_selection/_private_score.py SquaredErrors.sensitivity": 0.5},
        "-k StretchQuery": {"_estimation/_loop/_evidence.py STRETCH_WEIGHT": 2},
        "-k ValueQuery": {
            "bandits/_off_policy.py VALUE_WEIGHT": 2,
            "bandits/_off_policy.py ValueQuery.sensitivity": 0.5,
        },
    },
}
RESTS_ON = {
    name: (factor, f"tests/{file}{' ' if test.startswith('-k') else '::'}{test}")
    for file, tests in _RESTS_ON.items()
    for test, numbers in tests.items()
    for name, factor in numbers.items()
}
ACCURACY = "which share, length, limit or order is best: noise and intervals follow from it"
ROUNDING_ROOM = "far from what rounding and overflow can do"
WORK = "time and memory"
FORM = "the form and the size of files and messages, or a neutral value"
WORDS = "what is said"
SPLIT = "parts of a failure probability, which `split_failure` divides by their sum"
ANY = "a bound holds for each value, which makes it better or worse"
# By reason and file, the names in one text
_FREE = {
    ROUNDING_ROOM: {
        "_estimation/_cells.py": "ROUNDED_LENGTH ROUNDED_SQUARE",
        "_estimation/_conformal.py": "SHORTFALL_TAIL",
        "_estimation/_loop/_start.py": "LARGEST_OF_START LEAST_OF_START MOST_UNEVEN",
        "_estimation/_public_maps.py": "UNITS DIGITS",
        "_linalg.py": "SQRT2 TINY RELATIVE_ZERO HALF_DIGITS ROUNDED",
        "linear_model/_prediction_intervals.py": "OUTWARD",
        "privacy/_accounting/_cost.py": "_SQRT2",
    },
    WORK: {
        "_linalg.py": "BLOCK_ENTRIES",
        "privacy/_accounting/_lattice.py": "MOST_SHARES",
        "privacy/_noise/_lattice.py": "BUCKETS",
    },
    FORM: {
        "_estimation/_persons.py": "JointScores.length JointScores.fall",
        "_estimation/_public_maps.py": "UNIT_TARGET",
        "_estimation/_released.py": "Information.location",
        "_estimation/_reports.py": (
            "LiftedMomentsQuery.blocks ReportedFit.location ReportedFit.variance"
        ),
        "_wire.py": "WIRE_VERSION DEVICE_SEED_BYTES",
        "privacy/_ledger/_ledger.py": "LEDGER_VERSION MOST_STEPS",
        "privacy/_session/_groups.py": "FilledPlaces.width",
        "privacy/_session/_open.py": "ToCome.n",
        "protocol/_collector.py": "MOST_UNTOLD Reports._answers",
        "protocol/_device.py": "LARGEST_COUNT LARGEST_CODEBOOK LARGEST_ORDER",
        "protocol/_ledger.py": "MOST_ATTEMPTS",
        "protocol/_store.py": "MOST_FEATURES",
        "protocol/_sums.py": (
            "MOST_USERS LARGEST_RECORD LARGEST_SUMS RowsOnDevices._n_asked SumRows._numbers"
        ),
    },
    ACCURACY: {
        "_estimation/_cells.py": "MOSTLY WEAK_CELL",
        "_estimation/_conformal.py": "SCORES DEPTHS SHORTFALLS FALLBACK",
        "_estimation/_intervals.py": (
            "RANGE SHARPENINGS _gauss_legendre TIKHONOV_PATH NORMS CLEAR DISTANCES"
        ),
        "_estimation/_links.py": (
            "StepLink.low StepLink.high StepLink.farthest StepLink.far_length "
            "StepLink.least_effective_records StepLink.mean_effective_records BentLink.low "
            "BentLink.farthest BentLink.signal BentLink.far_length BentLink.degrees "
            "Logit.least_effective_records Log.least_effective_records Log.mean_effective_records"
        ),
        "_estimation/_loop/_evidence.py": "LEAST_STRETCH",
        "_estimation/_loop/_far_rows.py": "FAR_LENGTH SHORTER",
        "_estimation/_loop/_fit.py": "LEAST_SHARE",
        "_estimation/_loop/_line.py": (
            "EXPONENTS PRIOR LEAST_EXCESS LOCAL_CLASSES EVEN_ROWS TYPICAL"
        ),
        "_estimation/_loop/_rules.py": (
            "LEARNT MEAN_RECORDS DECLARED OWN_SLOPE OF_GRAM LAST_SHARE LAST_COUNT "
            "CLIPPED_SHARE SUBSET_RESOLUTIONS NORMED STRETCHED CERTIFIED ROUNDS STEPS "
            "STEP_RECORDS STEPS_RESOLUTION MARGINS_NOISE AFFORDABLE WIDEST_CLIP WIDEST_BY_NOISE "
            "ROWS_AND_CLIPS FEW_LIMIT NARROW_ROOM MEAN_ROOM NORMAL LIMITS"
        ),
        "_estimation/_loop/_score.py": "CUBE",
        "_estimation/_loop/_steps.py": "EFFECTS",
        "_estimation/_loop/_whitening.py": "LEAST_MASS",
        "_estimation/_moments.py": "PRIOR_VARIANCES INTERCEPT_PRIOR RESIDUAL_CLIP SAMPLING",
        "_estimation/_public_maps.py": "FEATURE_LENGTH FOLD",
        "_estimation/_reports.py": "EVEN_RECORDS",
        "_estimation/_targets.py": "UNIFORM_VARIANCE",
        "_wire.py": "TIE_ROUNDING",
        "bandits/_off_policy.py": "SQUARE_WEIGHT",
        "bandits/_ucb/_online_lin_ucb.py": "FIRST_PHASE",
        "bandits/_ucb/_running.py": "FEATURES_TO_CONSTANT BATCHES",
        "bandits/_ucb/_sums.py": (
            "WEIGHTS INTERCEPT_VARIANCES FRACTIONS MARK_SPACING LEAST_ROUNDS NOTHING "
            "Windows.doubt MOST_KEPT"
        ),
        "linear_model/_additive.py": (
            "USUAL_LEVEL ROUGHNESS PLANNED_POINTS REPORTS_FACTOR TYPICAL_KNOTS "
            "AdditiveRegressor._deviations"
        ),
        "linear_model/_by_steps.py": "SKEWED FitsBySteps._in_common",
        "linear_model/_generalized/_classes.py": "Softmax.least_effective_records",
        "linear_model/_generalized/_glm.py": "UNIT",
        "linear_model/_generalized/_logistic.py": "SURPRISES LabelScore.bounds LabelScore.top",
        "linear_model/_gradients/_improper_sgd.py": (
            "TIME_FACTOR CAP N_ITER REACH SETTLED ClippedGradientQuery.limit"
        ),
        "linear_model/_gradients/_niht.py": "SIZE_SHARE SCREENING_LIMIT NOISE_TO_SAMPLING",
        "linear_model/_instruments.py": "MOMENTS INSTRUMENT_LENGTH CLEAR_PRECISION",
        "linear_model/_lplr/_equations.py": "BIN_PATH STANDS_OUT",
        "linear_model/_lplr/_regressor.py": "RESOLUTION_FOR_TWO",
        "linear_model/_lplr/_tree.py": "ACTIVATION_FAILURE",
        "linear_model/_moments.py": "RESIDUAL_SHARE",
        "linear_model/_opening.py": "BELIEVED",
        "linear_model/_plan.py": (
            "IMAGINED IN_COMMON LEFT_BY_LINE REHEARSALS SIMULATED MOST_SIMULATED "
            "MOST_RECORDS SAME_SIZE"
        ),
        "linear_model/_prediction_intervals.py": "SIDES PredictionIntervals._deviations",
        "linear_model/_reweighted/_certificate.py": "RIDGES",
        "linear_model/_reweighted/_descent.py": "STEPS GROWTH FURTHER PRECISE MAX_ITER SMALL",
        "linear_model/_reweighted/_normalisation.py": (
            "EIGENVALUE_FLOOR FADE LEAST_FADE MOST_SHAPE_NOISE"
        ),
        "linear_model/_reweighted/_regressor.py": "NORMALISATION_SHARE",
        "model_selection/_private_score.py": "SCORE_CLIP",
        "model_selection/_private_search.py": "REFIT SCORED JUDGED SEARCH_CLIP",
        "privacy/_noise/_codebook_law.py": "TYPICAL_NORM",
        "privacy/_query.py": "SIDE_SHARE TOLD_ABOVE MOST_NOISE",
        "privacy/_session/_base.py": "PLACES_SHARE",
    },
    WORDS: {
        "privacy/_accounting/_callers.py": "LARGE_EPSILON",
    },
    ANY: {
        "_estimation/_loop/_law.py": "LEAST_ROBUST",
        "_estimation/_loop/_score.py": "SLOPE_WEIGHTS",
        "privacy/_accounting/_lattice.py": "LARGEST_ENTRY NOISE_ROOM SUMMED_USERS",
        "privacy/_amplification.py": (
            "SUM_CELLS TAIL_DEVIATIONS STEPS TILTS SHORTS SMALLEST_EPSILON"
        ),
        "privacy/_noise/_lattice.py": "LARGEST_VARIANCE",
    },
    SPLIT: {
        "_estimation/_intervals.py": "GRAM_PART TARGET_PARTS LEFT SHARP_EVENTS",
        "_estimation/_loop/_certified.py": "STEP_EVENTS",
        "linear_model/_gradients/_improper_sgd.py": "ERROR_WEIGHTS",
        "linear_model/_reweighted/_certificate.py": "CERTIFICATE_PARTS",
    },
}
FREE = {
    reason: {f"{file} {name}" for file, names in files.items() for name in names.split()}
    for reason, files in _FREE.items()
}


def changed(source: str, name: str, factor: float) -> str:
    """Source in which a number, or an entry as in "NAME[0]" or "NAME[0][1]", is so often as large.

    Raises
    ------
    LookupError
        If there is none.
    """
    name, _, entry = name.partition("[")
    *classes, name = name.split(".")
    body = ast.parse(source).body
    for kind in classes:
        body = next(n for n in body if isinstance(n, ast.ClassDef) and n.name == kind).body
    value = dict(assigned(body)).get(name)
    if value is None:
        raise LookupError(name)
    for key in entry.removesuffix("]").split("][") if entry else ():
        while isinstance(value, ast.Call):  # of an array
            value = value.args[0]
        if isinstance(value, ast.Dict):
            keys = [ast.unparse(one).strip("'") if one else "" for one in value.keys]
            value = value.values[keys.index(key)]
        else:
            value = value.elts[int(key)]
    text = ast.get_source_segment(source, value)
    whole = isinstance(value, ast.Constant) and isinstance(value.value, int)
    new = f"int({text} * {factor})" if whole else f"(({text}) * {factor})"
    lines = source.splitlines(keepends=True)
    first, last = value.lineno - 1, value.end_lineno - 1
    before = lines[first].encode()[: value.col_offset].decode()
    after = lines[last].encode()[value.end_col_offset :].decode()
    return "".join([*lines[:first], before + new + after, *lines[last + 1 :]])


def assigned(body) -> Iterator[tuple[str, ast.expr]]:
    """Names and values of what is assigned in a module or a class; not of fields with a type."""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def of_numbers(value: ast.expr) -> bool:
    """Whether a value is made of numbers, of names and of functions of them."""
    parts = list(ast.walk(value))
    number = any(isinstance(one, ast.Constant) and type(one.value) in (int, float) for one in parts)
    return number and all(isinstance(one, PARTS) for one in parts)


PARTS = (
    ast.Constant, ast.Name, ast.Attribute, ast.Load, ast.BinOp, ast.UnaryOp, ast.operator,
    ast.unaryop, ast.Call, ast.keyword, ast.Tuple, ast.List, ast.Dict,
)  # fmt: skip


def found() -> Iterator[str]:
    """Numbers of these rooms that have a name in a module or a class."""
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        if not file.startswith(ROOMS):
            continue
        tree = parsed(path)[1]
        bodies = [("", tree.body)]
        bodies += [(f"{n.name}.", n.body) for n in tree.body if isinstance(n, ast.ClassDef)]
        for prefix, body in bodies:
            for name, value in assigned(body):
                if name not in OTHERS and of_numbers(value):
                    yield f"{file} {prefix}{name}"


def fails(name: str, folder: Path) -> bool:
    """Whether the test of a number fails in a copy of the package where it is changed."""
    factor, test = RESTS_ON[name]
    copy = shutil.copytree(PACKAGE, folder / "skpriv", ignore=shutil.ignore_patterns("__pycache__"))
    file, _, place = name.partition(" ")
    path = copy / file
    path.write_text(changed(path.read_text("utf-8"), place, factor), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    for said in ("SKPRIV_TEST_INSTALLED", "PYTEST_XDIST_WORKER"):  # a worker ends without a status
        environment.pop(said, None)
    command = [shutil.which("pytest"), "-x", "-q", "-p", "no:cacheprovider", *test.split()]
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=-1).returncode == 1
