"""The published mechanisms that the docs speak of: the audit finds what the page says."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

FILE = Path(__file__).parents[2] / "examples" / "papers" / "published_mechanisms.py"


@pytest.fixture(scope="module")
def published():
    return SimpleNamespace(**runpy.run_path(str(FILE)))


def test_a_single_wishart_matrix_is_found(published):
    assert published.one_sided_wishart(1000) > 2.0


def test_boosted_fits_need_two_divisions(published):
    """Noise that is multiplied by mu, and the mu of the whole budget in each of 102 releases."""
    assert published.boosted_moments(150) > 1.0
    assert published.boosted_moments(150, published.OneDivision) > 1.0
    assert published.boosted_moments(100, published.TwoDivisions) <= 0.5
    assert published.boosted_exactly() == pytest.approx(6.33, abs=0.01)
    assert published.boosted_exactly(releases=1) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("audit", "claim", "n_runs"),
    [("one_bound_twice", 1.0, 200), ("per_coordinate", 1.0, 500), ("released_check", 0.1, 200)],
)
def test_released_programs_are_found(published, audit, claim, n_runs):
    assert getattr(published, audit)(n_runs) > 1.5 * claim


def test_clones_by_counts_are_not_enough(published):
    assert published.shuffled_reports() == pytest.approx(2.49e-3, rel=1e-3)
    assert published.clone_counts() < 0.05 * published.shuffled_reports()


def test_the_values_of_hard_thresholding_break_their_claim(published):
    found = published.peeling(draws=100_000)
    scale = 2.0 * (3.0 * 40 * 11.512925) ** 0.5
    one = pld.from_laplace_mechanism(scale / 4.0, value_discretization_interval=1e-4)
    assert found == pytest.approx(one.self_compose(40).get_delta_for_epsilon(1.0), rel=0.05)
    assert found > 1e-4


def test_currencies_that_are_mixed_adaptively_exceed_the_claim(published):
    assert published.adaptive_currencies(draws=300_000) > 3.0
    assert published.adaptive_currencies(steps=1, draws=300_000) == pytest.approx(1.0, abs=0.2)


def test_two_releases_with_the_whole_budget(published):
    assert published.two_whole_budgets(10.0) == pytest.approx(16.1, abs=0.1)
    assert published.layered_sensitivities() == pytest.approx(4.0 / 3.0)
