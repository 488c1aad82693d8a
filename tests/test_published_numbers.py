"""Tables that other programs printed, at epsilon=inf: Stata's, as linearmodels and statsmodels ship
them, to the digits that were printed. The data are theirs, too.
"""

from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skpriv.inspection import inference
from skpriv.linear_model import IVRegressor, LinearRegression, LogisticRegression, PoissonRegressor

linearmodels = pytest.importorskip("linearmodels")
stata_iv = pytest.importorskip("linearmodels.tests.iv.results.read_stata_results")
stata_panel = pytest.importorskip("linearmodels.tests.panel.results.parse_stata_results")
recorded = pytest.importorskip("statsmodels.genmod.tests.results.results_glm")
TABLES = Path(linearmodels.__file__).parent / "tests"
REGRESSORS = ["x1", "x2", "x3", "x4", "x5"]


def around(values, margin=1e-6):
    """Ranges that clip nothing."""
    values = np.asarray(values, dtype=float)
    return np.column_stack([values.min(axis=0) - margin, values.max(axis=0) + margin])


def two_stage_table(key):
    """What Stata printed of one regression: all that the file has takes seconds to read."""
    blocks = stata_iv.parse_file(TABLES / "iv/results/stata-iv-simulated-results.txt")
    found = stata_iv.parse_block(blocks[key])
    return stata_iv.finalize(found.params, found.stats, found.cov, found.weight_mat)


@pytest.mark.parametrize("n_endogenous, n_exogenous, n_instruments", [
    (1, 0, 1), (1, 0, 2), (2, 0, 2), (1, 3, 1), (1, 3, 2), (2, 3, 2),
])  # fmt: skip
def test_two_stage_least_squares_of_stata(n_endogenous, n_exogenous, n_instruments):
    """Coefficients, and robust errors times Stata's own root of n over the degrees of freedom."""
    data = pd.read_stata(TABLES / "iv/results/simulated-data.dta")
    key = (
        f"2sls-num_endog_{n_endogenous}-num_exog_{n_exogenous}-num_instr_{n_instruments}-"
        "weighted_False-vce(robust)-"
    )
    table = two_stage_table(key)
    names = REGRESSORS[:n_endogenous] + REGRESSORS[2 : 2 + n_exogenous]
    columns = names + ["z1", "z2"][:n_instruments]
    X, y = data[columns].to_numpy(), data.y_robust.to_numpy()
    model = IVRegressor(
        epsilon=inf, instruments=range(len(names), len(columns)), endogenous=range(n_endogenous),
        bounds_X=around(X), bounds_y=tuple(around(y[:, None])[0]),
    ).fit(X, y)  # fmt: skip
    found, expected = inference(model), table.params[names].to_numpy()
    errors = expected / table.tstats[names].to_numpy()
    np.testing.assert_allclose(found.estimate[: len(names)], expected, atol=1e-8 * errors.min())
    unbiased = np.sqrt(len(y) / (len(y) - len(names) - 1))
    np.testing.assert_allclose(found.std_error[: len(names)] / errors, unbiased, rtol=1e-4)


def test_fixed_effects_of_stata():
    data = pd.read_stata(TABLES / "panel/results/simulated-panel.dta")
    expected = stata_panel.data()["fixed_effect-robust--"].params.param
    X, y = data[REGRESSORS].to_numpy(), data.y.to_numpy()
    model = LinearRegression(
        epsilon=inf, bounds_X=around(X), bounds_y=tuple(around(y[:, None])[0]), effects="person",
        max_rows_per_group=int(data.groupby("firm").size().max()),
    )  # fmt: skip
    model.fit(X, y, groups=data.firm.to_numpy())
    np.testing.assert_allclose(model.coef_, expected[REGRESSORS], rtol=1e-5)


def test_logistic_regression_of_stata():
    """Low birth weight, of Hosmer and Lemeshow."""
    table = recorded.Lbw()
    X, y = np.asarray(table.exog)[:, :-1], np.asarray(table.endog).astype(int)
    model = LogisticRegression(classes=(0, 1), epsilon=inf, bounds_X=around(X)).fit(X, y)
    found = np.append(model.coef_[0], model.intercept_)
    np.testing.assert_allclose(found, table.params, rtol=1e-5, atol=1e-8)


def test_poisson_regression_of_stata():
    """Executions in the states, of Gill."""
    table = recorded.Cpunish()
    data = pytest.importorskip("statsmodels.datasets").cpunish.load_pandas()
    X, y = data.exog.to_numpy().copy(), data.endog.to_numpy()
    X[:, 3] = np.log(X[:, 3])
    model = PoissonRegressor(epsilon=inf, bounds_X=around(X), bounds_y=(0.0, 99.0)).fit(X, y)
    found = np.append(model.coef_, model.intercept_)
    np.testing.assert_allclose(found, table.params, rtol=1e-5, atol=1e-7)
