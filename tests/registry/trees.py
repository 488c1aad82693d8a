"""Sums over the bins of layered regression."""

import numpy as np

from skpriv._estimation._public_maps import RecordMap
from skpriv.linear_model._lplr._published import ErrorQuery, PaperLevelQuery
from skpriv.linear_model._lplr._tree import (
    CodebookLevelQuery, GaussianLaw, LevelQuery, PartitionTree,
)  # fmt: skip

from .case import Case, distance
from .linear import one

D = 3
SCALING = RecordMap.of_norm(1.0, (-1.0, 1.0), False, D)


def grown_tree(resolved, n_scales=8, half_width=0.3):
    """A tree whose bins at level 1 have resolved that many coordinates."""
    tree = PartitionTree(D, 2.0, n_scales, 2)
    for node in tree.frontier():
        node.gram = np.diag(np.arange(D, 0.0, -1.0))
        node.law = GaussianLaw(0.0)
        node.decompose()
        node.half_widths[:] = half_width
        node.activate(resolved, 2.0, n_scales)
        tree.bins.append(node)
    return tree, tuple(tree.bins if resolved == 0 else [*tree.bins, *tree.frontier()])


def level(resolved, kind=LevelQuery):
    tree, bins = grown_tree(resolved)
    return kind(SCALING, tree, bins, resolved > 0)


def published():
    tree, _ = grown_tree(1)
    for node in tree.frontier():
        node.total = np.full(D, -9.0)
    return PaperLevelQuery(SCALING, tree, tuple(tree.frontier()), False, 2, 1.0)


def errors(half_width=0.3, roll=0):
    tree, _ = grown_tree(1, half_width=half_width)
    below = tuple(tree.frontier())
    for node in below:
        node.gram, node.law = np.eye(node.size), GaussianLaw(0.0)
        node.decompose()
        node.directions = np.roll(node.directions, roll, axis=1)
    return ErrorQuery(SCALING, tree, below, False, 2, cap=2.0)


def _edges(resolved):
    """Records whose scaled vectors have norm 1, in bins of every depth."""
    for k in range(7):
        for angle in (0.0, 0.4, 1.2):
            x = 2.0**-k * (1.0 - 1e-9) * np.array([0.0, np.cos(angle), np.sin(angle)])
            if resolved == 0:
                x = np.roll(x, -1)
            else:
                x[0] = np.sqrt(1.0 - x @ x)
            yield x


def _related(x, resolved):
    """The records that hurt most beside x: turned by an angle, ancestors' part negated."""
    for angle in (0.0, np.pi / 3, np.pi / 2):
        c, s = np.cos(angle), np.sin(angle)
        if resolved == 0:
            beside = np.array([-x[1], x[0], 0.0])
            yield c * x + s * beside
        else:
            yield np.concatenate([[-x[0]], np.array([[c, -s], [s, c]]) @ x[1:]])


def _searched(query, resolved):
    """The best pair of a small search over bins, angles and signs."""

    def worst():
        edges = list(_edges(resolved))
        pairs = [
            (one(x, sign), one(other, -1.0))
            for sign in (1.0, -1.0)
            for x in edges
            for other in (*_related(x, resolved), *edges[::4])
        ]
        first, second = max(pairs, key=lambda pair: distance(query, *pair))
        return query, first, second

    return worst


def _draw_level(rng):
    return level(rng.randint(3))


def _unit_norm(query, first, second):
    """Codebooks ask for vectors of norm 1; how far they move does not matter."""
    with np.errstate(all="ignore"):
        parts = [query.units(*data) for data in (first, second)]
    slots = np.concatenate([part[0] for part in parts])
    assert ((slots >= 0) & (slots < max(1, len(query.bins)))).all()
    norms = np.linalg.norm(np.concatenate([part[1] for part in parts]), axis=1)
    assert abs(norms - 1.0).max() <= 1e-12
    return float(norms.max())


CASES = {
    LevelQuery: Case(_draw_level, tuple(_searched(level(r), r) for r in (0, 1)), reached=0.98),
    PaperLevelQuery: Case(lambda rng: published(), (_searched(published(), 1),), reached=0.98),
    ErrorQuery: Case(
        lambda rng: errors(rng.choice([0.3, 10.0])),
        (_searched(errors(10.0, roll=1), 1),),
        reached=0.98,
    ),
    CodebookLevelQuery: Case(
        lambda rng: level(rng.randint(3), CodebookLevelQuery),
        (_searched(level(0, CodebookLevelQuery), 0),),
        measure=_unit_norm,
        declared=lambda asked: 1.0 + 1e-12,
    ),
}
