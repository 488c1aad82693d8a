"""What a report does not cover is said, and what nobody has paid for is refused."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_backend
from registry.refusals import charged, uncharged
from scipy.sparse import csr_matrix
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer, FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler,
)  # fmt: skip

from skpriv.exceptions import PrivacyError
from skpriv.inspection import inference, model_card
from skpriv.linear_model import IHTRegressor, SSPRegressor
from skpriv.model_selection import PrivateSearchCV
from skpriv.model_selection._private_score import check_covered
from skpriv.preprocessing import BoundsScaler

RNG = np.random.RandomState(0)
X = RNG.uniform(-0.5, 0.5, size=(300, 2))
Y = X[:, 0]


def model(**settings):
    settings = {"epsilon": 1.0, "random_state": 0, **settings}
    return SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), **settings)


def search(estimator, grid):
    return PrivateSearchCV(estimator, grid, epsilon=1.0, delta=1e-6, random_state=0)


@pytest.mark.parametrize(
    "meta, found",
    [
        (BaggingRegressor(model(), 2, n_jobs=2), lambda fit: fit.estimators_[0]),
        (
            StackingRegressor([("a", model())], final_estimator=Ridge(), cv=2),
            lambda fit: fit.estimators_[0],
        ),
        (
            TransformedTargetRegressor(model(), transformer=StandardScaler()),
            lambda fit: fit.regressor_,
        ),
        (GridSearchCV(model(), {"data_norm": [0.5, 1.0]}, cv=2), lambda fit: fit.best_estimator_),
    ],
    ids=["bagging in threads", "stacking", "target", "grid search"],
)
def test_a_report_says_what_it_does_not_cover(meta, found):
    with parallel_backend("threading"):
        inner = found(meta.fit(X, Y))
    name = type(meta).__name__
    said = inner.privacy_report_.not_covered
    assert len(said) == 1
    assert any(word in said[0] for word in (name, "sklearn.ensemble"))
    for text in (
        str(inner.privacy_report_), inner.privacy_report_._repr_html_(), model_card(inner),
        str(inference(inner)),
    ):  # fmt: skip
        assert "neither counted nor protected" in " ".join(text.split())


def test_a_fit_by_itself_or_behind_public_ranges_is_covered():
    class Own(SSPRegressor):
        def fit(self, X, y, **options):
            return super().fit(X, y, **options)

    for fitted in (
        model().fit(X, Y),
        Own(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, Y),
        make_pipeline(BoundsScaler((-1, 1)), model()).fit(X, Y)[-1],
        search(model(), {"data_norm": [0.5, 1.0]}).fit(X, Y).best_estimator_,
    ):
        assert fitted.privacy_report_.not_covered == []


@pytest.mark.parametrize(
    "estimator, grid",
    [
        (make_pipeline(StandardScaler(), model()), {}),
        (make_pipeline(FunctionTransformer(lambda X: X - X.mean(0)), model()), {}),
        (make_pipeline(ColumnTransformer([("a", StandardScaler(), [0])]), model()), {}),
        (make_pipeline(ColumnTransformer([("a", BoundsScaler(), lambda X: [0])]), model()), {}),
        (make_pipeline("passthrough", model()), {"passthrough": [StandardScaler()]}),
        (BaggingRegressor(model()), {}),
        (make_pipeline(BoundsScaler((-1, 1)), BaggingRegressor(model())), {}),
    ],
    ids=["scaler", "function", "columns", "chosen", "parameter", "bagging", "bagging behind"],
)
def test_a_search_refuses_what_is_neither_public_nor_charged(estimator, grid):
    with uncharged("paid|charged", PrivacyError):
        search(estimator, grid).fit(X, Y)


def test_how_many_entries_of_sparse_rows_are_zero_is_not_told():
    columns = ColumnTransformer([("a", Normalizer(), [0])], remainder=Binarizer())
    model = IHTRegressor(data_max=1.0, bounds_y=(-1, 1), n_nonzero_coefs=1)
    pipeline = Pipeline([("all", make_pipeline(columns)), ("model", model)])
    for rows in (csr_matrix(X), pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0))):
        with uncharged("sparse_threshold=0", PrivacyError):
            search(pipeline, {}).fit(rows, Y)
    columns.sparse_threshold = 0
    assert not search(pipeline, {}).fit(csr_matrix(X), Y).best_estimator_[0][0].sparse_output_


def test_dense_rows_may_have_any_names_of_categories():
    pl = pytest.importorskip("polars")
    pipeline = make_pipeline(ColumnTransformer([("a", Normalizer(), [0])]), model())
    named = pl.DataFrame({"kind": ["Sparse"]}, schema={"kind": pl.Enum(["Sparse"])})
    for rows in (named, pd.Series(X[:, 0])):
        check_covered(pipeline, rows)


@pytest.mark.parametrize("step", [Normalizer(), Binarizer()])
@pytest.mark.parametrize("value", ["HIV positive", np.nan])
def test_a_step_of_scikit_learn_tells_no_value(step, value):
    bad = X.astype(object)
    bad[::2] = value  # some of them in the part that fits candidates
    with charged():
        search(make_pipeline(step, model()), {}).fit(bad, Y)


def test_a_search_takes_steps_that_learn_nothing():
    steps = (
        BoundsScaler((-1, 1)), Normalizer(), "passthrough",
        ColumnTransformer([("a", BoundsScaler((-1, 1)), [0])], remainder="passthrough"),
    )  # fmt: skip
    pipeline = make_pipeline(*steps, model())
    found = search(pipeline, {f"{pipeline.steps[-1][0]}__data_norm": [0.5, 1.0]})
    assert found.fit(X, Y).best_params_


def test_a_search_takes_public_lists_and_no_value_stops_it():
    """Nor a cell that cannot be compared: it is one sentence about a value, after the charge."""
    lists = {"categories": 2 * [[-1.0, 1.0]], "sparse_output": False}
    step = OneHotEncoder(handle_unknown="ignore", **lists)
    bad = X.astype(object)
    bad[::2] = "HIV positive"
    assert search(make_pipeline(step, model()), {}).fit(bad, Y).best_params_ == {}
    bad[0, 0] = []
    with charged():
        search(make_pipeline(step, model()), {}).fit(bad, Y)
    with uncharged("paid|charged", PrivacyError):
        search(make_pipeline(OneHotEncoder(**lists), model()), {}).fit(X, Y)
