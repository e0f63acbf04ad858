"""The privacy curve of a Gaussian release beside a pair (epsilon0, delta0), and its inverse.

Of a plan that is fixed in advance, the releases that are not Gaussian are dominated by one that
reveals everything with probability delta0 and otherwise answers a question of yes or no truly with
the odds ``e^epsilon0``. Its privacy loss is ``+epsilon0`` with probability
``p = e^epsilon0 / (1 + e^epsilon0)``, else ``-epsilon0``, and losses add up. So, with the
Gaussian curve d::

    delta(epsilon) = delta0 + (1 - delta0) (p d(epsilon - epsilon0) + (1 - p) d(epsilon + epsilon0))

where ``d(-t) = 1 - e^-t + e^-t d(t)`` (telling apart which of the two data sets was meant is as
hard as the reverse). Every rounding goes up.

References: P. Kairouz, S. Oh and P. Viswanath, "The composition theorem for differential
privacy", ICML 2015, Theorem 3.3 and the dominating mechanism in its proof; J. Dong, A. Roth and
W. J. Su, "Gaussian differential privacy", JRSS B 84(1), 2022.
"""

import math
from fractions import Fraction

from skdp._gdp import gdp_delta, gdp_epsilon
from skdp._rounding import cut

__all__ = ["pair_delta", "pair_epsilon", "pair_of_two"]

# Relative error of the few elementary operations on positive numbers below, with room.
_MARGIN = 1.0 + 2.0**-46
# From here on e^-epsilon0 is below half of the spacing of doubles at one.
_LARGE = 40.0


def pair_delta(epsilon: float, mu: float, epsilon0: float, delta0: float) -> float:
    """Smallest delta at `epsilon`, rounded up, for finite `mu` and `epsilon0`.

    Parameters
    ----------
    epsilon : float
        At least 0.
    mu : float
        Of the Gaussian releases.
    epsilon0, delta0 : float
        Sums over the other releases.

    Returns
    -------
    float
        In [0, 1].
    """
    if epsilon == math.inf:
        return delta0
    # d falls with its argument, which is therefore rounded down.
    near = cut(Fraction(epsilon) - Fraction(epsilon0), up=False)
    far = cut(Fraction(epsilon) + Fraction(epsilon0), up=False)
    value = _curve(near, mu)
    if epsilon0 and value > 0.0:
        # As near >= far, the sum grows with p.
        odds = math.exp(-epsilon0) if epsilon0 < _LARGE else 0.0
        value = (value + odds * _curve(far, mu)) / (1.0 + odds) * _MARGIN
    value *= 1.0 - delta0 if delta0 else 1.0
    if delta0 and value > 0.0:
        # The margin covers the rounding of 1 - delta0; the sum may round down.
        value = math.nextafter(delta0 + value * _MARGIN, math.inf)
    return min(1.0, max(value, delta0))


def _curve(t: float, mu: float) -> float:
    """The Gaussian curve for any sign of its argument."""
    if t >= 0.0:
        return gdp_delta(t, mu)
    return -math.expm1(t) + math.exp(t) * gdp_delta(-t, mu)


def pair_epsilon(delta: float, mu: float, epsilon0: float, delta0: float) -> float:
    """Smallest epsilon at `delta`, rounded up, for finite `mu` and `epsilon0`.

    Parameters
    ----------
    delta : float
        In [0, 1].
    mu : float
        Of the Gaussian releases.
    epsilon0, delta0 : float
        Sums over the other releases.

    Returns
    -------
    float
        Infinite for ``delta < delta0``, and for ``delta = delta0`` unless mu is 0.
    """
    if delta < delta0 or (delta == delta0 and mu > 0.0):
        return math.inf
    if pair_delta(0.0, mu, epsilon0, delta0) <= delta:
        return 0.0
    # Where the answer "yes, +epsilon0" were certain; the margins can ask for a little more.
    rest = min(1.0, (delta - delta0) / (1.0 - delta0))
    high = math.nextafter(epsilon0 + gdp_epsilon(rest, mu), math.inf) if mu else epsilon0
    widening = 2.0**-44 * (high + mu)
    while pair_delta(high, mu, epsilon0, delta0) > delta:
        high, widening = high + widening, 4.0 * widening
        if not math.isfinite(high):
            return math.inf
    low = 0.0
    # What is returned was always seen to hold.
    while high - low > 2.0**-50 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if pair_delta(middle, mu, epsilon0, delta0) <= delta:
            high = middle
        else:
            low = middle
    return high


def pair_of_two(epsilon0: float, delta0: float) -> tuple[float, float]:
    """The pair for two units instead of one: ``(2 epsilon0, (1 + e^epsilon0) delta0)``.

    Parameters
    ----------
    epsilon0, delta0 : float
        Of a release with no Gaussian part.

    Returns
    -------
    epsilon0, delta0 : float
        Rounded up.
    """
    if delta0 == 0.0:
        return 2.0 * epsilon0, 0.0
    factor = math.exp(epsilon0) if epsilon0 < 700.0 else math.inf
    return 2.0 * epsilon0, min(1.0, math.nextafter((1.0 + factor) * delta0 * _MARGIN, math.inf))
