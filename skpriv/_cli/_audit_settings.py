"""What the audit command attacks, and with which neighbours."""

import numpy as np

from .. import bandits, linear_model
from ..privacy import capabilities
from ._arguments import PRIVATE

N_ROUNDS, N_ACTIONS = 120, 3
SCHEDULE = (50, 70)
# As few users as an estimator can do with: the noise of others hides a report in the sum.
N_USERS = {"ssp": 1, "layered": 1, "re-weighted": 10, "descent": 10, "improper": 10, "linear": 20}
# They ask little about few zeros, and LinearRegression asks for no slope where N < 100. At (1, .1)
# mu is .92, so that 200 records are nearly twice what is needed.
MORE_RECORDS = {"iht": 100, "linear": 200}
NEIGHBOURS = "A replay is about one pair of neighbours: see docs/audit.md for what it cannot show."


def records(name, privacy):
    """Two tables, of zeros mostly, that differ in the first record.

    The pairs are those that :func:`skpriv.audit.worst_pairs` ranks first, or near it, under all
    models.
    """
    same_rows = capabilities(privacy).same_rows
    first, second = ([1.0, 0.0], -1.0), ([0.5, np.sqrt(0.75)], 1.0)
    if name == "re-weighted":
        first, second = ([1.0, 0.0], 1.0), ([0.0, 1.0], 1.0)
    elif name == "descent" and same_rows:
        first, second = ([1.0, 0.0], 1.0), ([0.5, np.sqrt(0.75)], -1.0)
    elif name == "descent":  # a row of no length has the same instrument
        first, second = ([-1.0, 0.0], 1.0), ([-1e-9, 0.0], -1.0)
    elif name == "improper":
        first, second = ([0.5, np.sqrt(0.75)], 1.0), ([0.0, 1.0], -1.0)
    elif name == "iht":
        first, second = ([1.0, -1.0], 1.0), ([1.0, -1.0], -1.0)
    n = 30 if same_rows else N_USERS[name]
    background = np.zeros((n, 2))
    if name in MORE_RECORDS and same_rows:
        size = (MORE_RECORDS[name], 2)
        background = np.random.RandomState(0).uniform(-0.7, 0.7, size=size)
    pair = []
    for row, target in (first, second):
        X, y = background.copy(), np.clip(background @ [1.0, -0.5], -1.0, 1.0)
        X[0], y[0] = row, target
        pair.append((X, y))
    return pair


def rounds():
    """Contexts and rewards of two sets of users, one of whom differs."""
    rng = np.random.RandomState(0)
    contexts = rng.uniform(-0.5, 0.5, size=(N_ROUNDS, N_ACTIONS, 2))
    rewards = np.clip(contexts @ [1.0, -0.5], -1.0, 1.0)
    pair = []
    for row, reward in (([1.0, 0.0], -1.0), ([0.5, np.sqrt(0.75)], 1.0)):
        changed, told = contexts.copy(), rewards.copy()
        changed[0], told[0] = row, reward
        pair.append((changed, told))
    return pair


def estimators():
    """Makers ``make(budget, seed)`` by name and privacy model."""
    bounds = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
    sparse = {"data_max": 1.0, "bounds_y": (-1.0, 1.0), "n_nonzero_coefs": 1}
    classes = {
        "linear": (linear_model.LinearRegression, bounds),
        "ssp": (linear_model.SSPRegressor, bounds),
        "re-weighted": (linear_model.ReweightedRegressor, bounds),
        "descent": (linear_model.ReweightedRegressor, {**bounds, "solver": "sgd", "link": "logit"}),
        "layered": (linear_model.LayeredRegressor, bounds),
        "improper": (linear_model.ImproperSGDRegressor, bounds),
        "iht": (linear_model.IHTRegressor, sparse),
    }

    def maker(Estimator, parameters, privacy):
        def make(budget, seed):
            return Estimator(
                epsilon=budget.epsilon, delta=budget.delta, privacy=privacy,
                fit_intercept=False, random_state=seed, **parameters,
            )  # fmt: skip

        return make

    return {
        (name, privacy): maker(*how, privacy)
        for name, how in classes.items()
        for privacy in PRIVATE
        if name != "iht" or capabilities(privacy).selects
    }


def policies():
    """Makers ``make(budget, seed)`` of policies by name and privacy model."""

    def epochs(Policy, privacy, **parameters):
        def make(budget, seed):
            oracle = linear_model.SSPRegressor(
                data_norm=1.0,
                bounds_y=(-1, 1),
                epsilon=budget.epsilon,
                delta=budget.delta,
                privacy=privacy,
                random_state=seed,
            )
            return Policy(oracle=oracle, schedule=SCHEDULE, random_state=seed, **parameters)

        return make

    def sums(Policy, **parameters):
        def make(budget, seed):
            return Policy(
                epsilon=budget.epsilon, delta=budget.delta, random_state=seed, **parameters
            )

        return make

    table: dict = {}
    for privacy in PRIVATE:
        table |= {
            ("elimination", privacy): epochs(bandits.ActionElimination, privacy),
            ("spanner", privacy): epochs(bandits.ActionElimination, privacy, exploration="spanner"),
            ("square_cb", privacy): epochs(bandits.SquareCB, privacy),
            ("greedy", privacy): epochs(bandits.EpochGreedy, privacy),
            ("lin_ucb", privacy): sums(
                bandits.LinUCB, privacy=privacy, horizon=N_ROUNDS, update_every=10
            ),
        }
    table["online_lin_ucb", "local"] = sums(bandits.OnlineLinUCB)
    table["fliphat", "central"] = sums(bandits.FLIPHAT, n_nonzero_coefs=1, schedule=SCHEDULE)
    return table
