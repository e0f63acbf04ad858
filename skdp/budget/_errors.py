"""Errors of the estimators inside a budget, without what they quote from the data."""

import re
import traceback
from collections.abc import Callable
from typing import Any

from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError

from skdp._validation import without_data

__all__ = ["guarded"]

# Of parameters and their values only.
_OF_PARAMETERS = re.compile(
    r"The '\w+' parameter of [A-Z]\w* must be "  # of a class: functions check data like this too
    r"|[\w.]+\(\) got an unexpected keyword argument '\w+'\Z"
    r"|[A-Z]\w*\.\w+ does not accept the \w+ parameter"
)
_UNKNOWN_CATEGORIES = "Found unknown categories "


def guarded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a method of an inner estimator; its errors tell no values of the data.

    Parameters
    ----------
    function : callable
        Such as ``estimator.fit``.
    *args, **kwargs : Any
        Passed on.

    Returns
    -------
    result : object

    Raises
    ------
    Exception
        Of skdp itself, and of parameters, as they are. All others anew, as in `without_data`.
    """

    def call() -> tuple[Any, Exception | None]:
        try:
            return function(*args, **kwargs), None
        except Exception as error:
            if str(error).startswith(_UNKNOWN_CATEGORIES):
                return None, ValueError(
                    "the data hold categories that are not among the given `categories` of an "
                    "encoder; its handle_unknown says what to do with them"
                )
            if _quotes_nothing(error):
                return None, error
            raise

    result, error = without_data(call)
    if error is not None:
        raise error
    return result


def _quotes_nothing(error: Exception) -> bool:
    if isinstance(error, NotFittedError | UnsetMetadataPassedError):
        return True
    # The messages of skdp are freed of values where they arise.
    frame, _ = list(traceback.walk_tb(error.__traceback__))[-1]
    own = str(frame.f_globals.get("__name__", "")).partition(".")[0] == "skdp"
    return own or _OF_PARAMETERS.match(str(error)) is not None
