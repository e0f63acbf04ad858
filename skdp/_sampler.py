r"""Exactly rounded Gaussian noise.

`rounded_gaussian` draws ``round(sigma * Z)`` for a real standard normal ``Z``: not an
approximation of that law, the law itself, provided the words of the bit source are independent
and uniform. For ``f`` on the grid, ``f + round(N) = round(f + N)``, so what is released is a
post-processing of the continuous Gaussian mechanism. This page is the proof; every constant below
refers to it. Notation: ``f(x) = exp(-x**2 / 2)``, ``h = 2**-4``, ``C = _PEAK``, ``u = 2**-53``.

One table for every scale
-------------------------
``Z`` is drawn first, as a lazily extended binary expansion, and is then multiplied by `sigma` and
rounded. The table describes the standard normal, so it is built once in a process.

Proposal
--------
The line is cut into blocks ``[b h, (b + 1) h)`` for ``-127 <= b <= 126``; the two ends
``|x| >= 127 h`` are the codes 127 and -128. A block owns a whole number of the ``2**16`` equally
likely *slots*: ``H_b = ceil(C * max f)``, numbered ``j = 0, 1, ...``; each end owns one. ``C`` is
the largest integer for which the slots suffice; what is left over goes to the two middle blocks,
where it is always rejected.

A proposal is a uniform slot, hence a block and a number ``j``, and two independent uniforms on
[0, 1): the place ``U``, ``x = (b + U) h``, and the height ``V``. It is accepted when
``j + V < C f(x)``. As ``C f(x) <= H_b``, an accepted point has density ``C f(x) / (2**16 h)`` at
``x``, in every block: exactly the normal shape. 97.2% are accepted.

* *Sure* slots, ``j + 1 <= C * inf f`` over the block, accept whatever ``U`` and ``V`` are: 94.5% of
  all proposals need no arithmetic, and their ``U`` stays uniform.
* The others draw a word for ``V`` and compare in float64. With ``z = f(x) - (j + V) / C``, the
  computed ``z`` is wrong by less than ``3 u / e`` (square and conversion of ``x``) ``+ 3 u / C``
  (``V``) ``+ u`` (``j / C``) ``+ 2 u`` (differences) ``+ 2**-60`` (the bits of ``U`` and ``V`` not
  looked at) ``< 2**-50``, plus the relative error of `numpy.exp` on [-32, 0]. The sign is trusted
  where ``|z| > _ACCEPT_MARGIN = 2**-36``: this allows an `exp` that is wrong by ``2**16`` units in
  the last place, where numpy's is wrong by one or two (the only thing assumed, not proved, and
  tests measure it). Nearer draws, one in ``2**28``, are settled by `_accept_exact`.

Tail
----
A code 127 or -128 stands for the infinite tail beyond ``r = 127 h``, cut into pieces of width
``2 h``, ``x = r + 2 h (k + U)``. Piece ``k`` is proposed with probability ``2**-(k+1)`` (zeros at
the end of a word), so to give the density above it is accepted when
``V < C f(x) 2**(k+2)``. That bound is below ``2**-32`` for k = 0, and falls with k as
``2 exp(-2 h r) < 1``. A float compare with the height of the end block, ``z = f(x) - V / C``,
comes out below ``-_ACCEPT_MARGIN`` unless ``V < 2**-25``, so the ordinary path rejects a tail
proposal rightly or passes it on to be settled exactly. Nothing is truncated.

Rounding
--------
``U`` has 64 bits at first: the word ``x`` holds ``b`` in its top byte and the 56 leading bits
below; the 8 that the block code displaced (`rest`) come last. So ``z = X 2**-68`` with
``X = 256 x + rest``, and the true value is in ``[X, X + 1) 2**-68 sigma``. Write
``x = high 2**32 + low`` and ``sigma = head + foot``, ``head`` the 22 leading bits,
``sigma < 2**e``. Then

* ``high * head * 2**-28`` has at most 31 + 22 = 53 bits: exact, and so is its distance to the
  nearest integer ``r``;
* ``high * foot * 2**-28 < 2**(e-19)``, ``low * sigma * 2**-60 < 2**(e-28)`` and
  ``rest * sigma * 2**-68 < 2**(e-60)`` are rounded once each and added to that distance: the
  three products and three sums are wrong by at most ``u (1.5 + 4.1 * 2**(e-19))``;
* the bits not yet drawn add less than ``2**(e-68)``.

Together less than ``2**-50 + 2**(e-67)``, the `bound`. Where the sum is nearer than
``1/2 - bound`` to an integer ``q``, every real number of the interval rounds to ``r + q``. The
others, about one in ``2**(66-e)``, are settled by `_round_exact`. A `sigma` below ``2**-64`` is
replaced by ``2**-64`` in this step alone, to keep clear of underflow: with ``|z| <= 8`` both
round to 0.

Settling
--------
`_accept_exact` and `_round_exact` compare integers. They hold the *box* of all ``(U, V)`` with the
bits drawn so far; a decision is taken when it is the same on the whole box, otherwise each
expansion grows by a word. So the undrawn bits are still uniform after a decision, and *how many
words are consumed does not depend on the float margins*: widen them to infinity and the output
is bitwise the same. (Tests do.) It also makes a seeded draw the same on every machine, whatever
its `exp` returns. ``exp`` of a rational is bracketed by `_exp_neg` at a growing precision; it is
irrational, so the loop ends. Intervals are half-open, ``U < 1``, so a constant bit source
terminates too.

Words
-----
A round for n values takes ``m = n + n // 32 + 8`` proposals: one request of ``m + ceil(m / 4)``
words (places, then four slots to a word, low bits first), one of a word for each slot that is not
sure, in order, then single words for settling: by proposal, acceptance first (height before
place; in the tail the piece first of all), then rounding. Values accepted beyond n are dropped;
if there are too few, another round fills up.
"""

import math
import operator
import sys
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._entropy import BitSource, keyed_source, system_source

__all__ = ["BitSource", "keyed_source", "rounded_gaussian", "system_source"]

# |sigma * z| < 2**62 for every z below 32.
_SIGMA_MAX = 2.0**57
_SLOTS = 1 << 16
_PEAK = 1589
_END = 127
# Tests widen these two: decisions nearer than the margin are settled with integers.
_ACCEPT_MARGIN = 2.0**-36
_ROUND_WIDENING = 1.0
# Proposals in flight: their arrays stay in the second-level cache.
_CHUNK = 1 << 13

# Where the parts of a 64-bit word lie in memory.
_TOP_BYTE, _HIGH, _LOW = (7, 1, 0) if sys.byteorder == "little" else (0, 0, 1)
# Arrays without dimensions: ufuncs take them in half the time of Python numbers.
_ZERO = np.array(0.0)
_MINUS_HALF_SQUARE = np.array(-(2.0**-121))  # x is in units of 2**-60
_HEIGHT_UNIT = np.array(2.0**-64 / _PEAK)


def _exp_neg(num: int, shift: int, prec: int) -> tuple[int, int]:
    """Bracket ``2**prec * exp(-num / 2**shift)`` between two integers at most 3 apart."""
    if num == 0:
        return 1 << prec, 1 << prec
    # Halve the argument below 2**-8, sum the alternating series, square back.
    halvings = max(0, num.bit_length() - shift + 8)
    work = prec + halvings + 16
    left = work - shift - halvings
    r = num << left if left >= 0 else num >> -left
    term = total = 1 << work
    k = 0
    while term:
        k += 1
        term = term * r // (k << work)
        total += -term if k & 1 else term
    # Each of the k terms is short by less than 1.01; cutting r and the series cost 3 more. Squaring
    # doubles an error and adds 2.
    error = (2 * k + 8) << halvings
    for _ in range(halvings):
        total = total * total >> work
    return max(0, total - error) >> (work - prec), ((total + error) >> (work - prec)) + 1


def _compare(level: int, n: int, weight: int, x: int, bits: int) -> int:
    """Return the sign of ``level / 2**n - weight * f(x / 2**bits)``; 0 only where x = 0."""
    prec = 128
    while True:
        low, high = (weight * e << n for e in _exp_neg(x * x, 2 * bits + 1, prec))
        at = level << prec
        if at < low:
            return -1
        if at > high:
            return 1
        if low == high:
            return 0
        prec *= 2


def _word(source: BitSource) -> int:
    return int(source.words(1)[0])


def _accept_exact(
    level: int, n: int, weight: int, x: int, bits: int, source: BitSource
) -> tuple[int, int] | None:
    """Decide ``level / 2**n < weight * f(x / 2**bits)`` for uniformly continued level and x.

    Returns x, extended if that was necessary, and its number of bits; None if rejected.
    """
    while True:
        near, far = (x, x + 1) if x >= 0 else (-x - 1, -x)
        if _compare(level + 1, n, weight, far, bits) <= 0:
            return x, bits
        if _compare(level, n, weight, near, bits) >= 0:
            return None
        level = level << 64 | _word(source)
        n += 64
        x = x << 64 | _word(source)
        bits += 64


def _round_exact(x: int, bits: int, sigma: float, source: BitSource) -> int:
    """Round ``sigma * x / 2**bits`` to an integer, x uniformly continued."""
    num, den = sigma.as_integer_ratio()
    while True:
        # floor(y + 1/2) at the first number of the interval and just before the end of it.
        half = den << bits
        first = (2 * x * num + half) // (2 * half)
        last = (2 * (x + 1) * num + half - 1) // (2 * half)
        if first == last:
            return first
        x = x << 64 | _word(source)
        bits += 64


class _Table(NamedTuple):
    """The standard normal in slots: those that are not sure come first."""

    block: NDArray[np.int8]  # of each slot
    n_unsure: NDArray[np.uint16]
    level: NDArray[np.int64]  # j of each unsure slot
    height: NDArray[np.float64]  # j / C


@cache
def _table() -> _Table:
    # Thread-safe: two threads may both build it, and get equal values that nobody changes.
    prec = 64
    edges = [_exp_neg(b * b, 9, prec) for b in range(_END + 1)]
    owned = [-(-_PEAK * high >> prec) for _, high in edges[:_END]] + [1]
    sure = [_PEAK * low >> prec for low, _ in edges[1:]] + [0]
    owned[0] += _SLOTS // 2 - sum(owned)
    code = np.arange(_END + 1)
    codes = np.concatenate([code, ~code]).astype(np.int8)  # x -> -x maps block b to ~b
    n_sure = np.array(sure * 2)
    n_unsure = np.array(owned * 2) - n_sure
    level = np.concatenate([np.arange(s, s + k) for s, k in zip(n_sure, n_unsure, strict=True)])
    block = np.concatenate([np.repeat(codes, n_unsure), np.repeat(codes, n_sure)])
    return _Table(block, np.array(level.size, np.uint16), level, level / _PEAK)


class _Scale(NamedTuple):
    """The factors of the rounding step (see the module's notes)."""

    sigma: float
    head: NDArray[np.float64]
    foot: NDArray[np.float64]
    low: NDArray[np.float64]
    rest: NDArray[np.float64]
    bound: float


@lru_cache(maxsize=256)
def _scale(sigma: float) -> _Scale:
    safe = max(sigma, 2.0**-64)
    mantissa, e = math.frexp(safe)
    head = math.ldexp(math.floor(mantissa * 2.0**22), e - 22)
    return _Scale(
        sigma=sigma,
        head=np.array(head * 2.0**-28),
        foot=np.array((safe - head) * 2.0**-28),
        low=np.array(safe * 2.0**-60),
        rest=np.array(safe * 2.0**-68),
        bound=2.0**-50 + 2.0 ** (e - 67),
    )


class _Proposals:
    """One round of proposals, as arrays."""

    def __init__(self, m: int, source: BitSource, table: _Table) -> None:
        words = source.words(m + (m + 3) // 4)
        if not words.flags.writeable:
            words = words.copy()
        self.table = table
        self.source = source
        self.slots = words[m:].view(np.uint16)[:m]
        self.x = words[:m].view(np.int64)
        self.code = self.x.view(np.int8)[_TOP_BYTE::8]
        self.rest = self.code.view(np.uint8).copy()
        self.code[:] = table.block.take(self.slots)
        # Values whose expansion was settled, and so is longer than `x` and `rest` tell.
        self.settled: dict[int, tuple[int, int]] = {}

    def accept(self) -> NDArray[np.bool_]:
        unsure = self.slots < self.table.n_unsure
        at = unsure.nonzero()[0]
        accepted = ~unsure
        if not at.size:
            return accepted
        slots = self.slots[at]
        v = self.source.words(at.size)
        z = self.x[at].astype(np.float64)
        z *= z
        z *= _MINUS_HALF_SQUARE
        np.exp(z, z)
        z -= self.table.height[slots]
        z -= v.astype(np.float64) * _HEIGHT_UNIT
        verdict = z > _ZERO
        np.abs(z, z)
        if z[z.argmin()] <= _ACCEPT_MARGIN:
            for i in (z <= _ACCEPT_MARGIN).nonzero()[0].tolist():
                verdict[i] = self._settle(int(at[i]), int(slots[i]), int(v[i]))
        accepted[at] = verdict
        return accepted

    def _settle(self, i: int, slot: int, v: int) -> bool:
        b = int(self.code[i])
        if b in (_END, ~_END):
            if v >> 32:
                return False
            k = 0
            while not (word := _word(self.source)):
                k += 64
            k += (word & -word).bit_length() - 1
            x = (_END << 63) + (k << 64) + (self._place(i) - (b << 64))
            got = _accept_exact(v, 64, _PEAK << (k + 2), x if b > 0 else ~x, 67, self.source)
        else:
            level = int(self.table.level[slot]) << 64 | v
            got = _accept_exact(level, 64, _PEAK, self._place(i), 68, self.source)
        if got is not None and got[1] != 68:
            self.settled[i] = got
        return got is not None

    def _place(self, i: int) -> int:
        return int(self.x[i]) << 8 | int(self.rest[i])

    def round(self, scale: _Scale, accepted: NDArray[np.bool_]) -> NDArray[np.int64]:
        high = self.x.view(np.int32)[_HIGH::2].astype(np.float64)
        t = high * scale.head
        r = np.rint(t)
        t -= r
        high *= scale.foot
        t += high
        t += self.x.view(np.uint32)[_LOW::2].astype(np.float64) * scale.low
        t += self.rest.astype(np.float64) * scale.rest
        q = np.rint(t, high)
        t -= q
        y = r.astype(np.int64)
        y += q.astype(np.int64)
        np.abs(t, t)
        limit = 0.5 - scale.bound * _ROUND_WIDENING
        if self.settled or t[t.argmax()] > limit:
            near = t > limit
            near[list(self.settled)] = True
            near &= accepted
            for i in near.nonzero()[0].tolist():
                x, bits = self.settled.get(i) or (self._place(i), 68)
                y[i] = _round_exact(x, bits, scale.sigma, self.source)
        return y[accepted]


def rounded_gaussian(sigma: float, size: int, source: BitSource) -> NDArray[np.int64]:
    """Draw independent values of ``round(N(0, sigma**2))``, exactly distributed.

    Parameters
    ----------
    sigma : float
        Standard deviation in grid units, ``0 < sigma <= 2**57``. It is taken as the exact binary
        number that the float holds.
    size : int
        How many values to draw.
    source : BitSource
        Where the bits come from: `system_source` for noise that must stay secret,
        `keyed_source` for noise that must be reproducible.

    Returns
    -------
    ndarray of shape (size,) and dtype int64
        Noise in grid units. A value beyond int64 (at the largest `sigma` a draw beyond 64
        standard deviations, probability below 2**-2900) raises OverflowError.

    Raises
    ------
    ValueError
        If `sigma` or `size` is out of range.

    Examples
    --------
    >>> from skdp._sampler import keyed_source, rounded_gaussian
    >>> noise = rounded_gaussian(2.0**40, 3, keyed_source(b"example"))
    >>> noise.dtype, noise.shape
    (dtype('int64'), (3,))
    """
    sigma = float(sigma)
    size = operator.index(size)
    if not 0.0 < sigma <= _SIGMA_MAX:
        raise ValueError(f"sigma must be positive and at most 2**57 grid units, got {sigma!r}.")
    if size < 0:
        raise ValueError(f"size must not be negative, got {size}.")
    table = _table()
    scale = _scale(sigma)
    out = np.empty(size, np.int64)
    done = 0
    while done < size:
        need = min(_CHUNK, size - done)
        # 2.8% are rejected; one round is enough but for a few calls in a thousand.
        proposals = _Proposals(need + need // 32 + 8, source, table)
        values = proposals.round(scale, proposals.accept())[:need]
        out[done : done + values.size] = values
        done += values.size
    return out
