"""What every estimator promises: scikit-learn's checks, tags, charges, errors, no rows kept."""

import gc
import pickle
import warnings
import weakref
from contextlib import nullcontext
from inspect import signature
from math import inf

import numpy as np
import pytest
from registry.estimators import (
    ESTIMATORS, NOISY, PAIRS, SETTINGS, VARIANTS, bounded as make, curve, targets,
)  # fmt: skip
from registry.refusals import uncharged
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import skpriv
from skpriv import Budget, BudgetAccountant
from skpriv.exceptions import BudgetExceeded, InvalidValues, PrivacyError, PrivacyWarning
from skpriv.extend import COMPUTED_SHAPES
from skpriv.linear_model import (
    AdditiveRegressor, ImproperSGDRegressor, LayeredRegressor, LinearRegression,
    LogisticRegression, PoissonRegressor, ReweightedRegressor, SSPRegressor,
)  # fmt: skip
from skpriv.preprocessing import BoundsScaler
from skpriv.privacy import Cost, capabilities

# Parameters that fix the shape of what is fitted, where its default depends on the public n.
SHAPES = {
    LayeredRegressor: {"n_levels": 1, "n_scales": 3},
    LinearRegression: {"epsilon": 1000.0, "channel": "gaussian"},
    AdditiveRegressor: {"epsilon": 200.0, "knots": 3},
}
# Users who answer alone send indices of codebooks by default, where there is another channel.
PURE = {Estimator for Estimator in ESTIMATORS if "channel" in signature(Estimator).parameters}


def _name(value):
    return getattr(value, "__name__", value)


SECURE = (LinearRegression, "central")
PROVED = [(Estimator, "shuffle") for Estimator in (LogisticRegression, PoissonRegressor)]
every_pair = pytest.mark.parametrize(("Estimator", "privacy"), PAIRS, ids=_name)
noisy_pair = pytest.mark.parametrize(("Estimator", "privacy"), NOISY, ids=_name)
every_class = pytest.mark.parametrize("Estimator", ESTIMATORS, ids=_name)
local_pair = pytest.mark.parametrize(
    ("Estimator", "privacy"), [pair for pair in PAIRS if capabilities(pair[1]).reports], ids=_name
)


def _paid(cost):
    """What adds up: mu^2 (or 2 rho), or epsilon, and that and delta of amplified reports."""
    if cost.pure:  # codebooks, where no accountant asks for Gaussian noise
        assert cost == Cost.from_epsilon(cost.pure)
        return np.array([0.0, cost.pure, 0.0])
    return np.array([2.0 * cost.amount("zcdp"), cost.approximate, cost.delta])


def _accountant(Estimator, privacy, epsilon, delta):
    """An accountant of the currency in which the fit is cheapest; shuffled ones have a part."""
    return BudgetAccountant(
        epsilon,
        delta,
        currency=Estimator.fit_currency,
        set_aside=(epsilon, delta) if privacy == "shuffle" else None,
    )


def _price(Estimator, privacy, budget, accountant=True):
    """What a fit pays; amplification has no tighter currency than (epsilon, delta).

    Users send pure reports by default, but Gaussian ones where an accountant adds those up.
    """
    if privacy == "shuffle":
        return _paid(Cost.from_budget(budget))
    if privacy == "local" and Estimator in PURE and not accountant:
        return _paid(Cost.from_epsilon(budget.epsilon))
    zcdp = Estimator.fit_currency == "zcdp"
    return _paid(Cost.from_rho(budget.rho) if zcdp else Cost.from_mu(budget.mu))


def _data(Estimator, n=400, d=3, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, d))
    y = X @ np.linspace(1.0, -1.0, d) + rng.uniform(-0.1, 0.1, size=n)
    return X, targets(Estimator, y)


# Classes are public, so that nothing is learned from labels, and nothing is said of them.
NOT_PROMISED = {
    "check_classifiers_classes": "classes are public, and not those of y",
    "check_classifiers_regression_target": "a label that is no class is told by nothing",
    "check_classifier_not_supporting_multiclass": "a label that is no class is told by nothing",
    "check_supervised_y_no_nan": "a label that is no class is told by nothing",
}


def checked(estimator, always=True):
    """A parameter of the checks: those that are not made always are slow tests."""
    marks = () if always else pytest.mark.slow
    return pytest.param(estimator, marks=marks, id=type(estimator).__name__)


# How a model draws its noise meets nothing that these checks look at: in every run one estimator is
# checked in all models but the shuffled one, whose proof takes long, and all others with a curator.
CHECKED = [
    checked(
        make(Estimator, privacy=privacy, random_state=random_state),
        privacy == "central"
        or (Estimator is SSPRegressor and privacy != "shuffle")
        or (privacy == "none" and is_classifier(Estimator())),  # where one label can be learned
    )
    for Estimator, privacy in PAIRS
    for random_state in ((None, 0) if (Estimator, privacy) == SECURE else (0,))
] + [
    checked(make(LayeredRegressor, privacy="central", random_state=0, variant="paper")),
    checked(make(LayeredRegressor, privacy="local", random_state=0, variant="paper"), False),
    checked(make(ReweightedRegressor, solver="sgd", link="logit", random_state=0)),
    checked(make(ReweightedRegressor, solver="sgd", privacy="local", random_state=0), False),
    checked(BoundsScaler(bounds=(0, 2))),
]
ONE_LABEL = {"check_classifiers_one_label": "of ten records with one label noise decides"}


@pytest.mark.parametrize("estimator", CHECKED)
def test_scikit_learn_checks(estimator):
    """All in one test: a test for each of fifty checks costs more than most of the checks."""
    expected = COMPUTED_SHAPES
    if is_classifier(estimator):
        expected = (
            COMPUTED_SHAPES | NOT_PROMISED | (ONE_LABEL if estimator.privacy != "none" else {})
        )
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    passed = {found["check_name"] for found in results if found["status"] == "passed"}
    assert len(passed) > 35 and not passed & set(expected) - set(ONE_LABEL)


@every_pair
def test_tags_are_honest(Estimator, privacy):
    X, y = _data(Estimator)
    for epsilon, random_state in ((1.0, None), (1.0, 0), (inf, None)):
        model = make(Estimator, privacy=privacy, random_state=random_state, epsilon=epsilon)
        tags = get_tags(model)
        noisy = privacy != "none" and epsilon != inf
        assert tags.non_deterministic == (noisy and random_state is None)
        assert (tags.regressor_tags or tags.classifier_tags).poor_score
        if tags.non_deterministic:  # what seeds and an infinite epsilon decide is tested below
            first, second = (curve(clone(model).fit(X, y), X) for _ in range(2))
            assert not np.array_equal(first, second)


@every_pair
def test_a_seed_decides_the_noise(Estimator, privacy, global_random_seed):
    X, y = _data(Estimator)

    def predict(seed):
        return curve(make(Estimator, privacy=privacy, random_state=seed).fit(X, y), X)

    first = predict(global_random_seed)
    assert np.array_equal(first, predict(np.random.RandomState(global_random_seed)))
    # ImproperSGDRegressor holds out a random part of the rows, with and without privacy.
    exact = privacy == "none" and Estimator is not ImproperSGDRegressor
    assert np.array_equal(first, predict(global_random_seed + 1)) == exact


def _sizes(value, seen):
    """Sizes of all arrays and containers that can be reached from a value."""
    if id(value) in seen or isinstance(value, str | bytes | type):
        return
    seen[id(value)] = value
    if isinstance(value, np.ndarray):
        yield value.size
        yield from _sizes(value.base, seen)
    elif isinstance(value, dict):
        yield len(value)
        for item in (*value.keys(), *value.values()):
            yield from _sizes(item, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        yield len(value)
        for item in value:
            yield from _sizes(item, seen)
    elif hasattr(value, "__dict__"):
        yield from _sizes(vars(value), seen)


@pytest.mark.parametrize(
    ("Estimator", "privacy", "random_state"),
    # Secure noise has no state that could be kept: of one estimator in every model. Shuffled fits
    # of scores differ from those of a curator by a proof alone, which takes a second.
    [(*pair, 0) for pair in PAIRS if pair not in PROVED]
    + [(*pair, None) for pair in PAIRS if pair[0] is SECURE[0]],
    ids=_name,
)
def test_nothing_that_is_kept_grows_with_n_or_refers_to_the_rows(Estimator, privacy, random_state):
    gc.freeze()  # what was there before holds no rows of this test, and need not be looked through
    found, steps = [], []
    for n in (4001, 6001):  # by which public rules decide alike what each step of a fit asks
        X, y = _data(Estimator, n)
        references, reachable = (weakref.ref(X), weakref.ref(y)), {}
        estimator = make(Estimator, privacy=privacy, random_state=random_state)
        estimator.set_params(**SHAPES.get(Estimator, {})).fit(X, y)
        found.append(sorted(_sizes(estimator, reachable)))
        arrays = [value for value in reachable.values() if isinstance(value, np.ndarray)]
        assert arrays
        assert not any(np.shares_memory(array, data) for array in arrays for data in (X, y))
        assert len(pickle.dumps(estimator)) < 20_000
        steps.append(len(estimator.privacy_report_.rows))
        del X, y
        gc.collect()
        assert [reference() for reference in references] == [None, None]
    # The number of steps follows from the public number of records, and falls with it.
    assert found[0] == found[1] if steps[0] == steps[1] else found[0][-1] >= found[1][-1]
    assert found[0][-1] < 100


@every_class
def test_a_fit_leaves_nothing_of_an_exact_one_before(Estimator):
    """A file of the model would have it, and tell of the rows."""
    X, y = _data(Estimator, 300, 4)
    for settings in VARIANTS[Estimator]:
        model = make(Estimator, privacy="none").fit(X, y)
        fresh = make(Estimator, **settings, random_state=0).fit(X, y)
        model.set_params(**fresh.get_params(deep=False)).fit(X, y)
        assert vars(model).keys() == vars(fresh).keys()


@noisy_pair
@pytest.mark.parametrize(
    "budget, counted", [(Budget(0.1, 1e-6), False), (Budget(20.0, 1e-3), True)]
)
def test_the_report_adds_up_to_the_budget_and_to_the_charge(Estimator, privacy, budget, counted):
    """With an accountant users send Gaussian reports, and without one pure ones."""
    X, y = _data(Estimator)
    settings = {"epsilon": budget.epsilon, "delta": budget.delta, "random_state": 0}
    estimator = make(Estimator, privacy=privacy, **settings)
    accountant = _accountant(Estimator, privacy, 2.0 * budget.epsilon, budget.delta)
    with accountant if counted else nullcontext():
        report = estimator.fit(X, y).privacy_report_
    if counted:
        (charge,) = accountant.charges
        assert charge.name == Estimator.__name__
        assert _paid(charge.cost) == pytest.approx(_paid(report.total), rel=1e-9)
        assert accountant.spent.epsilon == pytest.approx(budget.epsilon, rel=1e-9)
    # Which reports additive models ask for follows from public numbers
    gaussian = counted or (Estimator is AdditiveRegressor and not report.total.pure)
    costs = [_paid(row.cost) for row in report.rows]
    price = _price(Estimator, privacy, budget, accountant=gaussian)
    assert _paid(report.total) == pytest.approx(price, rel=1e-9)
    records = np.array([row.records for row in report.rows])
    shares = np.array([row.share for row in report.rows])
    # Queries on the same records add up, and disjoint parts may spend all
    if capabilities(privacy).same_rows:
        parts = np.unique(records)
        assert len(parts) == 1 or parts.sum() == len(X)
        for part in parts:
            together = sum(cost for cost, n in zip(costs, records, strict=True) if n == part)
            assert together == pytest.approx(price, rel=1e-9)
            assert shares[records == part].sum() == pytest.approx(1.0, rel=1e-12)
    else:
        assert np.max(costs, axis=0) == pytest.approx(price, rel=1e-9)
        assert shares.sum() == pytest.approx(1.0, rel=1e-12)
        assert records.sum() <= len(X)


@every_class
def test_no_finite_budget_pays_for_exact_answers(Estimator):
    X, y = _data(Estimator)
    with BudgetAccountant(100.0, 1e-2) as accountant:
        for settings in ({"privacy": "none"}, {"epsilon": inf}):
            with pytest.raises(BudgetExceeded, match="infinite epsilon"):
                make(Estimator, **settings).fit(X, y)
    assert accountant.charges == []


def _with(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


@every_pair
def test_an_infinite_epsilon_is_no_privacy(Estimator, privacy):
    """In everything: coefficients, intervals, the report; and nothing is refused."""
    X, y = _data(Estimator)
    exact = make(Estimator, privacy="none").fit(X, y)
    found = make(Estimator, privacy=privacy, epsilon=inf).fit(X, y)
    assert np.array_equal(curve(found, X), curve(exact, X))
    if Estimator.interval_claims:
        intervals = [est.confidence_interval(X[:5]) for est in (exact, found)]
        assert np.array_equal(*intervals)
    assert found.privacy_report_.privacy == "none"
    assert [row.share for row in found.privacy_report_.rows] == [
        row.share for row in exact.privacy_report_.rows
    ]


BAD_SHAPES = {
    "lengths": (lambda X, y: (X, y[1:]), "inconsistent numbers of samples"),
    "vector": (lambda X, y: (y, y), "Expected 2D array"),
    "no target": (lambda X, y: (X, None), "requires y"),
    "complex": (lambda X, y: (X + 0j, y), "Complex data not supported"),
    "no column": (lambda X, y: (X[:, :0], y), "0 feature"),
}
BAD_VALUES = {
    "NaN in X": lambda X, y: (_with(X, (3, 1), np.nan), y),
    "infinity in X": lambda X, y: (_with(X, (3, 1), inf), y),
    "NaN in y": lambda X, y: (X, _with(y, 3, np.nan)),
    "infinity in y": lambda X, y: (X, _with(y, 3, -inf)),
    "text in X": lambda X, y: (_with(X.astype(object), (3, 1), "secret"), y),
    "text in y": lambda X, y: (X, _with(y.astype(object), 3, "secret")),
    "complex in X": lambda X, y: (_with(X.astype(object), (3, 1), 1j), y),
    "ragged": lambda X, y: ([*X[:-1].tolist(), [0.5]], y),
}
READ_BY_ALL = {"NaN in X", "infinity in y", "text in X"}
BAD_SETTINGS = [
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": np.nan}, "epsilon"),
    ({"delta": 0.0}, "delta=0.0 .* pass delta in"),
    ({"delta": 1.0}, "delta"),
    ({"delta": -1e-6}, "delta"),
    ({"bounds_y": (1.0, 1.0)}, "bounds_y"),
    ({"bounds_y": (1.0, -1.0)}, "bounds_y"),
    ({"bounds_y": (-inf, 1.0)}, "bounds_y"),
    ({"bounds_y": (np.nan, 1.0)}, "bounds_y"),
    ({"bounds_y": (1.0, 2.0, 3.0)}, "bounds_y"),
    ({"data_norm": 0.0}, "data_norm"),
    ({"data_norm": inf}, "data_norm"),
    ({"data_norm": 1e-310}, "data_norm"),
    ({"data_max": 0.0}, "data_max"),
    ({"data_max": inf}, "data_max"),
    ({"data_max": 1e-310}, "data_max"),
    ({"coef_norm": -1.0}, "coef_norm"),
    ({"alpha": -1.0}, "alpha"),
    ({"privacy": "shuffled"}, "privacy"),
]


@every_class
def test_bounds_have_no_default_and_the_error_says_what_to_pass(Estimator):
    """A default would clip silently: nothing is fitted, and nothing charged."""
    rows = next(iter(SETTINGS[Estimator]))
    cases = [([rows], rows)]
    if "bounds_y" in SETTINGS[Estimator]:
        cases += [(["bounds_y"], "bounds_y"), ([rows, "bounds_y"], "")]
    for missing, name in cases:
        bounds = {name: v for name, v in SETTINGS[Estimator].items() if name not in missing}
        with uncharged(f"{name}.*public.*not private"):
            Estimator(**bounds).fit(*_data(Estimator))


@noisy_pair
def test_bad_shapes_are_refused_uncharged(Estimator, privacy):
    """Shapes and kinds of numbers are public."""
    with BudgetAccountant(10.0, 1e-3) as accountant:
        for change, message in BAD_SHAPES.values():
            with pytest.raises(ValueError, match=message):
                make(Estimator, privacy=privacy).fit(*change(*_data(Estimator)))
    assert accountant.charges == []


@noisy_pair
def test_bad_values_are_charged_and_refused_in_one_sentence(Estimator, privacy):
    """That a value cannot be used is an answer about a record: never for free, never more.

    Sessions read values: all kinds of them in every model of one estimator are enough.
    """
    X, y = _data(Estimator)
    estimator = make(Estimator, privacy=privacy, random_state=0)
    with _accountant(Estimator, privacy, 1e6, 0.5) as accountant:
        estimator.fit(X, y)
    expected, texts = [charge.cost for charge in accountant.charges], set()
    for case, change in BAD_VALUES.items():
        if case.endswith("in y") and is_classifier(estimator):
            continue  # what is no label is told by nothing
        if case not in READ_BY_ALL and Estimator is not SSPRegressor:
            continue
        with (
            _accountant(Estimator, privacy, 1e6, 0.5) as accountant,
            warnings.catch_warnings(),
            pytest.raises(InvalidValues) as caught,
        ):
            warnings.simplefilter("error")
            clone(estimator).fit(*change(X, y))
        assert [charge.cost for charge in accountant.charges] == expected
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        texts.add(str(caught.value))
    assert len(texts) == 1


@noisy_pair
def test_huge_values_are_values(Estimator, privacy):
    """They are clipped, and neither a warning nor an error of NumPy tells of them."""
    X, y = _data(Estimator)
    y = y.astype(float)
    X[3], y[5] = 1e308, -1e308
    with warnings.catch_warnings(action="error"), np.errstate(all="raise"):
        warnings.simplefilter("ignore", PrivacyWarning)  # that records are few is public
        estimator = make(Estimator, privacy=privacy, random_state=0).fit(X, y)
    assert np.isfinite(curve(estimator, X[:3])).all()


@every_class
def test_bad_settings_are_refused_uncharged(Estimator):
    with BudgetAccountant(10.0, 1e-3) as accountant:
        for settings, message in BAD_SETTINGS:
            if set(settings) <= set(make(Estimator).get_params()):
                with pytest.raises(ValueError, match=message):
                    make(Estimator, **settings).fit(*_data(Estimator))
    assert accountant.charges == []


@local_pair
def test_too_few_local_users_are_refused_uncharged(Estimator, privacy):
    X, y = _data(Estimator)
    with _accountant(Estimator, privacy, 10.0, 1e-3) as accountant:
        n = 0
        while n < 50:  # the error names a number of rows, and that many are enough
            n += 1
            try:
                make(Estimator, privacy=privacy, random_state=0).fit(X[:n], y[:n])
                break
            except PrivacyError as error:
                assert f"n_samples={n} is too few" in str(error)
                assert accountant.charges == []
                n = max(n, int(str(error).split("at least ")[1].split(" rows")[0]) - 1)
    assert len(accountant.charges) == 1


@noisy_pair
def test_a_fit_beyond_the_budget_releases_nothing(Estimator, privacy):
    X, y = _data(Estimator)
    with _accountant(Estimator, privacy, 1.0, 1e-6) as accountant:
        estimator = make(Estimator, privacy=privacy, epsilon=1.1)
        with pytest.raises(BudgetExceeded, match="Nothing was released or charged"):
            estimator.fit(X, y)
    assert accountant.charges == []
    assert not [name for name in vars(estimator) if name.endswith("_") and "coef" in name]


@pytest.mark.parametrize(
    ("Estimator", "privacy"),
    [pair for pair in NOISY if pair[0] is SSPRegressor or pair[1] == "central"],
    ids=_name,
)
def test_a_grid_search_charges_every_fit(Estimator, privacy):
    X, y = _data(Estimator)
    pipeline = make_pipeline(FunctionTransformer(), make(Estimator, privacy=privacy))
    step = pipeline.steps[-1][0]
    epsilons = (0.1, 0.3)
    search = GridSearchCV(pipeline, {f"{step}__epsilon": epsilons}, cv=2, error_score="raise")
    with _accountant(Estimator, privacy, 5.0, 5e-6) as accountant:
        search.fit(X, y)
    best = search.best_params_[f"{step}__epsilon"]
    expected = sum(_price(Estimator, privacy, Budget(e, 1e-6)) for e in (*epsilons * 2, best))
    assert len(accountant.charges) == 5
    assert _paid(accountant.ledger.total()) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "Estimator", [Estimator for Estimator, privacy in PAIRS if privacy == "shuffle"], ids=_name
)
def test_deltas_of_shuffled_fits_add_up(Estimator):
    X, y = _data(Estimator)
    with _accountant(Estimator, "shuffle", 10.0, 1.5e-6) as accountant:
        make(Estimator, privacy="shuffle", epsilon=0.1).fit(X, y)
        with pytest.raises(BudgetExceeded, match="Nothing was released or charged"):
            make(Estimator, privacy="shuffle", epsilon=0.1).fit(X, y)
    assert len(accountant.charges) == 1


def test_rooms_are_loaded_when_they_are_asked_for():
    assert skpriv.__getattr__("audit").replay and "linear_model" in dir(skpriv)
    with pytest.raises(AttributeError, match="no attribute 'audits'"):
        skpriv.audits
