"""Noise that users add on a grid: the proof's steps and the whole claim, by exact laws."""

import itertools
import math

import numpy as np
import pytest

from skpriv import Budget
from skpriv.exceptions import PrivacyError
from skpriv.privacy import Lattice
from skpriv.privacy._accounting import _lattice

FAR = 400  # steps around zero that are enumerated


def discrete(variance, centre=0.0, far=FAR):
    """The discrete Gaussian on the integers from -far to far."""
    grid = np.arange(-far, far + 1)
    law = np.exp(-((grid - centre) ** 2) / (2.0 * variance))
    return law / law.sum()


def left_out(width):
    """The factor that the proof leaves out for a rounding of this width, as a distance from 1."""
    return 2.01 * math.exp(-2.0 * math.pi**2 * width**2)


def delta_of(first, second, epsilon):
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


def gaussian_delta(mu, epsilon):
    phi = lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0))  # noqa: E731
    return phi(-epsilon / mu + mu / 2.0) - math.exp(epsilon) * phi(-epsilon / mu - mu / 2.0)


@pytest.mark.parametrize("width", [0.45, 0.6, 0.8])
@pytest.mark.parametrize("centre", [0.0, 0.25, 0.5])
def test_a_discrete_gaussian_is_a_rounded_one(width, centre):
    """A Gaussian of the rest of the variance, then rounding by a discrete one: the same law."""
    variance, far = 9.0, 60
    points = np.linspace(-60.0, 60.0, 2_401)  # exact: a sum of Gaussians is their integral
    weights = np.exp(-((points - centre) ** 2) / (2.0 * (variance - width**2)))
    grid = np.arange(-far, far + 1)
    rounded = np.exp(-((grid[:, None] - points) ** 2) / (2.0 * width**2))
    rounded /= np.exp(-((np.arange(-99, 100)[:, None] - points) ** 2) / (2.0 * width**2)).sum(0)
    law = rounded @ weights / weights.sum()
    ratio = law / discrete(variance, centre, far)
    inside = abs(grid) < 15
    bound = left_out(width)
    assert (abs(ratio[inside] - 1.0) <= (1.0 + bound) / (1.0 - bound) - 1.0 + 1e-9).all()


@pytest.mark.parametrize("variance, users", [(0.6, 2), (0.6, 5), (1.0, 4), (2.0, 3)])
def test_the_noise_of_all_users_is_one_discrete_gaussian(variance, users):
    law = total = discrete(variance, far=40)
    for _ in range(users - 1):
        total = np.convolve(total, law)
    far = len(total) // 2
    inside = abs(np.arange(-far, far + 1)) < 5 * math.sqrt(variance * users)
    ratio = abs(np.log(total[inside] / discrete(variance * users, far=far)[inside])).max()
    assert ratio <= 5.0 * users * math.exp(-(math.pi**2) * variance)
    assert variance > 0.6 or ratio > 1e-4  # the bound has something to bound


@pytest.mark.parametrize("users", [2, 3, 4, 5])
@pytest.mark.parametrize("bits", [5, 6])
@pytest.mark.parametrize("moved", [1, 3])
def test_the_sum_is_gaussian_private(users, bits, moved):
    """Rounded numbers, every user's noise, sums modulo a small number: delta of the claimed mu."""
    variance, width, modulus = 4.0, 0.9, 2**bits
    laws = []
    for change in (0, moved):
        law = np.zeros(modulus)
        np.add.at(law, np.arange(-FAR, FAR + 1) % modulus, discrete(variance, change))
        for _ in range(users - 1):
            one = np.zeros(modulus)
            np.add.at(one, np.arange(-FAR, FAR + 1) % modulus, discrete(variance, 0))
            law = np.array([law @ one[(k - np.arange(modulus)) % modulus] for k in range(modulus)])
        laws.append(law)
    mu = moved / math.sqrt(users * variance - width**2)
    free = 2.0 * left_out(width) + 10.0 * users * math.exp(-(math.pi**2) * variance)
    for epsilon, pair in itertools.product((0.0, 0.3, 1.0, 2.0), (laws, laws[::-1])):
        claim = gaussian_delta(mu, epsilon)
        assert delta_of(*pair, epsilon) <= claim + free * (1.0 + math.exp(epsilon))
    whole = gaussian_delta(mu / 2.0, 0.3)  # half of the claim is not met
    assert modulus < 64 or delta_of(*laws, 0.3) > whole + free * 3.0


@pytest.mark.parametrize("size", [1, 20, 130, 1300])
@pytest.mark.parametrize("users", [10, 10_000, 1_000_000])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_noise_is_a_curators(size, users, epsilon):
    """Never below what mu asks for, and not even a millionth above it."""
    mu = Budget(epsilon, 1e-6).mu
    lattice = Lattice.calibrated(2.0, mu, size, users, users)
    assert 1.0 <= lattice.scale * mu / 2.0 <= 1.0 + 1e-5
    # The rounding to the grid and the width are in it.
    steps = 2.0 / lattice.step + math.sqrt(size)
    assert lattice.variance * users >= (steps / mu) ** 2 + _lattice.WIDTH**2
    paid = steps / math.sqrt(lattice.variance * users - _lattice.WIDTH**2)
    assert lattice.mu(2.0, size) == pytest.approx(paid, rel=1e-13) and paid <= mu
    most = lattice.variance - 1
    assert most * users < ((steps / mu) ** 2 + _lattice.WIDTH**2) * (1.0 + 2.0**-39)


def test_noise_is_counted_on_from_some_users_alone():
    few = Lattice.calibrated(1.0, 0.2, 4, 1000, 800)
    whole = Lattice.calibrated(1.0, 0.2, 4, 1000, 1000)
    assert few.scale == pytest.approx(whole.scale, rel=1e-6)
    assert few.variance == pytest.approx(whole.variance * 1000 / 800, rel=1e-6)


def test_no_sum_can_wrap_around():
    cases = [(10, 1, 0.1), (10**6, 1300, 0.1), (10**8, 10**4, 0.1)]
    for users, size, mu in [*cases, (10**10, 1300, 1e-9)]:  # the last one has more noise than sums
        lattice = Lattice.calibrated(1.0, mu, size, users, users // 1000 if mu < 0.1 else users)
        lattice.check(_lattice.LARGEST_ENTRY, 1.0)  # as far away as is allowed
        longest = users * (_lattice.LARGEST_ENTRY + 1.0) / lattice.step
        noise = _lattice.NOISE_ROOM * math.sqrt(users * lattice.variance)
        assert longest + noise < 2.0 ** (_lattice.MODULUS - 1)
    with pytest.raises(PrivacyError, match="too far from zero"):
        lattice.check(_lattice.LARGEST_ENTRY + 0.1, 1.0)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ((1.0, 0.0, 4, 10, 10), "delta above 0"),
        ((1.0, 0.1, 4, 10, 11), "from 1 to all"),
        ((1.0, 0.1, 4, 10, 0), "from 1 to all"),
        ((1.0, 0.1, 10**6, 10**13, 10**13), "do not fit"),
        ((1.0, 1e6, 1, 10**9, 10**9), "too little noise"),
    ],
)
def test_what_cannot_be_had_is_refused(parameters, message):
    with pytest.raises(PrivacyError, match=message):
        Lattice.calibrated(*parameters)


def test_the_width_of_the_rounding_is_paid_for_where_it_is_seen():
    """With so little noise that ten steps are a part of it, the claim holds all the same."""
    lattice = Lattice.calibrated(1.0, 1e8, 1, 1, 1)
    assert _lattice.WIDTH**2 > 0.05 * lattice.variance
    assert lattice.mu(1.0, 1) <= 1e8
    steps = 1.0 / lattice.step + 1.0
    assert lattice.variance >= (steps / 1e8) ** 2 + _lattice.WIDTH**2


def test_noise_near_the_width_of_the_grid_is_priced_without_it():
    """Noise of variance S^2 on integers is a function of Gaussian noise of S^2 - WIDTH^2."""
    narrow = Lattice(step=1.0, variance=200, adding=1)
    assert _lattice.WIDTH == 10.0
    assert narrow.mu(1.0, 1) == pytest.approx(2.0 / 10.0)  # a step for the rounding, one for itself
