"""Fixed effects of persons: slopes from differences within persons, and what they do not tell."""

from dataclasses import replace

from ..._estimation._persons import WithinPersons, spread_within

WITHIN = "slopes within persons, of clipped rows and targets"
CONSTANT = (
    "constant within persons, or no more variable there than noise hides; effects of persons leave "
    "no such slope"
)


def check_effects(model, groups, weights=None):
    """Refuse what has no differences within persons; nothing is charged yet."""
    if groups is None:
        raise ValueError(
            "effects='person' needs groups: pass the person of each row to fit, and "
            "max_rows_per_group, the number of rows of a person that are used at most."
        )
    if groups.largest < 2:
        raise ValueError(
            "effects='person' needs max_rows_per_group of at least 2: one row of a person has no "
            "difference from its mean."
        )
    if getattr(model, "calibration_size", None) is not None:
        raise ValueError(
            "calibration_size cannot be used with effects='person': the level of a new person is "
            "not known, and with it no interval for a new target."
        )
    if (weights or {}).get("sample_weight") is not None:
        raise ValueError("effects='person' cannot be used with sample_weight.")


def within_bounds(bounds_y, largest):
    """Public range of the differences of targets."""
    reach = (bounds_y[1] - bounds_y[0]) * spread_within(largest)
    return (-reach, reach)


def within_columns(rows, largest):
    """Map of differences of rows that were clipped to ranges: to ranges about 0, as wide."""
    reach = (rows.high - rows.low) * spread_within(largest)
    return replace(rows, low=-reach, high=reach, fit_intercept=False)


def within_maps(model, groups, rows, target, weights):
    """Maps of differences within persons, which are what will be asked about."""
    check_effects(model, groups, weights)
    groups.change = WithinPersons(rows.clipped, target.bounds_y)
    bounds = within_bounds(target.bounds_y, groups.largest)
    if rows.low is not None:
        return within_columns(rows, groups.largest), replace(
            target, bounds_y=bounds, fit_intercept=False
        )
    norm = 2.0 * rows.data_norm * spread_within(groups.largest)
    rows = replace(rows, data_norm=norm, fit_intercept=False)
    return rows, replace(target, bounds_y=bounds, fit_intercept=False)


def named_constants(law):
    """The law of slopes within persons, with a reason of its own for those not resolved."""
    reason = "" if law.resolved[:-1].all() else CONSTANT
    return replace(law, estimand=WITHIN, reason=reason, factors=None)


def refuse_level(model):
    """Refuse intervals for levels, of which fixed effects leave none."""
    if getattr(model, "effects", None) is not None:
        raise ValueError(
            "effects='person' tells no level, and so has no interval for a row: "
            "skpriv.inspection.inference(model) has intervals of slopes, and of differences of two "
            "rows by its contrast(weights)."
        )
