"""Hard instances of the papers, and real data sets with public bounds (the `data` extra)."""

from ._hard_ill_conditioned import make_ill_conditioned
from ._hard_rank_one import make_rank_one
from ._hard_rare_direction import make_rare_direction
from ._hard_small_direction import make_small_direction
from ._hard_sparse_autoregressive import make_sparse_autoregressive
from ._mortgages import load_mortgages
from ._wages import load_wages
from ._warfarin import load_warfarin

__all__ = [
    "load_mortgages",
    "load_wages",
    "load_warfarin",
    "make_ill_conditioned",
    "make_rank_one",
    "make_rare_direction",
    "make_small_direction",
    "make_sparse_autoregressive",
]
