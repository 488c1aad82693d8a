"""What an estimator is made of: steps that learn unpaid, and predictions that mix rows."""

import sys
import warnings
from numbers import Number
from typing import Any

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer

from .._compat import safe_indexing
from ..exceptions import PrivacyError
from ..privacy import Accounted, learns_nothing

# Classes of scikit-learn, by the package of theirs, whose fitted objects map each
# row by itself. tests/model_selection/test_rowwise.py attacks each of them. Not here: NMF and other
# decompositions that iterate until the whole batch has converged, IterativeImputer, whose draws for
# a row depend on how many rows before it have gaps, LabelBinarizer, which asks how many values a
# batch has, and what nobody has attacked.
ROWWISE = {
    "sklearn.compose": "ColumnTransformer TransformedTargetRegressor make_column_selector",
    "sklearn.decomposition": "PCA TruncatedSVD",
    "sklearn.dummy": "DummyRegressor",
    "sklearn.ensemble": "BaggingRegressor ExtraTreesRegressor GradientBoostingRegressor "
    "HistGradientBoostingRegressor RandomForestRegressor StackingRegressor VotingRegressor "
    "_BinMapper",
    "sklearn.impute": "MissingIndicator SimpleImputer",
    "sklearn.kernel_ridge": "KernelRidge",
    "sklearn.linear_model": "ARDRegression BayesianRidge ElasticNet ElasticNetCV GammaRegressor "
    "HuberRegressor Lars Lasso LassoCV LassoLars LinearRegression LogisticRegression "
    "OrthogonalMatchingPursuit PoissonRegressor QuantileRegressor Ridge RidgeCV SGDRegressor "
    "TweedieRegressor",
    "sklearn.model_selection": "GridSearchCV RandomizedSearchCV",
    "sklearn.neighbors": "KNeighborsRegressor",
    "sklearn.neural_network": "MLPRegressor",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing": "Binarizer FunctionTransformer KBinsDiscretizer "
    "MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder OrdinalEncoder PolynomialFeatures "
    "PowerTransformer QuantileTransformer RobustScaler SplineTransformer StandardScaler",
    "sklearn.svm": "LinearSVR NuSVR SVR",
    "sklearn.tree": "DecisionTreeRegressor ExtraTreeRegressor",
}
# Where the types of fitted arrays, trees and numbers come from that are code of nobody else.
DATA = ("builtins", "numpy", "pandas", "polars", "pyarrow", "scipy", "sklearn", "skpriv")
TYPES = (bool, float, int, object, str)  # that stand in parameters such as ``dtype``


def check_covered(estimator: Any) -> None:
    """Refuse an estimator of which a part learns from the rows, and is neither public nor charged.

    Raises
    ------
    PrivacyError
        It names the step and the remedy.
    """
    while type(estimator) is Pipeline:
        for name, step in estimator.steps[:-1]:
            if not _is_public(step):
                raise PrivacyError(
                    f"the step {name!r}, a {type(step).__name__}, may learn from the rows, and "
                    "that is not charged: use BoundsScaler or TableEncoder, which take "
                    "public ranges and lists, or make the step before, from public data."
                )
        estimator = estimator.steps[-1][1]
    if not isinstance(estimator, Accounted):
        raise PrivacyError(
            f"a {type(estimator).__name__} is neither a private regressor of skpriv nor a Pipeline "
            "that ends in one: what it reads of the rows would not be charged. Search for the "
            "parameters of the private regressor itself."
        )


def _is_public(step):
    """Whether a step learns nothing from rows, and maps each row by itself."""
    if learns_nothing(step):
        return True
    if type(step) is Pipeline:
        return all(_is_public(inner) for _, inner in step.steps)
    if type(step) is ColumnTransformer:
        inner = [transformer for _, transformer, _ in step.transformers]
        return all(one == "drop" or _is_public(one) for one in (*inner, step.remainder))
    if type(step) is FunctionTransformer:
        plain = not (step.kw_args or step.inv_kw_args)
        return plain and all(is_elementwise(f) for f in (step.func, step.inverse_func))
    return type(step) in (Binarizer, Normalizer)


def is_rowwise(estimator: Any) -> bool:
    """Whether each prediction of a fitted estimator is known to depend on its own row alone.

    Notes
    -----
    An estimator is a graph of objects: its parameters, and what it learned. Its predictions are
    taken to be row by row where each estimator in this graph is one of skpriv, or exactly a class
    of `ROWWISE`, no object in it hides a method of its class, and no function in it comes from
    elsewhere than the elementwise functions of NumPy and SciPy. Steps that map each row by itself
    do so one after the other as well, which is all that the listed containers (pipelines,
    ensembles, searches) do with their parts. What is learned is looked at, and not the parameters
    alone, since the winner of a ``GridSearchCV`` may hold a function that only its grid names.

    The list is of classes, since a package is no promise: ``sklearn.decomposition.NMF`` begins
    each transformation at the mean of the batch. A subclass is another class.

    The premise is that the analyst is honest, but does not know how predictors compute. Whoever
    writes a predictor that copies rows elsewhere needs no score for it, and batches of one row do
    not stop them either.
    """
    return isinstance(estimator, BaseEstimator) and _is_known(estimator, set())


def is_elementwise(function: Any) -> bool:
    """Whether a function maps each entry of an array by itself; None is no function.

    That is known of NumPy's and SciPy's own functions of one array. It is not of a ufunc that was
    made of a Python function, which may remember, nor of one with a signature, such as the inverse
    of a matrix.
    """
    if function is None:
        return True
    if not isinstance(function, np.ufunc) or function.signature or function.nin != 1:
        return False
    name = function.__name__
    return any(getattr(room, name, None) is function for room in (np, special))


def _is_known(part, seen):
    """Whether a part of an estimator, and all parts of it, compute nothing across rows."""
    if part is None or isinstance(part, str | bytes | Number) or id(part) in seen:
        return True
    seen.add(id(part))
    if isinstance(part, dict):
        return all(_is_known(value, seen) for item in part.items() for value in item)
    if isinstance(part, list | tuple | set | frozenset):
        return all(_is_known(value, seen) for value in part)
    if isinstance(part, np.ndarray):
        return part.dtype != object or all(_is_known(value, seen) for value in part.flat)
    if isinstance(part, type):
        return part in TYPES or issubclass(part, np.generic)
    if isinstance(part, BaseEstimator) or _is_listed(type(part)):
        return _is_listed(type(part)) and _is_as_written(part, seen)
    room = type(part).__module__.partition(".")[0]
    if callable(part) and room not in ("scipy", "sklearn"):  # whose objects are losses and splines
        return is_elementwise(part)
    return room in DATA


def _is_listed(kind: type) -> bool:
    """Whether a class is one of skpriv, or one of the list, and not one that has its name."""
    room, _, rest = kind.__module__.partition(".")
    names = ROWWISE.get(f"{room}.{rest.partition('.')[0]}", "").split()
    found = getattr(sys.modules.get(kind.__module__), kind.__name__, None)
    return found is kind and (room == "skpriv" or kind.__name__ in names)


def _is_as_written(part, seen):
    """Whether no attribute hides a method of the class, and all attributes are known."""
    attributes = vars(part)
    if any(callable(getattr(type(part), name, None)) for name in attributes):
        return False
    if not all(is_elementwise(attributes.get(name)) for name in ("func", "inverse_func")):
        return False
    if attributes.get("kw_args") or attributes.get("inv_kw_args"):
        return False  # ``where`` leaves entries that are not computed, for example
    return all(_is_known(value, seen) for value in attributes.values())


def predicted(estimator: Any, rows: Any) -> Any:
    """Predictions for rows: of one row at a time, where a prediction may depend on other rows.

    Otherwise one record could move the errors of all, and a sum of them by far more than the one
    error that is counted. No batch of more rows is safe for a predictor that is not known: its
    predictions for public batches would prove nothing about private ones.

    Raises
    ------
    ValueError
        If there is not one prediction for each row. One record would count twice.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a predictor may tell of a value that it has not seen
        count = rows.shape[0] if hasattr(rows, "shape") else len(rows)
        # One cell of a list of lists decides how all others of a batch are read
        if hasattr(rows, "shape") and is_rowwise(estimator):
            return _one_each(estimator.predict(rows), count)
        found = np.empty(count)
        for i in range(count):
            row = rows[i : i + 1] if isinstance(rows, np.ndarray) else safe_indexing(rows, [i])
            found[i : i + 1] = _one_each(estimator.predict(row), 1)
        return found


def _one_each(values, count):
    values = np.asarray(values, dtype=float)
    if values.shape not in ((count,), (count, 1)):
        raise ValueError("an estimator must make one prediction for each row.")
    return values.reshape(count)
