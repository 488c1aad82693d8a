"""Public-bounds scaling of features into the unit ball."""

from ._bounds_scaler import BoundsScaler

__all__ = ["BoundsScaler"]
