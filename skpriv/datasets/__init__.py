"""Real data sets with public bounds, from the packages of the `data` extra."""

from ._mortgages import load_mortgages
from ._warfarin import load_warfarin
from ._wages import load_wages

__all__ = ["load_mortgages", "load_wages", "load_warfarin"]
