"""Sums and roots of doubles without error, rounded to the side that is asked for."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

__all__ = ["cut", "integer_ratios", "proportional", "root", "root_of_squares", "total"]


def integer_ratios(values: Sequence[float]) -> tuple[list[int], int]:
    """Return the values as integer multiples of one over a common power of two."""
    ratios = [value.as_integer_ratio() for value in values]
    scale = max(bottom for _, bottom in ratios)
    return [top * (scale // bottom) for top, bottom in ratios], scale


def root_of_squares(values: Sequence[float]) -> float:
    """Return the root of the sum of squares of finite numbers, rounded up."""
    tops, scale = integer_ratios(values)
    return root(sum(top**2 for top in tops), scale * scale, up=True)


def total(values: Iterable[float]) -> float:
    """Return the sum of non-negative finite numbers, rounded up."""
    return cut(sum(map(Fraction, values), Fraction()), up=True)


def proportional(value: float, part: int, whole: int) -> float:
    """Return ``value * part / whole``, rounded down."""
    return cut(Fraction(value) * part / whole, up=False)


def cut(exact: Fraction, *, up: bool) -> float:
    """Return a double next to the exact value, not below it or not above it."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    if up and nearest < exact:
        return math.nextafter(nearest, math.inf)
    if not up and nearest > exact:
        return math.nextafter(nearest, -math.inf)
    return nearest


def root(top: int, bottom: int, *, up: bool) -> float:
    """Return sqrt(top / bottom) for integers, rounded up or down to a double without error."""
    # Scale by 4^shift so that the integer root has 54 or 55 bits, then cut it to 53; below the
    # normal range there are fewer bits to have.
    shift = min(55 - (top.bit_length() - bottom.bit_length()) // 2, 1074)
    top <<= 2 * max(shift, 0)
    bottom <<= 2 * max(-shift, 0)
    found = math.isqrt(top // bottom)
    extra = max(found.bit_length() - 53, 0)
    short = found >> extra << extra
    if up and short * short * bottom != top:
        short += 1 << extra
    try:
        return math.ldexp(short, -shift)
    except OverflowError:
        return math.inf
