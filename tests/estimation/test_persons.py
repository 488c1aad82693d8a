"""Lengths of scores of persons by noisy counts, and how rows of a person depend on each other."""

from types import SimpleNamespace

import numpy as np
import pytest

from skpriv._estimation._persons import (
    MOST_CUT,
    SCORE_LENGTHS,
    ScoreLengthsQuery,
    dependence,
    seldom_cut,
)
from skpriv.linear_model._opening import WithinPersons


class Counted:
    """A session that counts persons of lengths around one, with normal noise."""

    def __init__(self, typical, scale, seed, n=4000):
        rng = np.random.RandomState(seed)
        self.n, self.lengths = n, typical * np.exp(0.4 * rng.normal(size=n))
        classes = np.minimum(np.searchsorted(SCORE_LENGTHS, self.lengths), len(SCORE_LENGTHS) - 1)
        counts = np.bincount(classes, minlength=len(SCORE_LENGTHS))
        self.value = counts + scale * rng.normal(size=len(SCORE_LENGTHS))
        self.scale = scale

    def sum(self, query, share):
        return SimpleNamespace(value=self.value, noise=SimpleNamespace(scale=self.scale))


def cut(session):
    """The length at which it is found that next to nobody is cut."""
    return seldom_cut(session, SimpleNamespace(classes=SCORE_LENGTHS), 0.1)


@pytest.mark.parametrize("scale", [10.0, 40.0])
def test_noise_in_classes_of_long_scores_is_not_believed(scale):
    """Of 13 sums of noise one is beyond two deviations in one fit of ten: that is no long score."""
    found = []
    for seed in range(150):
        session = Counted(0.05, scale, seed)
        longest = float(np.quantile(session.lengths, 1.0 - MOST_CUT))
        found.append(cut(session) / longest)
    assert np.mean(np.array(found) > 4.0) < 0.02


def test_next_to_nobody_is_cut():
    for seed in range(50):
        session = Counted(0.05, 5.0, seed)
        assert (session.lengths > cut(session)).mean() < 0.01


def test_one_person_in_seven_hundred_is_not_cut():
    """Whoever is cut is missing in the moment, and no interval counts them: one in a thousand may.

    With twice that, all persons in the class of the longest scores would be cut.
    """
    session = Counted(0.05, 0.0, 0, n=100_000)
    session.value = np.zeros(len(SCORE_LENGTHS))
    session.value[[2, 8]] = 99_850.0, 150.0
    assert cut(session) > SCORE_LENGTHS[8]
    session.value[[2, 8]] = 99_950.0, 50.0
    assert cut(session) < SCORE_LENGTHS[8]


def test_where_noise_hides_everybody_nothing_is_cut():
    silent = Counted(0.05, 1e4, 0)
    silent.value = np.zeros(len(SCORE_LENGTHS))
    assert cut(silent) == 1.0


@pytest.mark.parametrize(("alike", "part"), [(True, 1.0), (False, 0.2)])
def test_dependence_is_between_rows_that_are_alike_and_rows_on_their_own(alike, part):
    rng, m = np.random.RandomState(0), 5
    scores = rng.normal(size=(20_000, 1 if alike else m, 2)) * np.ones((1, m, 1))
    rows = np.einsum("gji,gjk->ik", scores, scores) / m
    persons = scores.mean(axis=1).T @ scores.mean(axis=1)
    assert dependence(persons, rows, m) == pytest.approx(part, rel=0.03)
    assert dependence(-persons, rows, m) == 1.0 / m


def test_lengths_of_a_person_are_those_of_the_mean_over_all_places():
    query = ScoreLengthsQuery(SimpleNamespace(score_rows=lambda X, y: (X, 1.0)))
    X = np.eye(1)[[0] * 3]
    np.testing.assert_array_equal(
        query.sum_persons(X, None, [0, 2, 3], 2), query.counts(np.array([1.0, 0.5]))
    )


@pytest.mark.parametrize("m", [2, 3, 10])
def test_differences_of_a_person_reach_as_far_as_is_said_and_no_further(m):
    rows = np.append(7.0, np.full(m - 1, -2.0))[:, None]
    differences = WithinPersons(lambda X: np.clip(X, -1.0, 1.0), (0.0, 3.0))
    for found, width in zip(differences(rows, rows[:, 0], np.array([0, m])), (2.0, 3.0)):
        assert np.abs(found).max() == pytest.approx(width * (1.0 - 1.0 / m), rel=1e-12)
