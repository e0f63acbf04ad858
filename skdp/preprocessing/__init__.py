"""Private preprocessing."""

from skdp.preprocessing.standard_scaler import DPStandardScaler

__all__ = ["DPStandardScaler"]
