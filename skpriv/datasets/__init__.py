"""Real data sets with public bounds (the `data` extra)."""

from ._loaders import load_mortgages, load_wages, load_warfarin

__all__ = ["load_mortgages", "load_wages", "load_warfarin"]
