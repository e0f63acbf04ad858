"""The privacy curve of the Gaussian mechanism and its two inverses, all rounded to the safe side.

A release is mu-GDP when telling two neighbouring data sets apart is at least as hard as telling
``N(0, 1)`` from ``N(mu, 1)``. With ``x = epsilon / mu - mu / 2`` and ``y = x + mu`` its curve is::

    delta(epsilon; mu) = Phi(-x) - exp(epsilon) Phi(-y)        (the textbook form, which cancels)
                       = phi(x) (M(x) - M(y))                  M(t) = Phi(-t) / phi(t), Mills' ratio
                       = phi(x) mu g,   mu g = integral_0^inf exp(-x s - s^2/2) (1 - exp(-mu s)) ds

Three decisions make the last two forms accurate to a few units in the last place:

* ``x^2 / 2`` is an exact fraction of integers, split into a double and a correction, since
  ``exp`` turns an absolute error of its argument into a relative error of delta;
* ``M(x) - M(y)`` is a difference only where ``M(y) <= M(x) / 2``; elsewhere the trapezoidal rule
  in ``log s`` on the positive integrand, whose error falls like ``exp(-2 pi a / step)`` for an
  integrand that is analytic in a strip of half-width a (here 0.7), so that it is below 1e-18;
* above one half the complement ``phi(x) (M(-x) + M(y))``, a sum of positive terms, is used.

The inverses are Newton iterations that converge from any start, by concavity:
``log delta`` is concave in ``log mu``, because its slope ``1 / g`` decreases: ``g`` increases
if ``g <= 1 / (1 + x y)``, and ``M(t) > t / (1 + t^2)`` gives
``g <= (arctan y - arctan x) / mu <= 1 / (1 + x y)``. ``log delta`` is concave in ``epsilon``
because Mills' ratio is log-convex; the complement behaves likewise for ``x < 0``.

Error margins: with elementary functions good to 4 units in the last place the evaluations above
have a relative error below 2^-48 (the largest one seen against 60 digits is 2^-49.5), so
`gdp_delta` adds 2^-47; `gdp_mu` takes off 2^-44, since a relative change of mu changes delta by at
least half as much (``g < 2``); `gdp_epsilon` adds 2^-50 of epsilon and what 2^-46 of delta is worth
in epsilon. The margins are nested: ``gdp_epsilon(delta, gdp_mu(epsilon, delta)) <= epsilon``, but
where mu or delta is a subnormal number.
"""

import math
import numbers

import numpy as np
from scipy.special import erfcx, ndtri

_SQRT_2 = math.sqrt(2.0)
_SQRT_2PI = math.sqrt(2.0 * math.pi)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
_TINY = math.ulp(0.0)  # one quantum of the subnormal numbers
_TAIL = 42.0  # the integrand is cut where its exponential has fallen to exp(-_TAIL)
_STEP = 0.1
_NODES = np.exp(-_STEP * np.arange(230))  # down to 1e-10: the integrand starts like s^2 d(log s)

# From here on the safety margin of mu is larger than any change of x can make to it, and the
# spacing of doubles too coarse to resolve x.
_LARGE_MU = 1e15
# At most 10 steps are needed, but for subnormal numbers, whose spacing hides convergence.
_MAX_STEPS = 64


def gdp_delta(epsilon: float, mu: float) -> float:
    """Smallest delta for which a mu-GDP release is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Privacy loss that is tolerated outright, at least 0, in nats.
    mu : float
        Gaussian privacy parameter (sensitivity over noise standard deviation), at least 0;
        ``inf`` stands for a release without noise.

    Returns
    -------
    float
        ``delta(epsilon; mu)`` in [0, 1], rounded up by at most a relative 1e-14. It is 0 only for
        ``mu = 0`` or ``epsilon = inf``: Gaussian noise never gives pure differential privacy, so
        what is too small for a double is returned as the smallest positive one.

    Raises
    ------
    TypeError, ValueError
        If an argument is not a number in its range.

    References
    ----------
    B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy: analytical
    calibration and optimal denoising", ICML 2018, Theorem 8. J. Dong, A. Roth and W. Su, "Gaussian
    differential privacy", JRSS B 84(1), 2022, Corollary 2.13.

    Examples
    --------
    >>> from skdp.accounting import gdp_delta
    >>> print(f"{gdp_delta(1.0, 0.268051):.4g}")
    1e-05
    """
    epsilon = check_real(epsilon, "epsilon")
    mu = check_real(mu, "mu")
    if mu == 0.0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    if math.isinf(epsilon):
        return 0.0
    x, half_square, correction = _exact_argument(epsilon, mu)
    if x > 39.0:  # delta < Phi(-39) < 1e-330
        return _TINY
    if x < -39.0:
        return 1.0
    density = math.exp(-half_square) * (1.0 - correction) / _SQRT_2PI
    mills_y = _mills(_upper_argument(epsilon, mu))
    complement = density * (_mills(-x) + mills_y) if x < 0.0 else 1.0
    delta = 1.0 - complement if complement <= 0.5 else density * _rate(x, mu, mills_y) * mu
    return min(1.0, delta + 2.0**-47 * delta + 2.0 * _TINY)


def gdp_epsilon(delta: float, mu: float) -> float:
    """Smallest epsilon for which a mu-GDP release is (epsilon, delta)-differentially private.

    Parameters
    ----------
    delta : float
        Probability with which the loss may exceed epsilon, in [0, 1].
    mu : float
        Gaussian privacy parameter, at least 0; ``inf`` stands for a release without noise.

    Returns
    -------
    float
        The epsilon, rounded up: never below the true one. It is 0 when ``delta`` is at least
        ``gdp_delta(0, mu)`` and ``inf`` when no epsilon is large enough (``delta = 0``).

    Raises
    ------
    TypeError, ValueError
        If an argument is not a number in its range.

    Examples
    --------
    >>> from skdp.accounting import gdp_epsilon
    >>> print(f"{gdp_epsilon(1e-5, 0.268051):.4f}")
    1.0000
    """
    delta = check_real(delta, "delta", upper=1.0)
    mu = check_real(mu, "mu")
    if mu == 0.0 or delta == 1.0:
        return 0.0
    if math.isinf(mu) or delta == 0.0:
        return math.inf
    small = delta <= 0.5
    if small:
        enough = gdp_delta(0.0, mu) <= delta
    else:
        enough = _log_complement_excess(0.0, mu, 1.0 - delta)[0] >= 2.0**-48
    if enough:
        return 0.0
    # Phi(-x) >= delta, and Phi(x) >= (1 - delta) / 2 for x < 0: both ends start the monotone side.
    start = -float(ndtri(delta)) if small else float(ndtri(0.5 * (1.0 - delta)))
    epsilon = max(0.0, mu * (start + 0.5 * mu))
    if mu > _LARGE_MU:
        return epsilon * (1.0 + 2.0**-44)
    for _ in range(_MAX_STEPS):
        if small:
            excess, rate, mills_y = _log_excess(epsilon, mu, delta)
            scale = mu * rate / mills_y  # -d epsilon / d log(delta)
        else:
            excess, ratio_sum, mills_y = _log_complement_excess(epsilon, mu, 1.0 - delta)
            excess, scale = -excess, ratio_sum / mills_y
        step = excess * scale
        epsilon = max(0.0, epsilon + step)
        if abs(step) <= 2.0**-47 * scale + 2.0**-50 * epsilon:
            break
    return epsilon * (1.0 + 2.0**-50) + 2.0**-46 * scale


def gdp_mu(epsilon: float, delta: float) -> float:
    """Largest mu for which a mu-GDP release is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Privacy loss that is tolerated outright, at least 0, in nats; ``inf`` gives ``inf``.
    delta : float
        Probability with which the loss may exceed epsilon, strictly between 0 and 1.

    Returns
    -------
    float
        The mu, rounded down by a relative 2^-44 (6e-14): never above the true one. A Gaussian
        mechanism with noise of standard deviation ``sensitivity / mu`` attains it.

    Raises
    ------
    TypeError, ValueError
        If an argument is not a number in its range.

    Examples
    --------
    >>> from skdp.accounting import gdp_mu
    >>> print(f"{gdp_mu(1.0, 1e-5):.6f}")
    0.268051
    """
    epsilon = check_real(epsilon, "epsilon")
    delta = check_open_unit(delta, "delta")
    if math.isinf(epsilon):
        return math.inf
    root = _SQRT_2 * math.sqrt(epsilon)
    if delta <= 0.5:
        # Lower bounds of mu: delta <= Phi(-x), and delta <= delta(0; mu) <= mu phi(0).
        x = -float(ndtri(delta))
        mu = max(root * (root / (math.hypot(x, root) + x)) if root else 0.0, _SQRT_2PI * delta)
    else:
        x = float(ndtri(0.5 * (1.0 - delta)))
        mu = math.hypot(x, root) - x
    for _ in range(_MAX_STEPS):
        if mu > _LARGE_MU:
            break
        if delta <= 0.5:
            excess, rate, _ = _log_excess(epsilon, mu, delta)
            change = math.expm1(-excess * rate)
        else:
            excess, ratio_sum, _ = _log_complement_excess(epsilon, mu, 1.0 - delta)
            change = excess * ratio_sum / mu
        mu += mu * change
        if abs(change) <= 2.0**-48:
            break
    return max(0.0, mu - 2.0**-44 * mu - 2.0 * _TINY)


def classic_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Noise standard deviation of the classic calibration ``sqrt(2 ln(1.25 / delta)) D / epsilon``.

    Its proof needs ``epsilon < 1``, so larger values are refused; the exact calibration
    ``sensitivity / gdp_mu(epsilon, delta)`` has no such condition and always adds less noise.

    Parameters
    ----------
    epsilon : float
        Strictly between 0 and 1.
    delta : float
        Strictly between 0 and 1.
    sensitivity : float, default=1.0
        L2 sensitivity D of the released value, positive and finite, in the value's units.

    Returns
    -------
    float
        Standard deviation of the noise, in the value's units.

    Raises
    ------
    TypeError, ValueError
        If an argument is not a number in its range, ``epsilon >= 1`` included.

    References
    ----------
    C. Dwork and A. Roth, "The algorithmic foundations of differential privacy", 2014, Theorem 3.22.

    Examples
    --------
    >>> from skdp.accounting import classic_sigma
    >>> print(f"{classic_sigma(0.5, 1e-5):.3f}")
    9.690
    """
    epsilon = check_real(epsilon, "epsilon")
    delta = check_open_unit(delta, "delta")
    sensitivity = check_real(sensitivity, "sensitivity")
    if epsilon == 0.0:
        raise ValueError("epsilon must be positive, got 0: no finite noise is enough")
    if epsilon >= 1.0:
        raise ValueError(
            f"The classic calibration is proved for epsilon < 1 only, got epsilon={epsilon:g}. "
            'Use calibration="analytic", which is exact for every epsilon.'
        )
    if not 0.0 < sensitivity < math.inf:
        raise ValueError(f"sensitivity must be positive and finite, got {sensitivity}")
    return math.sqrt(2.0 * math.log(1.25 / delta)) * sensitivity / epsilon


def check_real(value: object, name: str, upper: float = math.inf) -> float:
    """Return `value` as a float in [0, `upper`]; the error names the parameter.

    Parameters
    ----------
    value : object
        A Python or numpy real number; booleans, strings, arrays and NaN are refused.
    name : str
        Name of the parameter for the error text.
    upper : float, default=inf
        Largest value allowed.

    Returns
    -------
    float
        The number, never a negative zero.

    Raises
    ------
    TypeError, ValueError
        If it is not such a number.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r} ({type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:  # an int or a fraction
        raise ValueError(f"{name} is too large for a float") from None
    if not 0.0 <= number <= upper:
        limits = f"in [0, {upper:g}]" if upper < math.inf else "at least 0"
        raise ValueError(f"{name} must be {limits}, got {number}")
    return number + 0.0


def check_open_unit(value: object, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1; the error names the parameter.

    Parameters
    ----------
    value : object
        A Python or numpy real number; booleans, strings, arrays and NaN are refused.
    name : str
        Name of the parameter for the error text.

    Returns
    -------
    float
        The number.

    Raises
    ------
    TypeError, ValueError
        If it is not such a number.
    """
    number = check_real(value, name)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be strictly between 0 and 1, got {number}")
    return number


def _exact_argument(epsilon: float, mu: float) -> tuple[float, float, float]:
    """Return x = epsilon / mu - mu / 2, and x^2 / 2 as a double and a correction to add."""
    a, b = epsilon.as_integer_ratio()
    c, d = mu.as_integer_ratio()
    top, bottom = 2 * a * d * d - b * c * c, 2 * b * c * d
    # Division of integers is correctly rounded; 2^512 would overflow when squared.
    if abs(top) >> 511 >= bottom:
        return (math.inf if top > 0 else -math.inf), math.inf, 0.0
    square, divisor = top * top, 2 * bottom * bottom
    half_square = square / divisor
    p, q = half_square.as_integer_ratio()
    return top / bottom, half_square, (square * q - p * divisor) / (divisor * q)


def _upper_argument(epsilon: float, mu: float) -> float:
    """Return y = epsilon / mu + mu / 2 (infinite where it overflows)."""
    return epsilon / mu + 0.5 * mu


def _mills(t: float) -> float:
    return _SQRT_HALF_PI * float(erfcx(t / _SQRT_2))


def _rate(x: float, mu: float, mills_y: float) -> float:
    """Return g = (M(x) - M(y)) / mu without cancellation; needs x > -1 or M(y) <= M(x) / 2."""
    mills_x = _mills(x)
    if mills_y <= 0.5 * mills_x:
        return (mills_x - mills_y) / mu
    end = 2.0 * _TAIL / (x + math.sqrt(x * x + 2.0 * _TAIL))
    s = end * _NODES
    mu = max(mu, 2.0**-200)  # the limit mu -> 0, before the products below become subnormal
    return _STEP * float(np.sum(s * np.exp(-s * (x + 0.5 * s)) * -np.expm1(-mu * s))) / mu


def _log_quotient(a: float, b: float) -> float:
    """Return log(a / b), free of overflow and accurate where the quotient is near 1."""
    (p, i), (q, j) = math.frexp(a), math.frexp(b)
    return math.log(p / q) + (i - j) * math.log(2.0)


def _log_excess(epsilon: float, mu: float, delta: float) -> tuple[float, float, float]:
    """Return log(delta(epsilon; mu) / delta), g and M(y)."""
    # The correction is below the rounding of the sum, which a margin for mu or epsilon dwarfs.
    x, half_square, _ = _exact_argument(epsilon, mu)
    mills_y = _mills(_upper_argument(epsilon, mu))
    rate = _rate(x, mu, mills_y)
    excess = _log_quotient(mu, delta) + math.log(rate / _SQRT_2PI) - half_square
    return excess, rate, mills_y


def _log_complement_excess(epsilon: float, mu: float, target: float) -> tuple[float, float, float]:
    """Return log((1 - delta(epsilon; mu)) / target), M(-x) + M(y) and M(y), for x < 0."""
    x, half_square, _ = _exact_argument(epsilon, mu)
    mills_y = _mills(_upper_argument(epsilon, mu))
    ratio_sum = _mills(-x) + mills_y
    excess = _log_quotient(ratio_sum / _SQRT_2PI, target) - half_square
    return excess, ratio_sum, mills_y
