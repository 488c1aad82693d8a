"""The estimand is declared before the fit: the budget follows it, and the table answers for it."""

import numpy as np
import pytest
from sklearn.base import clone

from skpriv import BudgetAccountant
from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

RANGES = {"epsilon": 1.0, "bounds_X": (-1, 1)}
MODELS = [
    (LinearRegression, {**RANGES, "bounds_y": (-3, 9)}, "least_squares"),
    (LogisticRegression, {**RANGES, "classes": (0, 1)}, "likelihood"),
    (PoissonRegressor, {**RANGES, "bounds_y": (0, 30)}, "likelihood"),
]
NAMES = [Estimator.__name__ for Estimator, _, _ in MODELS]


def rows(Estimator, n=40_000):
    """Three features, and a target whose errors are skewed."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-1, 1, (n, 3))
    eta = X @ [1.0, -0.5, 0.0]
    if Estimator is LinearRegression:
        return X, eta + rng.exponential(0.5, n)
    if Estimator is PoissonRegressor:
        return X, rng.poisson(np.exp(0.5 + eta))
    return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-eta))).astype(int)


def fitted(Estimator, settings, **more):
    return Estimator(**{**settings, "random_state": 0, **more}).fit(*rows(Estimator))


@pytest.mark.parametrize("Estimator, settings, textbook", MODELS, ids=NAMES)
def test_the_table_answers_for_what_was_declared(Estimator, settings, textbook):
    plain = fitted(Estimator, settings)
    declared = fitted(Estimator, settings, estimand=textbook)
    assert inference(plain).estimand.startswith("fitted: ")
    assert inference(declared).estimand.startswith(f"{textbook}: ")
    assert clone(declared).estimand == textbook

    def error(model, estimand):
        """Deviation of what privacy adds."""
        found = inference(model, estimand=estimand)
        return np.median(np.sqrt(found.privacy_share) * found.std_error)

    # Of the budget the equation of the textbook line has .4 in place of .04, or .42 of a line
    assert error(declared, textbook) < 0.8 * error(plain, textbook)
    assert error(plain, "fitted") < error(declared, "fitted") < 2.5 * error(plain, "fitted")


@pytest.mark.parametrize("privacy", ["aggregate", "shuffle", "none"])
@pytest.mark.parametrize("Estimator, settings, textbook", MODELS, ids=NAMES)
def test_it_holds_in_other_models_of_privacy(Estimator, settings, textbook, privacy):
    model = fitted(Estimator, settings, estimand=textbook, privacy=privacy)
    assert sum(row.share for row in model.privacy_report_.rows) == pytest.approx(1.0)
    found = inference(model)
    # The line of reports by a codebook is that of least squares, whatever was declared
    assert found.estimand.startswith((f"{textbook}: ", "least-squares line"))
    # Shuffled reports are too few for the equation of counts
    assert np.isfinite(found.std_error).all() or privacy == "shuffle"


def test_of_several_classes_there_is_no_curve_of_maximum_likelihood():
    model = LogisticRegression(**RANGES, classes=(0, 1, 2), estimand="likelihood")
    with BudgetAccountant(1.0, 1e-5) as accountant:
        with pytest.raises(ValueError, match="estimand='likelihood'.*two classes"):
            model.fit(*rows(LogisticRegression))
        assert not accountant.charges
    with pytest.raises(ValueError, match="Got 'least_squares'"):
        model.set_params(estimand="least_squares").fit(*rows(LogisticRegression))
