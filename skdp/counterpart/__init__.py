"""Private counterparts of ordinary estimators."""

from skdp.counterpart._privatize import privatize

__all__ = ["privatize"]
