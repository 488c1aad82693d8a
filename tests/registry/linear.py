"""Sums and procedures of linear, re-weighted and improper regression, of bounds and of rewards."""

from dataclasses import replace
from functools import partial

import numpy as np

from skpriv._estimation._links import LINKS, Link
from skpriv._estimation._moments import Instrument, MomentsQuery, ResidualGramQuery
from skpriv._estimation._public_maps import RecordMap
from skpriv._estimation._reports import LiftedMomentsQuery
from skpriv.linear_model._gradients._improper_sgd import (
    ClippedGradientQuery,
    ErrorTerms,
    ReportedGradientQuery,
)
from skpriv.linear_model._reweighted._descent import LinkGradientQuery, Minimiser
from skpriv.linear_model._reweighted._normalisation import (
    NormalisationQuery,
    ReportedNormalisationQuery,
    ReweightedMomentsQuery,
    ReweightedReportsQuery,
)

from .case import Case, distance

D = 3
PLANE = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2)
UNIT_BALL = RecordMap.of_norm(1.0, (-1.0, 1.0), False, D)
E1, E2 = np.eye(2)


class LyingLink(Link):
    """Not increasing, odd, bounded or finite: no guarantee may rest on what a link promises."""

    def mean(self, linear):
        return np.where(np.abs(linear) < 0.3, np.nan, np.minimum(1e6 * linear, -linear))

    def linear(self, mean):
        return mean

    def slope_bounds(self, bound):
        return 1.0, 1.0


def draw_scaling(rng, d=D):
    """A record map: of all sizes, narrow and wide ranges, with and without intercept."""
    low = rng.choice([0.0, -1.0, 10.0 * rng.normal(), 1e16, -1e300])
    width = rng.choice([2.0, rng.uniform(1e-3, 10), 1e-16, 1e-300, 1e300])
    high = max(low + width, np.nextafter(low, np.inf))
    norm = rng.choice([1.0, 1.0, 0.3, 7.0, 1e-300, 1e-160, 1e160, 1e300])
    return RecordMap.of_norm(float(norm), (float(low), float(high)), bool(rng.randint(2)), d)


def draw_matrix(size, rng, condition=None):
    """A public U, of any condition number up to 1e8 and any size."""
    condition = 10.0 ** rng.uniform(0, 8) if condition is None else condition
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    values = np.ones(size) if size == 1 else np.geomspace(1.0, 1.0 / condition, size)
    matrix = (basis * (10.0 ** rng.randint(-3, 4) * values)) @ basis.T
    return (matrix + matrix.T) / 2


def draw_theta(size, rng):
    return rng.normal(size=size) * 10.0 ** rng.uniform(-3, 3)


def draw_instrument(size, rng):
    return draw_weights(size, rng) if rng.randint(2) else Instrument()


def draw_matrix_alone(size, rng):
    return Instrument(draw_matrix(size, rng))


def draw_weights(size, rng):
    """A public U, and lengths up to which rows are not weighed: none, some, or nearly all."""
    matrix = draw_matrix(size, rng)
    floor = rng.choice([0.0, 1e-3, 0.3, 1.0]) * float(np.linalg.norm(matrix, 2))
    length = rng.choice([1e-8, 1e-3, 1.0]) * float(np.linalg.norm(matrix, 2))
    return Instrument(matrix, floor=floor, length=length)


def draw_records(rng):
    """A record map; of rows whose last column is the root of a weight, at times."""
    return draw_scaling(rng) if rng.randint(3) else draw_scaling(rng, D - 1).weighted()


def _residual(rng):
    maps = draw_records(rng)
    instrument = draw_instrument(maps.size, rng)
    limit = rng.choice([0.1, 0.7, 1.9, 2.0])
    return ResidualGramQuery(maps, tuple(draw_theta(maps.size, rng)), instrument, limit)


def _gradient(rng):
    maps = draw_scaling(rng)
    link = (*LINKS.values(), LyingLink())[rng.randint(len(LINKS) + 1)]
    theta = draw_theta(maps.size, rng)
    weight, largest = rng.choice([0.0, 1.0]), rng.choice([1.0, np.inf])
    instrument = draw_instrument(maps.size, rng)
    return LinkGradientQuery(maps, instrument, link, theta, weight, largest=largest)


EYE = Instrument(np.eye(2))


def _with_scaling(kind, draw_maps=draw_scaling, **drawn):
    """Draw a record map, and each further parameter by ``draw(size, rng)``."""

    def make(rng):
        maps = draw_maps(rng)
        return kind(maps, **{name: draw(maps.size, rng) for name, draw in drawn.items()})

    return make


def _any_maps(rng):
    """Moments of rows of bounded norm, or of maps that were made apart."""
    maps = draw_records(rng)
    apart = RecordMap(maps.row_map, maps.target_map)
    return MomentsQuery(apart if rng.randint(2) else maps)


def one(x, y):
    """A data set of a single record."""
    return np.array([x], dtype=float), np.array([y], dtype=float)


def _moments(Query=MomentsQuery):
    other = np.array([0.5, np.sqrt(0.75)])  # at 60 degrees, with the other sign
    return Query(PLANE), one(E1, 1.0), one(other, -1.0)


def _reported_gradient():
    query = ReportedGradientQuery(PLANE, theta=np.zeros(2))
    return query, one(E1, -1.0), one([-1.0, 0.0], -1.0)


def _reported_normalisation():
    return ReportedNormalisationQuery(PLANE, instrument=EYE), one(E1, 0.0), one(E2, 0.0)


def _residuals(instrument):
    query = ResidualGramQuery(PLANE, (1e9, 1e9), instrument)
    return lambda: (query, one(E1, -1.0), one(E2, -1.0))


def _normalisation():
    query = NormalisationQuery(PLANE, Instrument(np.diag([1.0, 0.01]), length=0.01))
    return query, one(E1, 0.0), one(E2, 0.0)


def _mirrored(query):
    """Rows at an angle to E2, and at the same one on its other side: U may turn them apart."""

    def worst():
        rows = [np.array([np.sin(t), np.cos(t)]) for t in np.geomspace(1e-8, np.pi / 2.0, 400)]
        pairs = [(one(x, -1.0), one(x * [-1.0, 1.0], -1.0)) for x in rows]
        return query, *max(pairs, key=lambda pair: distance(query, *pair))

    return worst


def _reweighted(condition, floor=0.0):
    instrument = Instrument(np.diag([1.0, 1.0 / condition]), floor=floor)
    return _mirrored(ReweightedMomentsQuery(PLANE, instrument))


def _heavy(worst):
    """The same rows with weights above their bound, which count as the bound itself."""

    def heavy():
        query, *pair = worst()
        weighted = replace(query, maps=query.maps.weighted())
        return weighted, *((np.column_stack([X, np.full(len(X), 2.0)]), y) for X, y in pair)

    return heavy


def _along_theta(link):
    """In which neither U nor theta is at its worst."""
    instrument = Instrument(np.diag([1.0, 0.1]))
    return _mirrored(LinkGradientQuery(PLANE, instrument, LINKS[link], 0.6 * E2, 0.0))


def _short_row():
    """A row along theta, and one of no length behind it, which has the same e."""
    query = LinkGradientQuery(PLANE, Instrument(np.eye(2)), LINKS["identity"], E1, 1.0)
    return query, one(E1, -1.0), one(-1e-9 * E1, -1.0)


def _orthogonal_rows():
    """With a large weight Phi_U decides, which turns by a right angle."""
    query = LinkGradientQuery(PLANE, Instrument(np.eye(2)), LINKS["identity"], E1, 20.0)
    return query, one(E1, -1.0), one(E2, 1.0)


def _steep_row():
    """An ill-conditioned U turns two rows near theta into opposite ones."""
    U = np.diag([1.0, 1e-6])
    query = LinkGradientQuery(PLANE, Instrument(U), LINKS["identity"], E2, 0.0)
    x = np.array([1e-3, np.sqrt(1.0 - 1e-6)])
    return query, one(x, -1.0), one(x * [-1.0, 1.0], -1.0)


def _clipped(norm):
    def worst():
        cosine = (np.sqrt(1 + 8 * norm**2) - 1) / (4 * norm) if norm < np.sqrt(3) else 1 / norm
        x = np.array([cosine, np.sqrt(1 - cosine**2)])
        query = ClippedGradientQuery(PLANE, np.array([norm, 0.0]))
        return query, one(x, -1.0), one(x * [1.0, -1.0], -1.0)

    return worst


def _held_out():
    """Nearly the same row, which the public theta predicts as 1 and as -1."""
    m = 1_000
    terms = ErrorTerms(PLANE, m, np.array([1.0, -1e6]))
    X, y = np.tile(E1, (m, 1)), -np.ones(m)
    other_X, other_y = X.copy(), y.copy()
    other_X[0], other_y[0] = [1.0 - 1e-8, 1e-4], 1.0
    return terms, (X, y), (other_X, other_y)


def _held_out_terms(rng):
    maps = draw_scaling(rng)
    return ErrorTerms(maps, 10, draw_theta(maps.size, rng))


def _data_norm(asked):
    rows = getattr(asked, "query", asked).maps.row_map
    return getattr(rows, "plain", rows).data_norm


OF_REPORTS = "a sum moves by less than what is declared of all that may be reported"
CASES = {
    MomentsQuery: Case(_any_maps, (_moments, _heavy(_moments)), unit=_data_norm),
    LiftedMomentsQuery: Case(
        _with_scaling(LiftedMomentsQuery), (partial(_moments, LiftedMomentsQuery),),
        unit=_data_norm,
    ),
    ReportedGradientQuery: Case(
        _with_scaling(ReportedGradientQuery, theta=draw_theta), (_reported_gradient,),
        unit=_data_norm, reached=0.9, reason=OF_REPORTS,
    ),
    ReportedNormalisationQuery: Case(
        _with_scaling(ReportedNormalisationQuery, instrument=draw_matrix_alone),
        (_reported_normalisation,), unit=_data_norm, reached=0.6, reason=OF_REPORTS,
    ),
    ReweightedReportsQuery: Case(
        _with_scaling(ReweightedReportsQuery, instrument=draw_matrix_alone),
        (partial(_moments, partial(ReweightedReportsQuery, instrument=EYE)),), unit=_data_norm,
    ),
    ResidualGramQuery: Case(
        _residual,
        (
            _residuals(Instrument()), _residuals(Instrument(np.diag([1.0, 0.01]))),
            _heavy(_residuals(EYE)),
        ),
        unit=_data_norm,
    ),
    NormalisationQuery: Case(
        _with_scaling(NormalisationQuery, draw_records, instrument=draw_weights),
        (_normalisation, _heavy(_normalisation)),
        unit=_data_norm,
    ),
    ReweightedMomentsQuery: Case(
        _with_scaling(ReweightedMomentsQuery, draw_records, instrument=draw_weights),
        (
            *map(_reweighted, (1.0, 3.0, 30.0, 1e8)), _reweighted(1e4, 1e-3),
            _heavy(_reweighted(1e8)),
        ),
        unit=_data_norm,
    ),
    LinkGradientQuery: Case(
        _gradient, (_short_row, _orthogonal_rows, _steep_row, *map(_along_theta, LINKS)),
        unit=_data_norm, reached=0.95,
        reason="the gradient attains its bound, or Phi_U its own: never both at one pair",
    ),
    ClippedGradientQuery: Case(
        _with_scaling(ClippedGradientQuery, theta=draw_theta),
        tuple(map(_clipped, (1e-3, 0.3, 1.0, 1.5, 1.8, 2.5, 10.0))), unit=_data_norm,
    ),
    ErrorTerms: Case(
        _held_out_terms, (_held_out,), reached=0.86, n=10, unit=_data_norm,
        reason="both bounds cannot be attained by one record: 4 of hypot(4, 2.25)",
    ),
    # Runs without privacy only, and says so by its price.
    Minimiser: Case(lambda rng: Minimiser(UNIT_BALL, LINKS["identity"], 1.0), (), n=10),
}  # fmt: skip
