"""The lattice, against Python's integers: clipping holds exactly and sums are exact.

Nothing here is statistical. Every claim about floating point is checked with integers or
fractions, and where a safety margin is claimed to be needed, a version without it is shown to fail.
"""

from fractions import Fraction
from math import inf, isqrt, ldexp, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from skdp import _lattice, engine
from skdp._dense_rows import DenseRows
from skdp._lattice import (
    ExactTotal,
    block_rows,
    clip_integers,
    coefficients_to_grid,
    counts,
    floor_power_of_two,
    iter_blocks,
    round_rows,
)
from skdp._sparse_rows import SparseRows
from skdp.engine import Grid
from skdp.losses import LogisticLoss, SoftmaxLoss, SquaredLoss

finite = st.floats(allow_nan=False, allow_infinity=False)


def ints(array):
    """Nested lists of Python integers; the array must hold integers exactly."""
    array = np.asarray(array)
    assert np.array_equal(array, np.trunc(array))
    return np.vectorize(int, otypes=[object])(array)


def square_sums(array):
    return [sum(v * v for v in row) for row in ints(array)]


def value_of(total):
    """The sum that an ExactTotal stands for, as Python integers."""
    return ints(total.high) * 2**32 + ints(total.low)


def bounded(X, home=DenseRows, **options):
    X = np.asarray(X)
    defaults = {
        "feature_norm": 1.0,
        "slack": 2.0,
        "constant": 0.25,
        "neighboring": "add_or_remove",
        "grid": Grid(20, 20),
    }
    return home(X if home is DenseRows else csr_array(X), **{**defaults, **options})


def rows_of(rows):
    """The working rows as Python integers."""
    ((_, block),) = rows._blocks([slice(0, rows.n_rows)], wide=True)
    if isinstance(block, np.ndarray):
        return ints(block)
    dense = block.toarray()
    return ints(np.column_stack([dense, rows._constants]) if rows.constant else dense)


# ---------------------------------------------------------------- rounding rows


def check_rounding(raw, scale, bits, limit, bound=inf):
    """All that `round_rows` promises."""
    before = raw.copy()
    integers, squares, raw_squares = round_rows(
        raw, scale=scale, bits=bits, limit=limit, bound=bound
    )
    assert np.array_equal(raw, before, equal_nan=True)
    exact = square_sums(integers)
    assert exact == list(squares)
    assert max(exact, default=0) <= limit
    with np.errstate(all="ignore"):
        plain = np.trunc(raw.astype(np.float64) * (scale * 2.0**bits))
        largest = np.floor(bound * (scale * 2.0**bits))
        bounded_entries = np.clip(plain, -largest, largest)
    if np.isfinite(largest):
        assert np.abs(integers).max() <= largest
    for i, row in enumerate(raw):
        if not np.isfinite(row).all():
            assert np.isnan(raw_squares[i]) and not integers[i].any()
        elif np.isfinite(plain[i]).all() and sum(int(v) ** 2 for v in plain[i]) < 2**53:
            assert raw_squares[i] == sum(int(v) ** 2 for v in plain[i])
            if sum(int(v) ** 2 for v in bounded_entries[i]) <= limit:  # it fits: only truncated
                assert np.array_equal(integers[i], bounded_entries[i])
        else:
            assert raw_squares[i] == inf
    return integers


@settings(max_examples=300, deadline=None)
@given(
    st.data(), st.sampled_from([1, 2, 3, 17]), st.integers(1, 21), st.sampled_from([1.0, 0.37, 3e5])
)
def test_rounded_rows_never_exceed_the_limit(data, columns, bits, scale):
    elements = st.one_of(
        st.floats(-2, 2), finite, st.sampled_from([nan, inf, -inf, 5e-324, -1e308, 1e308, 0.0])
    )
    raw = data.draw(arrays(np.float64, (4, columns), elements=elements))
    limit = data.draw(st.integers(1, 4 * 4**bits))
    bound = data.draw(st.sampled_from([inf, 1e300, 1.0, 0.3, 1e-9]))
    check_rounding(raw, scale, bits, float(limit), bound)


@pytest.mark.parametrize("columns", [1, 2, 30, 5000, 20000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_every_size_keep_their_direction(columns, dtype):
    generator = np.random.default_rng(columns)
    directions = generator.normal(size=(6, columns))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    largest = float(np.finfo(dtype).max) * 0.99
    sizes = np.array([1.0, 3.0, 1e4, largest / 1e3, largest, 0.5])
    raw = (directions * sizes[:, None]).astype(dtype)
    integers = check_rounding(raw, 1.0, 20, 4.0**20)
    # Truncation takes less than a unit per entry, and rows with many columns have fewer bits.
    want = directions * np.minimum(sizes, 1.0)[:, None] * 2.0**20
    assert np.abs(integers - want).max() < 4.0
    norms = np.linalg.norm(integers, axis=1) * 2.0**-20
    assert np.all(norms > np.minimum(sizes, 1.0) - np.sqrt(columns) * 2.0**-18)


def test_no_record_changes_another_ones_row_and_none_overflows():
    wild = np.array([[1e308, -1e308, 1e308], [nan, 0, 0], [0, inf, 0], [5e-324, 0, -5e-324]])
    tame = np.random.default_rng(0).normal(size=(4, 3))
    alone, squares, _ = round_rows(tame, scale=0.3, bits=20, limit=4.0**20)
    together, _, _ = round_rows(np.vstack([wild, tame]), scale=0.3, bits=20, limit=4.0**20)
    assert np.array_equal(together[4:], alone)
    assert np.array_equal(together[1:4], np.zeros((3, 3)))
    assert np.all(np.abs(together[0]) > 2.0**20 * 0.577)  # 1 / sqrt(3)
    with np.errstate(all="raise"):  # what the caller wants to see of warnings says nothing of rows
        again, _, _ = round_rows(np.vstack([wild, tame]), scale=0.3, bits=20, limit=4.0**20)
    assert np.array_equal(again, together)


def test_rounding_to_nearest_would_exceed_the_norm():
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(2000, 10))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    nearest = square_sums(np.rint(rows * 2.0**20))
    assert np.mean([s > 4**20 for s in nearest]) > 0.3
    integers, squares, _ = round_rows(rows, scale=1.0, bits=20, limit=4.0**20)
    assert max(square_sums(integers)) <= 4**20


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 5, 7]), st.integers(1, 2**52))
def test_clipped_integers_are_within_their_limits(seed, columns, largest):
    generator = np.random.default_rng(seed)
    raw = generator.integers(-(2**25), 2**25, size=(50, columns)).astype(np.float64)
    raw = raw[np.einsum("ij,ij->i", raw, raw) < 2.0**53]
    limits = np.floor(largest * generator.random(len(raw)))
    before = square_sums(raw)
    integers = raw.copy()
    squares = clip_integers(integers, limits)
    exact = square_sums(integers)
    assert exact == list(squares)
    assert all(s <= limit for s, limit in zip(exact, limits, strict=True))
    kept = [s <= limit for s, limit in zip(before, limits, strict=True)]
    assert np.array_equal(integers[kept], raw[kept])
    for row, old, size, limit in zip(integers, raw, before, limits, strict=True):
        if size > limit:  # not shrunk more than needed: by a unit and a tiny share
            share = np.sqrt(limit / size) * old
            assert np.all(np.abs(row) >= np.abs(share) * (1 - 2.0**-40) - 1)
            assert np.all(row * old >= 0)


def test_clipping_without_margin_would_exceed_the_limit(monkeypatch):
    generator = np.random.default_rng(0)
    # sqrt(m**2 - 1) is so near to m that a float error makes it m.
    m = generator.integers(2**26, int(2**26.4), size=1000).astype(np.float64)
    rows = np.floor(m + generator.random(1000) * (2**26.49 - m))[:, None]
    limits = m * m - 1.0
    assert all(s <= v for s, v in zip(clip_and_square(rows, limits), limits, strict=True))
    monkeypatch.setattr(_lattice, "_SHRINK", 1.0)
    assert any(s > v for s, v in zip(clip_and_square(rows, limits), limits, strict=True))


def clip_and_square(rows, limits):
    integers = rows.copy()
    clip_integers(integers, limits)
    return square_sums(integers)


# ---------------------------------------------------------------- coefficients


def exact_product(row, coefficients):
    return sum(Fraction(x) * Fraction(c) for x, c in zip(row, coefficients, strict=True))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([1, 8, 20, 22]), st.booleans())
def test_products_with_rounded_coefficients_are_exact_in_any_order(seed, columns, bits, spiky):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(3, columns))
    integers, _, _ = round_rows(rows, scale=0.7, bits=bits, limit=4.0**bits)
    rows = integers * 2.0**-bits
    coefficients = generator.normal(size=columns) * np.exp(generator.normal() * 20)
    if spiky:
        coefficients *= np.exp(10 * generator.normal(size=columns))
    rounded = coefficients_to_grid(coefficients, bits)
    for row in rows:
        want = exact_product(row, rounded)
        for _ in range(3):
            order = generator.permutation(columns)
            partial = 0.0
            for j in order:  # every partial sum is exact
                partial += row[j] * rounded[j]
            assert Fraction(partial) == want
        assert Fraction(float(row @ rounded)) == want
    error = np.abs(rounded - coefficients).max()
    assert error <= np.linalg.norm(coefficients) * 2.0 ** (bits - 51)


def test_products_with_unrounded_coefficients_depend_on_the_order():
    generator = np.random.default_rng(0)
    integers, _, _ = round_rows(generator.normal(size=(200, 30)), scale=0.2, bits=20, limit=4.0**20)
    coefficients = generator.normal(size=30)
    order = generator.permutation(30)

    def differ(theta):
        return np.any(integers @ theta != (integers[:, order] @ theta[order]))

    assert differ(coefficients)
    assert not differ(coefficients_to_grid(coefficients, 20))


def test_coefficients_of_several_outputs_are_rounded_one_by_one():
    generator = np.random.default_rng(0)
    theta = generator.normal(size=(6, 4)) * [1.0, 1e-9, 1e30, 0.0]
    rounded = coefficients_to_grid(theta, 20)
    for column in range(4):
        assert np.array_equal(rounded[:, column], coefficients_to_grid(theta[:, column], 20))
    assert not rounded[:, 3].any()
    for power in (2.0**5, np.nextafter(2.0**5, 0), np.nextafter(2.0**5, 99)):
        one = coefficients_to_grid(np.array([power]), 20)
        assert abs(one[0] - power) <= power * 2.0**-30


# ---------------------------------------------------------------- totals


whole = st.integers(-(2**62), 2**62) | st.sampled_from([2**53, -(2**53), 2**32, -1, 2**31 - 1])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(whole, min_size=3, max_size=3), max_size=12), st.integers(0, 12))
def test_totals_are_exact_in_any_order_and_partition(blocks, cut):
    want = [sum(block[j] for block in blocks) for j in range(3)]

    def total_of(parts):
        total = ExactTotal((3,))
        for block in parts:
            total.add(np.array(block, dtype=np.int64))
        return total

    first = total_of(blocks)
    second = total_of(reversed(blocks[cut:]))
    second.merge(total_of(blocks[:cut]))
    assert list(value_of(first)) == list(value_of(second)) == want
    assert first.tobytes() == second.tobytes()
    assert np.array_equal(first.to_float(2.0**-9), second.to_float(2.0**-9))
    for got, exact in zip(first.to_float(2.0**-9), want, strict=True):
        assert abs(Fraction(float(got)) - Fraction(exact, 512)) <= abs(Fraction(exact, 512)) / 2**51


def test_totals_hold_more_than_64_bits():
    total = ExactTotal((2,))
    total.add(np.array([2.0**53, -(2.0**53) + 1]))
    plain = np.array([2**53, -(2**53) + 1])
    for _ in range(12):  # 4,096 blocks at the limit of a block: beyond int64
        other = ExactTotal((2,))
        other.merge(total)
        total.merge(other)
        plain = plain + plain
    assert list(value_of(total)) == [2**65, -(2**65) + 2**12]
    assert list(plain) != [2**65, -(2**65) + 2**12]  # which is what int64 makes of it
    assert list(total.to_float(1.0)) == [2.0**65, float(-(2**65) + 2**12)]


def test_low_limbs_are_carried_in_time(monkeypatch):
    block = np.array([2**32 - 1, -1])
    monkeypatch.setattr(_lattice, "_MAX_UNCARRIED", 5)
    total = ExactTotal((2,))
    for _ in range(23):
        total.add(block)
        assert total.low.max() < 5 * 2**32
    assert list(value_of(total)) == [23 * (2**32 - 1), -23]
    # At the real number of uncarried blocks the low limb is still far from its end.
    monkeypatch.undo()
    assert _lattice._MAX_UNCARRIED * (2**32 - 1) < 2**63


# ---------------------------------------------------------------- the bit budget


def test_blocks_are_as_large_as_53_bits_allow():
    assert block_rows(40, 1.0) == 8192
    assert block_rows(40, 1.0, cap=100) == 100
    assert block_rows(53, 1.0) == 1
    for bits, bound in ((40, 0.35), (41, 0.7), (44, 1.0), (50, 1.3)):
        rows = block_rows(bits, bound, cap=10**9)
        assert rows * int(bound * 2**bits) <= 2**53 < (rows + 1) * bound * 2**bits
    with pytest.raises(ValueError, match="53 bits"):
        block_rows(53, 1.01)
    assert [s.indices(10) for s in iter_blocks(10, 4)] == [(0, 4, 1), (4, 8, 1), (8, 10, 1)]


def worst_case_gradient(n_rows):
    """Sum and its value in integers for records at their clip, all of one direction."""
    rows = bounded(np.full((n_rows, 1), 0.9999), constant=0.0, grid=Grid(20, 20))
    found = rows.gradient_sum(
        "gradient", np.zeros(1), SquaredLoss(), np.full(n_rows, -0.99997), 1.0
    )
    x, s = rows_of(rows)[0, 0], int(0.99997 * 2**20 + 0.5)
    assert s * x < 2**40 and (s * x) % 2 == 1  # an odd number of units in every record
    return value_of(found.total)[0], n_rows * s * x


def test_the_fullest_block_of_gradients_is_exact(monkeypatch):
    monkeypatch.setattr(engine, "_CACHE_BYTES", 1 << 30)  # only the bit budget limits a block
    for n_rows in (8191, 8192, 20001):
        found, want = worst_case_gradient(n_rows)
        assert found == want
    # One bit more and the sum is an odd number above 2**53, which no float holds.
    monkeypatch.setattr(_lattice, "MANTISSA_BITS", 54)
    monkeypatch.setattr(engine, "block_rows", lambda bits, bound, cap=0: 20001)
    found, want = worst_case_gradient(20001)
    assert found != want


def test_the_fullest_block_of_second_moments_is_exact(monkeypatch):
    def check(n_rows):
        # An odd x, as near to 1 as it gets.
        rows = bounded(np.full((n_rows, 1), 1.0 - 2.0**-20), constant=0.0)
        x = rows_of(rows)[0, 0]
        assert x == 2**20 - 1
        return value_of(rows.gram("moments").total)[0], n_rows * x * x

    for n_rows in (8191, 8192, 20001):
        found, want = check(n_rows)
        assert found == want
    monkeypatch.setattr(engine, "block_rows", lambda bits, bound, cap=0: 20001)
    found, want = check(20001)
    assert found != want


# ---------------------------------------------------------------- sums over rows


def residuals(rng, shape):
    r = rng.normal(size=shape) * np.exp(4 * rng.normal(size=shape))
    wild = [nan, inf, -inf, 1e308, -1e308, 5e-324, 0.0, 0.5, -0.5]
    flat = r.reshape(-1)
    places = rng.choice(flat.size, size=min(len(wild), flat.size), replace=False)
    flat[places] = wild[: len(places)]
    return r


@pytest.mark.parametrize("outputs", [None, 2, 3, 11])
@pytest.mark.parametrize("clip_norm", [1.0, 0.35, 0.05, 1.4142135623730951, 300.0])
def test_every_records_gradient_is_within_the_clip(outputs, clip_norm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * np.exp(5 * rng.normal(size=(200, 1)))
    X[:4] = [[0, 0, 0], [1e-6, 0, 0], [1e308, -1e308, 0], [2.0**-20, 0, 0]]
    for constant in (0.0, 0.25):
        rows = bounded(X, constant=constant, grid=Grid(20, 20 - round(np.log2(clip_norm))))
        places = Fraction(2.0**rows.grid.residual_bits)
        top = 2 ** ((52 - (outputs or 1).bit_length()) // 2)
        r = residuals(rng, 200 if outputs is None else (200, outputs))
        with np.errstate(all="ignore"):  # as within a pass
            integers = rows._residual_integers(r.copy(), slice(0, 200), clip_norm)
        s = ints(integers).reshape(200, -1)
        x = rows_of(rows)
        limit = (Fraction(clip_norm) * places * 2**20) ** 2
        for i in range(200):
            norm2, size2 = sum(v * v for v in x[i]), sum(v * v for v in s[i])
            assert norm2 * size2 <= limit
            row = np.atleast_1d(r[i])
            if not norm2:
                assert size2 == 0
            elif np.isfinite(row).all():
                scaled = [Fraction(float(v)) * places for v in row]
                if outputs is not None and max(map(abs, scaled)) > top:
                    continue  # shrunk first, so that its squared norm stays exact
                if sum(v * v for v in scaled) * norm2 < limit * Fraction(999, 1000):
                    # Within the bound: rounded to nearest, never biased.
                    pairs = zip(s[i], scaled, strict=True)
                    assert all(abs(a - b) <= Fraction(1, 2) for a, b in pairs)
                elif outputs is None:
                    bound = isqrt(limit.numerator // (limit.denominator * norm2))
                    least = bound - (bound >> 20) - 1  # the norm is kept in float32
                    assert abs(s[i][0]) >= min(least, abs(scaled[0]) - Fraction(1, 2))


LOSSES = {
    "logistic": (LogisticLoss(), None),
    "squared": (SquaredLoss(), None),
    "squared-2": (SquaredLoss(), 2),
    "softmax": (SoftmaxLoss(), 3),
}


@pytest.mark.parametrize("home", [DenseRows, SparseRows])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("constant", [0.0, 0.25])
def test_gradient_sums_are_exact(name, constant, home):
    loss, outputs = LOSSES[name]
    rng = np.random.default_rng(3)
    n, clip_norm = 70, 0.5
    X = rng.normal(size=(n, 4))
    X[0], X[1] = 1e308, 0.0
    rows = bounded(X, home, feature_norm=3.0, constant=constant, grid=Grid(20, 21))
    if outputs is None:
        y = rng.integers(0, 2, n).astype(float) if name == "logistic" else rng.normal(size=n)
    else:
        y = rng.integers(0, 3, n) if name == "softmax" else rng.normal(size=(n, outputs))
    shape = (rows.n_columns,) if outputs is None else (rows.n_columns, outputs)
    theta = rows.round_coefficients(rng.normal(size=shape))
    found = rows.gradient_sum("gradient", theta, loss, y, clip_norm)

    x = rows_of(rows)
    columns = theta.reshape(rows.n_columns, -1)
    want = np.zeros(columns.shape, dtype=object)
    for i in range(n):
        # The predictor, in fractions, is a float: nothing was rounded on the way.
        exact = [exact_product([Fraction(v, 2**20) for v in x[i]], c) for c in columns.T]
        predictor = np.array([float(v) for v in exact])
        assert [Fraction(float(v)) for v in predictor] == exact
        if outputs is None:
            residual = loss.residual(predictor, y[i : i + 1])
        else:
            residual = loss.residual(predictor[None], y[i : i + 1])
        s = ints(rows._residual_integers(residual, slice(i, i + 1), clip_norm)).reshape(-1)
        want = want + np.multiply.outer(x[i], s)
    assert np.array_equal(value_of(found.total).reshape(want.shape), want)
    assert found.unit == 2.0**-41 and found.sensitivity == clip_norm


@pytest.mark.parametrize("home", [DenseRows, SparseRows])
def test_second_moments_are_exact(home):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3)) * np.exp(rng.normal(size=(300, 1)))
    X[:3] = [[1e308, 1e308, -1e308], [0, 0, 0], [1e-300, 0, 0]]
    rows = bounded(X, home, feature_norm=2.0)
    found = rows.gram("moments")
    want = np.zeros((4, 4), dtype=object)
    clipped = 0
    for row in rows_of(rows):
        before = sum(v * v for v in row)
        one = row[None].astype(np.float64)
        clip_integers(one, 4.0**20)
        x = ints(one)[0]
        assert sum(v * v for v in x) <= 4**20  # the norm whose square is the sensitivity
        clipped += before > 4**20
        want = want + np.multiply.outer(x, x)
    assert 30 < clipped < 270
    upper = np.triu_indices(4, 1)
    assert list(value_of(found.total)) == [*want.diagonal(), *want[upper]]
    assert [count for count, _ in found.groups] == [4, 6]
    weights = [w for _, w in found.groups]
    assert weights[0] == 1.0 and Fraction(weights[1]) ** 2 >= Fraction(1, 2)


@pytest.mark.parametrize("home", [DenseRows, SparseRows])
def test_null_records_contribute_nothing_at_all(home):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    null = rng.random(50) < 0.3
    blanked, removed = bounded(X, home, null=null), bounded(X[~null], home)
    theta = blanked.round_coefficients(rng.normal(size=4))
    sums = [
        [
            rows.gradient_sum("g", theta, SquaredLoss(), targets, 0.5).total,
            rows.gram("m").total,
            rows.misfits("c").total,
        ]
        for rows, targets in ((blanked, y), (removed, y[~null]))
    ]
    assert [t.tobytes() for t in sums[0]] == [t.tobytes() for t in sums[1]]
    # A row with a value that is not finite is a null record too, and is counted.
    X[null, 1] = nan
    poisoned = bounded(X, home)
    assert poisoned.n_rejected == null.sum() and blanked.n_rejected == 0
    assert poisoned.gram("m").total.tobytes() == sums[1][1].tobytes()


def test_rows_far_off_their_norm_are_counted():
    X = np.array([[1.0], [3.2], [2.9], [0.09], [0.11], [1e308], [0.0], [-3.2]])
    rows = bounded(X, constant=0.0)
    assert list(value_of(rows.misfits("row lengths").total)) == [3, 2]
    assert rows.misfits("row lengths").sensitivity == 1.0
    replaced = bounded(X, neighboring="replace").misfits("row lengths")
    assert Fraction(replaced.sensitivity) ** 2 >= 2
    assert counts("c", np.array([3, 4]), "replace").sensitivity == replaced.sensitivity


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_powers_of_two(value):
    power = floor_power_of_two(value)
    assert power <= value < 2 * power
    assert power == ldexp(1.0, int(np.log2(power)))
