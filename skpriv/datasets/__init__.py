"""Hard instances of the papers, and real data sets with public bounds (the `data` extra)."""

from ._hard_instances import (
    make_ill_conditioned,
    make_rank_one,
    make_small_direction,
    make_sparse_autoregressive,
)
from ._loaders import load_mortgages, load_wages, load_warfarin

__all__ = [
    "load_mortgages",
    "load_wages",
    "load_warfarin",
    "make_ill_conditioned",
    "make_rank_one",
    "make_small_direction",
    "make_sparse_autoregressive",
]
