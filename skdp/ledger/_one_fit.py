"""A charge pays for one fit: in its block, the model that it was made for refuses a second."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skdp.exceptions import PrivacyBudgetError

__all__ = ["one_fit"]

_WHOLE = ("fit", "fit_transform", "fit_predict")
# Chunks add up in the model, whose cost is compared with the charge afterwards.
_IN_CHUNKS = "partial_fit"


@contextmanager
def one_fit(model: Any) -> Iterator[None]:
    """Let a model be fitted once inside the block, by one call or in chunks.

    Parameters
    ----------
    model : estimator
        Its methods that fit are covered by attributes of the instance meanwhile: what stands for
        a model, such as a search, fits clones, which alone would not tell how often.
    """
    for name in (*_WHOLE, _IN_CHUNKS):
        if hasattr(model, name):
            vars(model)[name] = _First(model, name)
    try:
        yield
    finally:
        _uncover(model)


def _uncover(model: Any) -> None:
    for name, value in list(vars(model).items()):
        if isinstance(value, _First | _Refused):
            del vars(model)[name]


class _First:
    """A method that fits, which has not been called yet."""

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.name = model, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _uncover(self.model)  # `fit_transform` calls `fit`
        try:
            return getattr(self.model, self.name)(*args, **kwargs)
        finally:
            # A fit that failed may have released something too.
            for name in _WHOLE:
                if hasattr(self.model, name):
                    vars(self.model)[name] = _Refused()


class _Refused:
    """A method that fits, after the fit."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise PrivacyBudgetError(
            "this charge is for one fit, which was made; charge the ledger again for another"
        )
