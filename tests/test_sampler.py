"""The noise sampler: exactness, distribution, independence of everything but its bits.

False alarms. Every statistical check below compares a p-value with ``ALARM = 1e-9``; there are
fewer than 200 of them, so a correct sampler fails this file with probability below 2e-7. Keys are
fixed, so a run that passed once passes again. The tests called `..._check_sees_...` show
that the same checks, at the same sample size, do fail on wrong samplers.
"""

import math
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import chi2

from skdp import _entropy, _sampler
from skdp._entropy import keyed_source, system_source
from skdp._sampler import rounded_gaussian

ALARM = 1e-9
SCALES = [0.3, 0.9, 2.0, 2.2, 16.3, 1000.5, 2.0**20, 1.37 * 2.0**40, 2.0**55]


# ---------------------------------------------------------------- bit sources for tests


class Constant:
    """The same word for ever."""

    def __init__(self, word):
        self.word = word

    def words(self, n):
        return np.full(n, self.word, np.uint64)


class Replay:
    """Given words first, then a keyed stream; counts words, and requests for a single one."""

    def __init__(self, first=(), key=b"replay"):
        self.first = list(first)
        self.rest = keyed_source(key)
        self.taken = self.singles = 0

    def words(self, n):
        self.taken += n
        self.singles += n == 1
        head, self.first = self.first[:n], self.first[n:]
        tail = self.rest.words(n - len(head)).tolist()
        return np.array(head + tail, dtype=np.uint64)


class TailOnly:
    """Makes every proposal one of the infinite tail that passes its first test.

    A request of a round is recognised by its place in the sequence: places and slots, then
    heights; single words settle draws.
    """

    def __init__(self, key):
        self.stream = keyed_source(key)
        block = _sampler._table().block
        self.slots = np.flatnonzero((block == 127) | (block == -128)).astype(np.uint16)
        assert self.slots.size == 2
        self.proposals = 0
        self.heights_next = False

    def words(self, n):
        words = self.stream.words(n)
        if n == 1:
            return words
        if self.heights_next:
            words >>= np.uint64(32)
        else:
            m = next(m for m in range(n) if m + (m + 3) // 4 == n)
            self.proposals += m
            slots = words[m:].view(np.uint16)
            slots[:] = self.slots[slots & 1]
        self.heights_next = not self.heights_next
        return words


# ---------------------------------------------------------------- statistics


def probabilities(ends, sigma):
    """Of the cells (-inf, ends[0]], (ends[0], ends[1]], ..., (ends[-1], inf) of round(N)."""
    z = (ends + 0.5) / sigma
    left = np.concatenate([[-np.inf], z])
    right = np.concatenate([z, [np.inf]])
    return np.where(left > 0, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))


def chi_square(counts, p):
    """P-value; cells that expect fewer than 8 are merged into one."""
    expected = p * counts.sum()
    small = expected < 8
    if small.any():
        counts = np.append(counts[~small], counts[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1)


def body(sigma, bins):
    """Ends of cells of about equal probability."""
    return np.unique(np.rint(sigma * ndtri(np.arange(1, bins) / bins)))


def tails(sigma):
    """Ends of cells beyond 3, 3.5, 4 and 4.5 sigma, either side apart."""
    at = np.rint(sigma * np.array([3.0, 3.5, 4.0, 4.5]))
    return np.unique(np.concatenate([-at - 1, at]))


def p_value(values, sigma, ends):
    p = probabilities(ends, sigma)
    return chi_square(np.bincount(np.searchsorted(ends, values), minlength=p.size), p)


def p_values(values, sigma):
    return [p_value(values, sigma, ends) for ends in (body(sigma, 64), tails(sigma))]


def draw(sigma, key=b"distribution", size=4_000_000):
    return rounded_gaussian(sigma, size, keyed_source(key, repr(sigma).encode()))


# ---------------------------------------------------------------- distribution


@pytest.mark.parametrize("sigma", SCALES)
def test_distribution(sigma):
    values = draw(sigma)
    assert values.dtype == np.int64
    assert min(p_values(values, sigma)) > ALARM
    assert p_value(values, sigma, body(sigma, 1000)) > ALARM


@pytest.mark.slow
@pytest.mark.parametrize("sigma", SCALES)
def test_distribution_at_length(sigma):
    source = keyed_source(b"at length", repr(sigma).encode())
    ends = np.unique(np.concatenate([body(sigma, 2000), tails(sigma)]))
    p = probabilities(ends, sigma)
    counts = np.zeros(p.size, np.int64)
    for _ in range(100):
        values = rounded_gaussian(sigma, 1_000_000, source)
        counts += np.bincount(np.searchsorted(ends, values), minlength=p.size)
    assert chi_square(counts, p) > ALARM


@pytest.mark.parametrize("sigma", SCALES)
def test_the_check_sees_a_scale_half_a_percent_off(sigma):
    assert min(p_values(draw(1.005 * sigma), sigma)) < ALARM


def test_the_check_sees_a_discrete_gaussian():
    k = np.arange(-40, 41)
    p = np.exp(-(k**2) / 8.0)
    values = np.random.default_rng(1).choice(k, 4_000_000, p=p / p.sum())
    assert min(p_values(values, 2.0)) < ALARM


@pytest.mark.parametrize("verdict", [False, True])
def test_the_check_sees_arbitrary_acceptance_of_near_draws(monkeypatch, verdict):
    monkeypatch.setattr(_sampler, "_ACCEPT_MARGIN", 2.0**-6)
    monkeypatch.setattr(_sampler._Proposals, "_settle", lambda *_: verdict)
    assert min(p_values(draw(1000.5), 1000.5)) < ALARM


@pytest.mark.parametrize("sigma", [0.3, 2.0])
def test_the_check_sees_arbitrary_rounding_of_near_draws(monkeypatch, sigma):
    bound = _sampler._scale(sigma).bound
    monkeypatch.setattr(_sampler, "_ROUND_WIDENING", 0.05 / bound)
    monkeypatch.setattr(
        _sampler,
        "_round_exact",
        lambda x, bits, sigma, source: math.floor(sigma * x / 2.0**bits),
    )
    assert min(p_values(draw(sigma), sigma)) < ALARM


@pytest.mark.parametrize("sigma", [s for s in SCALES if s > 1e4])
def test_every_residue_is_reached_equally(sigma):
    # No grid inside the lattice: the low bits are where a float sampler leaks (Mironov 2012).
    values = draw(sigma, b"residue", 1_000_000)
    for modulus in (2, 3, 255, 256):
        counts = np.bincount(values % modulus, minlength=modulus)
        assert chi_square(counts, np.full(modulus, 1 / modulus)) > ALARM


def test_successive_draws_are_independent():
    ends = body(1000.5, 8)
    p = probabilities(ends, 1000.5)
    cell = np.searchsorted(ends, draw(1000.5, b"pairs", 2_000_000))
    for lag in (1, 2, 7, 8192):
        counts = np.bincount(8 * cell[:-lag] + cell[lag:], minlength=64)
        assert chi_square(counts, np.outer(p, p).ravel()) > ALARM


@pytest.mark.parametrize("size", [1, 7, 30])
def test_small_calls_have_the_same_law(size):
    source = keyed_source(b"small", bytes([size]))
    values = np.concatenate([rounded_gaussian(16.3, size, source) for _ in range(20_000)])
    assert p_value(values, 16.3, body(16.3, 64)) > ALARM


@pytest.mark.parametrize("sigma", [5e-324, 2.0**-80, 1e-3, 0.05, 0.1])
def test_scales_far_below_the_grid(sigma):
    values = draw(sigma, b"below", 1_000_000)
    p = 2 * ndtr(-0.5 / sigma)
    assert np.abs(values).max() <= 1
    excess = np.count_nonzero(values) - p * values.size
    assert abs(excess) <= 6.2 * math.sqrt(p * values.size) + 1e-6


# ---------------------------------------------------------------- tail


def tail_p_value(values, sigma):
    """Against the law of round(sigma Z) given |Z| > 127 / 16, the sign apart."""
    upper = ndtr(-127 / 16)
    ends = np.unique(np.rint(-sigma * ndtri(upper * np.arange(1, 40) / 40)))
    survival = np.exp(log_ndtr(-(ends + 0.5) / sigma) - log_ndtr(-127 / 16))
    p = -np.diff(np.concatenate([[1.0], survival, [0.0]]))
    p = np.concatenate([p, p]) / 2
    cell = np.searchsorted(ends, np.abs(values)) + (values < 0) * (ends.size + 1)
    return chi_square(np.bincount(cell, minlength=p.size), p)


@pytest.mark.parametrize("sigma", [2.0**20, 3.3 * 2.0**50])
def test_the_tail_beyond_the_table(sigma):
    values = rounded_gaussian(sigma, 12_000, TailOnly(b"tail"))
    assert np.abs(values).min() >= 127 / 16 * sigma - 1
    assert tail_p_value(values, sigma) > ALARM


def test_the_tail_has_the_right_mass():
    proposals = _sampler._Proposals(16_384, TailOnly(b"mass"), _sampler._table())
    # C times the integral of f over an end, in units of h and of the slot's 2**-32 part.
    p = _sampler._PEAK * 16 * math.sqrt(2 * math.pi) * ndtr(-127 / 16) * 2.0**32
    accepted = np.count_nonzero(proposals.accept())
    assert abs(accepted - 16_384 * p) < 6.2 * math.sqrt(16_384 * p * (1 - p))


def test_the_tail_check_sees_an_exponential_tail(monkeypatch):
    # Geometric pieces without the exact acceptance: exponential instead of normal.
    monkeypatch.setattr(
        _sampler, "_accept_exact", lambda level, n, weight, x, bits, source: (x, bits)
    )
    assert tail_p_value(rounded_gaussian(2.0**20, 12_000, TailOnly(b"tail")), 2.0**20) < ALARM


# ---------------------------------------------------------------- exactness


def reference(sigma, size, source):
    """The sampler again, from the notes in its docstring: one draw at a time, no float64."""
    with mpmath.workdps(120):
        f = [_f(mpmath.mpf(b) / 16) for b in range(128)]
        owned = [int(mpmath.ceil(1589 * f[b])) for b in range(127)] + [1]
        sure = [int(mpmath.floor(1589 * f[b + 1])) for b in range(127)] + [0]
        owned[0] += 2**15 - sum(owned)
        codes = [*range(128), *range(-1, -129, -1)]
        unsure_slots = [
            (b, j) for b, n, s in zip(codes, owned * 2, sure * 2, strict=True) for j in range(s, n)
        ]
        sure_slots = [b for b, s in zip(codes, sure * 2, strict=True) for _ in range(s)]
        values = []
        while len(values) < size:
            need = min(8192, size - len(values))
            values += _reference_round(sigma, need, source, unsure_slots, sure_slots)[:need]
    return values


def _f(x):
    return mpmath.exp(-x * x / 2)


def _reference_round(sigma, need, source, unsure_slots, sure_slots):
    m = need + need // 32 + 8
    words = source.words(m + -(-m // 4)).tolist()
    slots = [words[m + i // 4] >> 16 * (i % 4) & 0xFFFF for i in range(m)]
    places = [(w & (2**56 - 1)) << 8 | w >> 56 for w in words[:m]]
    heights = iter(
        source.words(k).tolist() if (k := sum(s < len(unsure_slots) for s in slots)) else []
    )
    accepted = []
    for slot, place in zip(slots, places, strict=True):
        if slot >= len(unsure_slots):
            accepted.append(((sure_slots[slot - len(unsure_slots)] << 64) + place, 68))
            continue
        b, j = unsure_slots[slot]
        v, weight, bits = next(heights), 1589, 68
        if b in (127, -128):
            if v >= 2**32:
                continue
            k = 0
            while (w := int(source.words(1)[0])) == 0:
                k += 64
            k += bin(w)[::-1].index("1")
            x, bits, weight = (127 << 63) + (k << 64) + place, 67, weight * 2 ** (k + 2)
            if b < 0:
                x = -x - 1
        else:
            x = (b << 64) + place
        level, n = (j << 64) + v, 64
        while True:
            ends = sorted(weight * _f(mpmath.ldexp(mpmath.mpf(e), -bits)) for e in (x, x + 1))
            if mpmath.ldexp(mpmath.mpf(level + 1), -n) <= ends[0]:
                accepted.append((x, bits))
                break
            if mpmath.ldexp(mpmath.mpf(level), -n) >= ends[1]:
                break
            level, n = level << 64 | int(source.words(1)[0]), n + 64
            x, bits = x << 64 | int(source.words(1)[0]), bits + 64
    values = []
    for x, bits in accepted:
        while True:
            low = Fraction(sigma) * Fraction(x, 2**bits) + Fraction(1, 2)
            high = Fraction(sigma) * Fraction(x + 1, 2**bits) + Fraction(1, 2)
            if math.floor(low) == math.ceil(high) - 1:
                values.append(math.floor(low))
                break
            x, bits = x << 64 | int(source.words(1)[0]), bits + 64
    return values


def hard_words(sigma, size, seed):
    """Words of a first round whose decisions are as near as 64 bits can make them."""
    rng = np.random.default_rng(seed)
    table = _sampler._table()
    n_unsure = int(table.n_unsure)
    owners = zip(table.block[:n_unsure].tolist(), table.level.tolist(), strict=True)
    slot_of = {key: slot for slot, key in enumerate(owners)}
    m = size + size // 32 + 8
    places, slots, heights = [], [], []
    for i in range(m):
        near = int(rng.choice([-40, -3, -1, 0, 1, 3, 40, -(2**20), 2**20, 2**34, -(2**34)]))
        place = int(rng.integers(2**64, dtype=np.uint64))
        if i % 3 == 0:  # a sure slot and a place next to a rounding boundary, if it has one
            slot = int(rng.integers(n_unsure, 2**16))
            b = int(table.block[slot])
            y = math.floor(Fraction(sigma) * ((b << 64) + place) / 2**68) + Fraction(1, 2)
            x = round(y / Fraction(sigma) * 2**68) + near // 20
            place = min(max(x - (b << 64), 0), 2**64 - 1)
        else:  # a height next to the density
            b = int(table.block[rng.integers(n_unsure)])
            if i % 15 == 1:
                place = int(rng.choice(np.array([0, 1, 2**64 - 1], np.uint64)))
            with mpmath.workdps(60):
                level = 1589 * _f(mpmath.ldexp(mpmath.mpf((b << 64) + place), -68))
                j = 0 if b in (127, -128) else int(mpmath.floor(level))
                v = int(mpmath.floor(mpmath.ldexp(level - j, 64))) + near
            slot = slot_of[b, j]
            if b in (127, -128):
                v = int(rng.integers(2**33))
            heights.append(min(max(v, 0), 2**64 - 1))
        places.append((place >> 8) | (place & 255) << 56)
        slots.append(slot)
    slots += [0] * (-m % 4)
    packed = [sum(s << 16 * k for k, s in enumerate(slots[i : i + 4])) for i in range(0, m, 4)]
    return places + packed + heights


HARD_SCALES = [0.3, 2.2, 1000.5, 2.0**20, 1.37 * 2.0**40, 1.9 * 2.0**56, 2.0**57]


def everything_settled(monkeypatch):
    monkeypatch.setattr(_sampler, "_ACCEPT_MARGIN", math.inf)
    monkeypatch.setattr(_sampler, "_ROUND_WIDENING", math.inf)


@pytest.mark.parametrize("sigma", HARD_SCALES)
@pytest.mark.parametrize("seed", range(3))
def test_hard_draws_agree_with_the_reference_bit_for_bit(monkeypatch, sigma, seed):
    first = hard_words(sigma, 300, seed)
    expected_source, source, settled_source = (Replay(first) for _ in range(3))
    expected = reference(sigma, 300, expected_source)
    values = rounded_gaussian(sigma, 300, source)
    everything_settled(monkeypatch)
    settled = rounded_gaussian(sigma, 300, settled_source)
    assert values.tolist() == expected == settled.tolist()
    assert source.taken == expected_source.taken == settled_source.taken
    # The words were hard indeed: some decisions needed more of them.
    assert source.singles > 20


@pytest.mark.parametrize("broken", ["_ACCEPT_MARGIN", "_ROUND_WIDENING"])
def test_hard_draws_need_the_margins(monkeypatch, broken):
    monkeypatch.setattr(_sampler, broken, 0.0)
    agree = [
        rounded_gaussian(sigma, 300, Replay(first := hard_words(sigma, 300, 0))).tolist()
        == reference(sigma, 300, Replay(first))
        for sigma in HARD_SCALES
    ]
    assert not all(agree)


@pytest.mark.parametrize("sigma", [0.3, 1000.5, 1.37 * 2.0**40, 2.0**57])
def test_settling_everything_changes_nothing(monkeypatch, sigma):
    sources = [keyed_source(b"settled") for _ in range(2)]
    values = rounded_gaussian(sigma, 50_000, sources[0])
    everything_settled(monkeypatch)
    assert np.array_equal(values, rounded_gaussian(sigma, 50_000, sources[1]))
    # Both have taken the same number of requests.
    assert np.array_equal(sources[0].words(4), sources[1].words(4))


@settings(max_examples=60, deadline=None)
@given(
    sigma=st.floats(2.0**-20, 2.0**57),
    size=st.integers(0, 60),
    key=st.binary(max_size=8),
)
def test_draws_agree_with_the_reference(sigma, size, key):
    values = rounded_gaussian(sigma, size, keyed_source(key))
    assert values.tolist() == reference(sigma, size, keyed_source(key))


def far_words(piece, zeros):
    """Words of a call for one value: in the given piece of the upper tail, at height zero."""
    block = _sampler._table().block
    tail, sure = int(np.flatnonzero(block == 127)[0]), 2**16 - 1
    slots = [tail] + [sure] * 8 + [0] * 3
    packed = [sum(s << 16 * k for k, s in enumerate(slots[i : i + 4])) for i in (0, 4, 8)]
    return [0] * 9 + packed + [0] + [0] * (piece // 64) + [1 << piece % 64] + [0] * zeros


@pytest.mark.parametrize("piece", [0, 5, 63, 64, 69, 200])
def test_far_pieces_of_the_tail_are_reached(piece):
    first = far_words(piece, zeros=16)
    source, expected_source = Replay(first), Replay(first)
    values = rounded_gaussian(1.3 * 2.0**50, 1, source).tolist()
    assert values == reference(1.3 * 2.0**50, 1, expected_source)
    assert source.taken == expected_source.taken
    # x = 127 / 16 + piece / 8, the start of the piece, in words that are all zero.
    assert values[0] == round(Fraction(1.3 * 2.0**50) * (127 + 2 * piece) / 16)


def test_the_peak_of_the_density_is_settled_without_more_words():
    # exp(0) = 1 is the one value that equality can meet: V < f is false there.
    peak = _sampler._PEAK
    source = Replay()
    for x in (0, -1):
        assert _sampler._accept_exact(peak << 64, 64, peak, x, 68, source) is None
    assert source.taken == 0


def test_a_value_beyond_int64_is_an_error():
    with pytest.raises(OverflowError):
        rounded_gaussian(2.0**57, 1, Replay(far_words(460, zeros=120)))


# ---------------------------------------------------------------- table and bounds


@settings(max_examples=300, deadline=None)
@given(
    num=st.integers(0, 2**140),
    shift=st.integers(0, 140),
    prec=st.sampled_from([16, 64, 128, 256]),
)
def test_exp_is_bracketed(num, shift, prec):
    if num >> shift > 2**14:
        num >>= 100
    low, high = _sampler._exp_neg(num, shift, prec)
    with mpmath.workprec(prec + 200):
        true = mpmath.ldexp(mpmath.exp(-mpmath.ldexp(mpmath.mpf(num), -shift)), prec)
        assert low <= true <= high
    assert high - low <= 3


def test_the_table_bounds_the_density():
    table = _sampler._table()
    n_unsure = int(table.n_unsure)
    codes = np.arange(-128, 128)
    owned = np.bincount(table.block.astype(int) + 128, minlength=256)
    unsure = np.bincount(table.block[:n_unsure].astype(int) + 128, minlength=256)
    assert owned.sum() == 2**16
    with mpmath.workdps(50):
        for code, n, k in zip(codes, owned, unsure, strict=True):
            near = code if code >= 0 else -code - 1
            if near == 127:
                assert (n, k) == (1, 1)
                continue
            assert n >= _sampler._PEAK * _f(mpmath.mpf(near) / 16)
            assert n - k <= _sampler._PEAK * _f(mpmath.mpf(near + 1) / 16)
            # Levels of the unsure slots are the ones above the sure ones, each once.
            levels = table.level[table.block[:n_unsure] == code]
            assert levels.tolist() == list(range(n - k, n))
        # The next peak does not fit in the slots.
        peak = _sampler._PEAK + 1
        needed = 2 * (sum(mpmath.ceil(peak * _f(mpmath.mpf(b) / 16)) for b in range(127)) + 1)
        assert needed > 2**16
        # The tail: the first acceptance bound, and its decrease from piece to piece.
        assert _sampler._PEAK * _f(mpmath.mpf(127) / 16) * 4 < mpmath.mpf(2) ** -32
        assert 2 * mpmath.exp(-mpmath.mpf(127) / 128) < 1
    # A rejected tail proposal is never accepted by the float compare.
    assert _sampler._PEAK * _sampler._ACCEPT_MARGIN > 2.0**-32


def test_exp_of_this_machine_is_well_inside_the_margin():
    x = -32 * np.random.default_rng(0).random(5000)
    with mpmath.workdps(40):
        true = [mpmath.exp(mpmath.mpf(float(v))) for v in x]
        worst = max(abs(mpmath.mpf(float(e)) / t - 1) for e, t in zip(np.exp(x), true, strict=True))
    assert worst < 2.0**-50


# ---------------------------------------------------------------- interface


def test_seeded_draws_are_pinned():
    # Changing any of these breaks every seeded fit of every user.
    assert keyed_source(b"ab", b"c").words(2).tolist() == [
        6779390774091507733,
        15609277808044458144,
    ]
    values = rounded_gaussian(1000.5, 12, keyed_source(b"pinned"))
    assert values.tolist() == [361, -1300, -11, 1584, 699, -849, -513, 660, 745, 519, 978, -462]
    assert int(rounded_gaussian(2.0**40, 20_000, keyed_source(b"pinned")).sum()) == -150465350330226


def test_keys_are_not_confused():
    keys = [(), (b"",), (b"", b""), (b"ab", b"c"), (b"a", b"bc"), (b"abc",), (b"c", b"ab")]
    draws = {rounded_gaussian(2.0**40, 4, keyed_source(*k)).tobytes() for k in keys}
    assert len(draws) == len(keys)


def test_different_keys_give_independent_noise():
    ends = body(1000.5, 8)
    p = probabilities(ends, 1000.5)
    a, b = (
        np.searchsorted(ends, rounded_gaussian(1000.5, 1_000_000, keyed_source(key)))
        for key in (b"0", b"1")
    )
    assert chi_square(np.bincount(8 * a + b, minlength=64), np.outer(p, p).ravel()) > ALARM


def test_a_keyed_source_moves_on():
    source = keyed_source(b"k")
    assert source.words(3).tolist() != source.words(3).tolist()


@pytest.mark.parametrize("size", [0, 1, 2, 100, 8191, 8192, 8193, 30_000])
def test_sizes(size):
    values = rounded_gaussian(3.0, size, keyed_source(b"size"))
    assert values.shape == (size,)
    assert values.dtype == np.int64
    assert values.flags.writeable


@pytest.mark.parametrize(
    "sigma", [0.0, -1.0, math.nan, math.inf, -math.inf, math.nextafter(2.0**57, math.inf)]
)
def test_scales_out_of_range_are_refused(sigma):
    with pytest.raises(ValueError, match="sigma must be"):
        rounded_gaussian(sigma, 3, keyed_source())


def test_a_negative_size_is_refused():
    with pytest.raises(ValueError, match="size must not"):
        rounded_gaussian(1.0, -1, keyed_source())


@pytest.mark.parametrize("word", [0, 2**64 - 1])
@pytest.mark.parametrize("sigma", [5e-324, 0.3, 8.0, 1000.5, 2.0**20, 2.0**57])
def test_extreme_words_end(sigma, word):
    values = rounded_gaussian(sigma, 100, Constant(word))
    assert (values == values[0]).all()
    assert abs(int(values[0])) <= 8 * sigma + 1


def test_read_only_words_are_accepted():
    class ReadOnly:
        def words(self, n, source=keyed_source(b"k")):  # noqa: B008
            words = source.words(n)
            words.flags.writeable = False
            return words

    expected = rounded_gaussian(2.0**40, 1000, keyed_source(b"k"))
    assert np.array_equal(rounded_gaussian(2.0**40, 1000, ReadOnly()), expected)


def test_numpy_global_state_is_neither_used_nor_changed():
    expected = [rounded_gaussian(s, 20_000, keyed_source(b"g")) for s in (5e-324, 2.0, 2.0**57)]
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    with np.errstate(all="raise"):
        values = [rounded_gaussian(s, 20_000, keyed_source(b"g")) for s in (5e-324, 2.0, 2.0**57)]
        np.random.seed(0)  # noqa: NPY002
        a = rounded_gaussian(2.0**40, 10, system_source())
        np.random.seed(0)  # noqa: NPY002
        b = rounded_gaussian(2.0**40, 10, system_source())
        assert np.geterr()["over"] == "raise"
    np.random.seed(0)  # noqa: NPY002
    assert all(map(np.array_equal, values, expected))
    assert not np.array_equal(a, b)
    assert before.size


# ---------------------------------------------------------------- entropy


@pytest.fixture(params=["with cryptography", "without"])
def system(request, monkeypatch):
    if request.param == "without":
        monkeypatch.setattr(_entropy, "_cipher_factory", lambda: None)
    elif _entropy._cipher_factory() is None:
        pytest.skip("cryptography is not installed")
    return system_source


@pytest.mark.parametrize("n", [4, 5000])
def test_system_sources_differ_and_move_on(system, n):
    source, other = system(), system()
    draws = [source.words(n), source.words(n), other.words(n)]
    assert all(w.shape == (n,) and w.dtype == np.uint64 for w in draws)
    assert len({w.tobytes() for w in draws}) == 3


def test_system_bits_are_balanced(system):
    words = system().words(200_000)
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).sum(axis=0, dtype=int)
    assert (abs(bits - 100_000) < 7.2 * math.sqrt(50_000)).all()
    assert len(np.unique(words)) == words.size


def test_cipher_stream_does_not_repeat_across_pieces():
    # Longer than the block of zeros that is encrypted at a time.
    words = system_source().words(40_000)
    assert len(np.unique(words)) == words.size


def test_system_noise_has_the_law(system):
    values = rounded_gaussian(1.37 * 2.0**40, 1_000_000, system())
    # Not a fixed key: this one may fail by chance, once in 5e8 runs.
    assert min(p_values(values, 1.37 * 2.0**40)) > ALARM


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("n", [4, 5000])
def test_forked_children_draw_different_words(system, n):
    source = system()
    source.words(n)  # the parent's cipher is running
    draws = []
    for _ in range(2):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                with os.fdopen(write, "wb") as pipe:
                    pipe.write(source.words(n)[:4].tobytes())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            draws.append(pipe.read())
        os.waitpid(pid, 0)
    draws.append(source.words(n)[:4].tobytes())
    assert {len(d) for d in draws} == {32}
    assert len(set(draws)) == 3


def test_a_fork_into_the_same_process_id_takes_a_new_key(monkeypatch):
    # As in a new pid namespace: the number of forks tells what the id does not.
    source = system_source()
    source.words(5000)
    cipher = source._cipher
    source.words(5000)
    assert source._cipher is cipher
    monkeypatch.setattr(_entropy, "_forks", _entropy._forks + 1)
    source.words(5000)
    assert cipher is None or source._cipher is not cipher


def test_threads_share_a_source_and_the_table():
    _sampler._table.cache_clear()
    source = system_source()
    start = threading.Barrier(4)

    def work(i):
        start.wait()
        mine = rounded_gaussian(2.0**40, 20_000, keyed_source(b"thread", bytes([i])))
        return mine, rounded_gaussian(2.0**40, 20_000, source)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    for i, (mine, _) in enumerate(results):
        expected = rounded_gaussian(2.0**40, 20_000, keyed_source(b"thread", bytes([i])))
        assert np.array_equal(mine, expected)
    shared = np.concatenate([s for _, s in results])
    assert len(np.unique(shared)) > shared.size - 5


def test_keyed_noise_does_not_need_cryptography(monkeypatch):
    expected = rounded_gaussian(2.0**40, 10_000, keyed_source(b"k"))
    monkeypatch.setattr(_entropy, "_cipher_factory", lambda: None)
    assert np.array_equal(rounded_gaussian(2.0**40, 10_000, keyed_source(b"k")), expected)


def test_without_cryptography_the_operating_system_serves_all():
    code = """
import sys
sys.modules["cryptography"] = None
from skdp._sampler import rounded_gaussian, system_source
from skdp import _entropy
assert rounded_gaussian(2.0**40, 50_000, system_source()).std() > 2.0**39
assert _entropy._cipher_factory() is None
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_does_not_load_cryptography():
    code = "import sys, skdp._sampler; sys.exit('cryptography' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
