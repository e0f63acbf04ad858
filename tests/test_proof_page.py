"""The lemmas of docs/proof.rst against adversarial rows, in exact integer arithmetic."""

import importlib
import itertools
import re
from fractions import Fraction
from math import inf, isqrt, sqrt
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.sparse import csr_array

from skdp import (
    Binary,
    Categorical,
    DPLogisticRegression,
    DPRidge,
    DPTargetEncoder,
    GaussianMechanism,
    Numeric,
    _lattice,
)
from skdp._dense_rows import DenseRows
from skdp._lattice import ExactTotal, block_rows, clip_integers, counts, round_rows
from skdp._level_sums import threshold
from skdp._location import find_location
from skdp._moments import _BOTH, release_moments
from skdp._quantiles import find_ranks
from skdp._sparse_rows import SparseRows
from skdp._threads import Workers
from skdp.accounting import PrivacyCost
from skdp.engine import Grid
from skdp.linear_model._sample_weight import find_sizes
from skdp.losses import Loss, SoftmaxLoss, SquaredLoss
from skdp.noise import add_noise
from skdp.plan import SIGMA_SLACK, relation_factor
from skdp.preprocessing._magnitudes import Magnitude
from skdp.preprocessing._table_counts import plan_table
from skdp.preprocessing._table_moments import _COUNT_WEIGHT, Scale, _Window

ROOT = Path(__file__).parents[1]
GRID = Grid()
SLACK = 2.0
HOMES = ["dense", "sparse"]
random = np.random.default_rng(20)


def adversarial_rows(d):
    """Rows that try to escape a norm bound of 1: on it, beyond it, at the ends of the floats."""
    unit = random.normal(size=(40, d))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    # Entries whose rounding adds up: just above a grid point, half way, equal ones.
    corners = np.full((4, d), d**-0.5) * np.array([[1.0], [1.0 + 2**-20], [1 - 2**-21], [2.0]])
    sizes = [1e-308, 1e-160, 1e-9, 0.5, 1.0, 1.0 + 2**-52, 2.0, 3.0, 1e9, 1e155, 1e300]
    rows = np.vstack([unit, corners, *(size * unit[:3] for size in sizes)])
    extreme = np.zeros((4, d))
    extreme[0] = 1.7e308
    extreme[1, 0] = -1.7e308
    extreme[2] = 5e-324
    return np.vstack([rows, extreme])


def bounded(
    X,
    *,
    home="dense",
    constant=0.25,
    neighboring="add_or_remove",
    null=None,
    weights=None,
    grid=GRID,
    feature_bound=inf,
):
    """Working rows with feature norm 1, in one of their homes."""
    make, X = {"dense": (DenseRows, X), "sparse": (SparseRows, csr_array(X))}[home]
    return make(
        X,
        feature_norm=1.0,
        slack=SLACK,
        feature_bound=feature_bound,
        constant=constant,
        neighboring=neighboring,
        grid=grid,
        null=null,
        weights=weights,
    )


def working_rows(rows):
    """All rows as a solver sees them, the constant column included."""
    ((_, block),) = rows._blocks([slice(0, rows.n_rows)])
    if isinstance(rows, DenseRows):
        return block
    block = block.toarray()
    return np.column_stack([block, rows._constants]) if rows.constant else block


def integers(total):
    """An exact total as Python integers."""
    total.tobytes()  # carries
    values = [
        (int(high) << 32) + int(low)
        for high, low in zip(total.high.ravel(), total.low.ravel(), strict=True)
    ]
    return np.array(values, dtype=object).reshape(total.shape)


def square(values):
    return sum(int(value) ** 2 for value in np.asarray(values).ravel())


class GivenResidual(Loss):
    """A loss whose residual is whatever the target says."""

    name, curvature, residual_bound = "given", 1.0, inf

    def residual(self, predictor, target):
        return target


def gradient(X, targets, clip_norm, loss=None, coefficients=None, **options):
    rows = bounded(X, **options)
    shape = (rows.n_columns, *np.shape(targets)[1:])
    theta = np.zeros(shape) if coefficients is None else rows.round_coefficients(coefficients)
    return rows.gradient_sum("gradient", theta, loss or GivenResidual(), targets, clip_norm)


def test_the_pages_name_tests_and_functions_that_exist():
    for page in (ROOT / "docs").glob("*.rst"):
        text = page.read_text(encoding="utf-8")
        for file, name in re.findall(r"``(tests/\w+\.py)::(\w+)``", text):
            assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), (file, name)
        for path in re.findall(r"``(skdp\.[\w.]+)``", text):
            parts = path.split(".")
            for depth in range(len(parts), 0, -1):  # the longest prefix that is a module
                try:
                    found = importlib.import_module(".".join(parts[:depth]))
                    break
                except ModuleNotFoundError:
                    continue
            for part in parts[depth:]:
                found = getattr(found, part)


def test_every_lemma_has_a_test():
    text = (ROOT / "docs" / "proof.rst").read_text(encoding="utf-8")
    lemmas = re.findall(r"admonition:: Lemma (\d+)", text)
    assert lemmas == [str(k + 1) for k in range(len(lemmas))]
    tested = set(re.findall(r"test_(?:proof_page|search).py::test_lemma_(\d+)", text))
    # 11 is the sampler, which has a file of its own; 13 is a theorem of the literature.
    assert set(lemmas) - tested == {"11", "13"}


@pytest.mark.parametrize("d", [1, 2, 7, 100])
@pytest.mark.parametrize("constant", [0.0, 0.25])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("feature_bound", [inf, 0.7])
@pytest.mark.parametrize("home", HOMES)
def test_lemma_1_rows_are_bounded(d, constant, dtype, feature_bound, home):
    with np.errstate(over="ignore"):
        X = adversarial_rows(d).astype(dtype)
    options = {"constant": constant, "feature_bound": feature_bound, "home": home}
    rows = working_rows(bounded(X, **options))
    limit = int(SLACK**2) * 4**GRID.row_bits
    assert all(square(row) <= limit for row in rows)
    assert np.array_equal(rows, np.trunc(rows))
    # A row alone is the same row.
    for i in range(0, len(X), 7):
        alone = working_rows(bounded(X[i : i + 1], **options))
        assert np.array_equal(alone[0], rows[i])
    # Blank and non-finite records vanish, the constant included.
    blank = np.zeros(len(X), dtype=bool)
    blank[::2] = True
    X[1] = np.nan
    rows = working_rows(bounded(X, null=blank, **options))
    assert not rows[::2].any() and not rows[1].any()


def test_lemma_1_needs_its_margin(monkeypatch):
    # The same rows without the margin of 2**-48, and with rounding to nearest.
    X = random.normal(size=(4000, 3)) * 10.0
    limit = 4**20
    exact = round_rows(X, scale=1.0, bits=20, limit=limit)[0]
    assert all(square(row) <= limit for row in exact)
    monkeypatch.setattr(_lattice, "_SHRINK", 1.0 + 2.0**-40)
    monkeypatch.setattr(np, "trunc", np.rint)
    broken = round_rows(X, scale=1.0, bits=20, limit=limit)[0]
    assert any(square(row) > limit for row in broken)


RESIDUALS = [0.0, 1e-300, 1e-7, 0.3, 1.0, 1e3, 1e15, 1e300, inf, -inf, np.nan, -0.5, 2.0**-21]


@pytest.mark.parametrize("clip_norm", [0.35, 0.5, 1.0, sqrt(2.0), 1e-3, 7.0])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("home", HOMES)
def test_lemma_2_one_gradient_is_bounded(clip_norm, n_outputs, home):
    grid = Grid(20, 20 - int(np.ceil(np.log2(clip_norm))))
    X = adversarial_rows(5)
    limit = Fraction(clip_norm) * 2 ** (grid.row_bits + grid.residual_bits)
    largest = 0
    for i, row in enumerate(X):
        residual = RESIDUALS[i % len(RESIDUALS)]
        targets = np.array([residual])
        if n_outputs > 1:
            targets = np.array([[residual, -1.0, 0.1]])
        options = {"grid": grid, "home": home}
        total = integers(gradient(row[None], targets, clip_norm, **options).total)
        assert square(total) <= limit**2
        largest = max(largest, square(total))
        blank = gradient(row[None], targets, clip_norm, null=np.array([True]), **options)
        assert not integers(blank.total).any()
    assert largest > 0.9999 * limit**2  # the bound is used


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("home", HOMES)
def test_lemma_3_sums_are_exact(home, aligned):
    n, clip_norm = 40_000, 0.5
    if aligned:  # the largest sums there can be: all rows and residuals in one direction
        X, residuals = [1.3, 0.01] + 1e-3 * random.normal(size=(n, 2)), np.full(n, 1e9)
    else:
        X = random.normal(size=(n, 4)) * (random.random((n, 4)) < 0.5)
        residuals = random.normal(size=n) * 10.0
    total = integers(gradient(X, residuals, clip_norm, home=home).total)
    rows = bounded(X, home=home)
    s = rows._residual_integers(residuals, slice(0, n), clip_norm).astype(np.int64).tolist()
    for j, column in enumerate(working_rows(rows).T.astype(np.int64).tolist()):
        assert total[j] == sum(a * b for a, b in zip(s, column, strict=True))


def test_lemma_3_needs_the_size_of_its_blocks():
    # The largest block that is allowed, filled with the largest products, is still exact ...
    n = block_rows(40, 1.0)
    assert n == 2**13
    products = np.full(n, 2.0**40)
    products[0] -= 1.0
    assert int(products.sum()) == n * 2**40 - 1
    # ... and one that is twice as large is not.
    products = np.full(2 * n, 2.0**40 - 1.0)
    products[0] -= 1.0
    in_order = 0.0
    for product in products:
        in_order += product
    assert int(in_order) != 2 * n * (2**40 - 1) - 1
    # Blocks of any number are carried without overflow.
    total = ExactTotal((1,))
    for _ in range(1000):
        total.add(np.array([2.0**53]))
        total.add(np.array([-(2.0**53) + 1.0]))
    assert integers(total)[0] == 1000


@pytest.mark.parametrize("loss", [SquaredLoss(), SoftmaxLoss()])
def test_lemma_4_other_records_do_not_matter(loss):
    n, d = 300, 6
    X = random.normal(size=(n, d))
    if loss.zero_sum:
        targets, theta = random.integers(0, 4, n), random.normal(size=(d + 1, 4))
    else:
        targets, theta = random.normal(size=n), random.normal(size=d + 1)
    whole = integers(gradient(X, targets, 0.5, loss, theta).total)
    singly = sum(
        integers(gradient(X[i : i + 1], targets[i : i + 1], 0.5, loss, theta).total)
        for i in range(n)
    )
    assert np.array_equal(whole, singly)
    order = random.permutation(n)
    assert np.array_equal(
        whole, integers(gradient(X[order], targets[order], 0.5, loss, theta).total)
    )


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
@pytest.mark.parametrize("home", HOMES)
def test_lemma_5_sensitivity_is_attained_and_never_exceeded(neighboring, home):
    clip_norm = 0.5
    X = adversarial_rows(3)
    n = len(X)
    targets = np.resize([1e9, -1e9, 0.2, inf, np.nan, -0.01], n)
    options = {"clip_norm": clip_norm, "neighboring": neighboring, "home": home}
    first = gradient(X, targets, **options)
    bound = Fraction(first.sensitivity) / Fraction(first.unit)
    assert first.sensitivity == clip_norm * relation_factor(neighboring)
    base, largest = integers(first.total), 0
    for i in range(n):
        if neighboring == "add_or_remove":
            null = np.zeros(n, dtype=bool)
            null[i] = True
            other = gradient(X, targets, null=null, **options)
        else:
            X2, targets2 = X.copy(), targets.copy()
            X2[i], targets2[i] = -X[i], 1e9
            other = gradient(X2, targets2, **options)
        change = square(base - integers(other.total))
        assert change <= bound**2
        largest = max(largest, change)
    assert largest > (0.999 * bound) ** 2


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
@pytest.mark.parametrize("home", HOMES)
def test_lemma_6_second_moments(neighboring, home):
    X = adversarial_rows(3)
    released = bounded(X, neighboring=neighboring, home=home).gram("second moments")
    weights = [w for count, w in released.groups for _ in range(count)]
    assert weights[0] == 1.0 and Fraction(weights[-1]) ** 2 * 2 >= 1
    bound = (Fraction(released.sensitivity) / Fraction(released.unit)) ** 2
    base, largest = integers(released.total), 0
    for i in range(len(X)):
        if neighboring == "add_or_remove":
            null = np.zeros(len(X), dtype=bool)
            null[i] = True
            other = bounded(X, null=null, home=home).gram("second moments")
        else:  # a row that is perpendicular to the old one, as far as a constant allows
            X2 = X.copy()
            X2[i] = 1e6 * np.cross(np.nan_to_num(X[i] / max(abs(X[i]).max(), 1e-300)), [1.0, 2, 5])
            other = bounded(X2, home=home).gram("second moments")
        change = base - integers(other.total)
        size = sum(
            Fraction(int(value)) ** 2 / Fraction(weight) ** 2
            for value, weight in zip(change, weights, strict=True)
        )
        assert size <= bound
        largest = max(largest, size)
    assert largest > 0.99 * bound


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
def test_lemma_7_counts(neighboring):
    released = counts("counts", np.array([3, 4]), neighboring)
    moved = {"add_or_remove": [2, 4], "replace": [2, 5]}[neighboring]
    change = square(integers(released.total) - np.array(moved))
    assert change <= Fraction(released.sensitivity) ** 2 < 1.0001 * change
    # Of rows of all lengths, each is counted at most once, a blank one not at all.
    X = np.array([[1e-12], [0.01], [1.0], [2.9], [50.0], [1e300]])
    for i in range(len(X)):
        assert integers(bounded(X[i : i + 1]).misfits("row lengths").total).sum() in (0, 1)
    blank = bounded(X, null=np.ones(len(X), dtype=bool))
    assert not integers(blank.misfits("row lengths").total).any()
    # And so is each target, whatever it is.
    y = np.array([0.0, 1e-300, 0.05, 0.5, 40.0, 1e300, np.inf, -np.inf, np.nan])
    for rows, relation in ((bounded(X), 1.0), (bounded(X, neighboring="replace"), sqrt(2))):
        seen = set()
        for target in y:
            targets = np.full(len(X), target)
            counted = rows.gradient_misfits("first gradients", targets, 0.5)
            assert counted.sensitivity == pytest.approx(relation)
            for i in range(len(X)):
                one = bounded(X[i : i + 1]).gradient_misfits("c", targets[:1], 0.5)
                seen.add(tuple(integers(one.total).tolist()))
        assert seen == {(0, 0), (1, 0), (0, 1)}
    for targets in (np.full(len(X), 0.01), np.full((len(X), 2), 1e3)):
        assert not integers(blank.gradient_misfits("c", targets, 0.5).total).any()


class Keeping:
    """A noise core that adds no noise and keeps what it was given."""

    def __init__(self, sigma, planned=()):
        self._sigma = sigma
        self._planned = planned
        self.given = []

    def plans(self, name):
        return name in self._planned

    def sigma(self, name):
        return self._sigma

    def release(self, bounded_sum):
        self.given.append(bounded_sum)
        return bounded_sum.total.to_float(bounded_sum.unit)


def neighbours_of(X, neighboring):
    """Data sets that differ from X in one record."""
    for i in range(len(X)):
        if neighboring == "add_or_remove":
            yield np.delete(X, i, axis=0)
        else:
            for other in [
                -X[i],
                np.ones_like(X[i]),
                X[(i + 1) % len(X)],
                np.full_like(X[i], -1e300),
            ]:
                changed = X.copy()
                changed[i] = other
                yield changed


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
@pytest.mark.parametrize("second", [True, False])
def test_lemma_8_moments(neighboring, second):
    with mpmath.workdps(40):
        x = (3 - mpmath.sqrt(0.5)) / 2
        assert _BOTH["replace"] ** 2 >= x**2 * (1 + 4 * (2 - x) ** 2)
    d = 3
    X = np.vstack(
        [random.uniform(-1.5, 1.5, (20, d)), np.eye(d), np.ones((1, d)), np.zeros((1, d))]
    )
    X[0, 0], X[1, 1] = 1e308, -np.inf
    worst = (np.sqrt(0.5) - 1) / 2  # with a neighbour at 1 - sqrt(1/8) the worst pair
    X = np.vstack([X, np.full((1, d), worst), np.full((1, d), 1e-9)])

    def share(data):
        keeping = Keeping(100.0)
        low, high = np.full(d, -1.0), np.ones(d)
        options = {"n_rows": 20, "noise": keeping, "neighboring": neighboring}
        release_moments(data, low, high, second=second, pool=Workers(1), **options)
        (released,) = keeping.given
        weights = [w for count, w in released.groups or ((d, 1.0),) for _ in range(count)]
        values = [Fraction(int(v)) * Fraction(released.unit) for v in integers(released.total)]
        return np.array([v / Fraction(w) for v, w in zip(values, weights, strict=True)]), released

    base, released = share(X)
    bound, largest = Fraction(released.sensitivity) ** 2, 0
    for other in neighbours_of(X, neighboring):
        change = sum((base - share(other)[0]) ** 2)
        assert change <= bound
        largest = max(largest, change)
    assert largest > 0.99 * bound
    # A record that is not a number everywhere is blank.
    spoilt = np.vstack([X, [[np.nan, 1.0, 1.0]]])
    assert not any(base - share(spoilt)[0])


@pytest.mark.parametrize("rounds", [("octaves",), ("magnitudes", "locations", "distances")])
@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
def test_lemma_9_histograms(neighboring, rounds):
    d = 3
    X = np.vstack([adversarial_rows(d), random.normal(size=(50, d)), np.full((1, d), np.nan)])

    def releases(data):
        keeping = Keeping(1.0, rounds)
        options = {"n_rows": 50, "noise": keeping, "neighboring": neighboring}
        find_location(data, pool=Workers(1), **options)
        return [released for released in keeping.given if released.name in rounds]

    base = releases(X)
    assert len(base) == (1 if rounds == ("octaves",) else 4)
    largest = 0
    for other in neighbours_of(X, neighboring):
        # Only the first release: the bins of later ones depend on it, as they may.
        change = Fraction(square(integers(base[0].total) - integers(releases(other)[0].total)))
        assert change <= Fraction(base[0].sensitivity) ** 2
        largest = max(largest, change)
    assert largest > 0.99 * Fraction(base[0].sensitivity) ** 2
    # In every release a record counts at most once per column.
    for released in releases(X[:1]):
        counts_per_column = integers(released.total).sum(axis=1)
        assert all(count in (0, 1) for count in counts_per_column)
    assert len({released.sensitivity for released in base}) == 1


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
def test_corollary_weights(neighboring, home):
    # Weights of the neighbour are drawn anew too: from nothing to all, and back.
    X = adversarial_rows(3)
    weights = random.choice([0.0, 1e-9, 0.3, 1.0, 7.0, 1e308], size=len(X))
    residuals = random.choice([-1e9, -0.7, 0.3, 1e-7, 5.0, 1e300], size=len(X))
    column = random.choice([-1.0, 0.0, 1.0, 0.14644660940672624], size=len(X))  # of Lemma 8
    facts = (np.array([-1.0]), np.array([1.0]))

    def released(weights, residuals, column):
        relative = _lattice.weights_to_grid(weights, 1.0)
        rows = bounded(X, home=home, neighboring=neighboring, weights=relative)
        theta = np.zeros(rows.n_columns)
        yield rows.gradient_sum("gradient", theta, GivenResidual(), residuals, 0.45)
        yield rows.gram("second moments")
        noise = Keeping(1.0)
        options = {"n_rows": len(X), "noise": noise, "neighboring": neighboring}
        release_moments(
            column[:, None], *facts, second=True, pool=Workers(1), weights=relative, **options
        )
        find_sizes(relative, noise, n_rows=len(X), unit=1.0)
        yield from noise.given

    base = list(released(weights, residuals, column))
    largest = [Fraction(0)] * len(base)
    for i in range(len(X)):
        ends = [0.0] if neighboring == "add_or_remove" else [0.0, 5e-324, 1.0, 1e308]
        for end in ends:
            others = [array.copy() for array in (weights, residuals, column)]
            others[0][i], others[1][i], others[2][i] = end, -residuals[i], -column[i]
            for k, other in enumerate(released(*others)):
                change = integers(base[k].total) - integers(other.total)
                scales = [Fraction(w) for count, w in other.groups for _ in range(count)]
                scales = scales or [Fraction(1)] * change.size
                size = sum(
                    (Fraction(int(value)) / scale) ** 2
                    for value, scale in zip(change, scales, strict=True)
                )
                ratio = size * (Fraction(other.unit) / Fraction(other.sensitivity)) ** 2
                assert ratio <= 1
                largest[k] = max(largest[k], ratio)
    if neighboring == "add_or_remove":
        assert min(largest) > 0.97


@pytest.mark.parametrize("depth", [4, 7])
@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
def test_lemma_9_trees(neighboring, depth):
    d = 3
    X = np.vstack([adversarial_rows(d), random.normal(size=(50, d)), np.full((1, d), np.nan)])

    def ranks(data):
        keeping = Keeping(1.0)
        options = {"n_rows": 50, "noise": keeping, "neighboring": neighboring}
        find_ranks(data, (np.full(d, -3.0), np.full(d, 3.0)), depth, pool=Workers(1), **options)
        (released,) = keeping.given
        return released

    base, largest = ranks(X), 0
    for other in neighbours_of(X, neighboring):
        change = Fraction(square(integers(base.total) - integers(ranks(other).total)))
        assert change <= Fraction(base.sensitivity) ** 2
        largest = max(largest, change)
    assert largest > 0.99 * Fraction(base.sensitivity) ** 2
    levels = depth if depth > 5 else 1
    assert integers(ranks(X[20:21]).total).sum() == d * levels


def test_lemma_10_rounding_commutes():
    # With one seed per sum the noise is a function of the sum; here it is recovered and added
    # to another one: adding integers before or after the rounding is the same.
    total = ExactTotal((5,))
    total.add(np.array([0.0, 1.0, -7.0, 2.0**40, -(2.0**40)]))
    noisy = add_noise(_lattice.BoundedSum("sum", total, 2.0**-10, 1.0), 3.0, 7, ())
    assert np.array_equal(noisy * 2.0**10, np.rint(noisy * 2.0**10))
    for f in [0, 1, -7, 2**70]:
        for n in [Fraction(1, 3), Fraction(-1, 2), Fraction(1, 2), Fraction(-7, 3)]:
            assert f + (n + Fraction(1, 2)).__floor__() == (f + n + Fraction(1, 2)).__floor__()


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 30.0])
def test_lemma_12_true_ratios_stay_below_the_charge(neighboring, epsilon):
    for estimator, shape in [
        (DPLogisticRegression(epsilon, neighboring=neighboring), (500, 7, 1)),
        (DPLogisticRegression(epsilon, neighboring=neighboring), (100_000, 30, 1)),
        (DPLogisticRegression(epsilon, neighboring=neighboring), (500, 7, 5)),
        (DPRidge(epsilon, y_bounds=(0, 1), neighboring=neighboring), (5000, 7, 2)),
        (GaussianMechanism(epsilon, neighboring=neighboring, n_releases=7), (10, 3, 1)),
    ]:
        plan = estimator.plan(*shape)
        spent = Fraction(0)
        for planned in plan.releases:
            ratio = Fraction(planned.sensitivity) / Fraction(planned.sigma)
            assert ratio < Fraction(planned.mu)
            assert ratio > Fraction(planned.mu) * (1 - Fraction(2) ** -39)  # nothing is wasted
            spent += planned.count * ratio**2
        assert spent < Fraction(plan.budget.mu) ** 2
    # Without the slack a division that rounds up would be charged too little.
    sizes = random.random(200)
    assert any(Fraction(size) / Fraction(size / 0.268) > Fraction(0.268) for size in sizes.tolist())
    assert SIGMA_SLACK > 1.0
    parts = PrivacyCost(0.3).split([1.0] * 7)
    assert sum(Fraction(part.mu) ** 2 for part in parts) <= Fraction(0.3) ** 2


@pytest.mark.parametrize("clip_norm", [1.0, 0.3, 1e-30, 7e20, sqrt(30.0)])
def test_transform_keeps_rows_within_the_clip_norm(clip_norm, monkeypatch):
    noised = []

    def keep(bounded_sum, sigma, seed, context):
        noised.append((bounded_sum, sigma))
        return bounded_sum.total.to_float(bounded_sum.unit)

    monkeypatch.setattr("skdp.mechanism.add_noise", keep)
    X = adversarial_rows(6)
    mechanism = GaussianMechanism(clip_norm=clip_norm).fit(X)
    mechanism.transform(X)
    (released, sigma), limit = noised[0], Fraction(clip_norm) ** 2
    unit = Fraction(released.unit)
    lengths = [square(row) * unit**2 for row in integers(released.total)]
    assert max(lengths) <= limit
    assert max(lengths) > 0.999 * limit
    assert Fraction(clip_norm) / Fraction(sigma) < Fraction(mechanism.plan_.releases[0].mu)


@pytest.mark.parametrize("m", [1, 3, 1000])
@pytest.mark.parametrize("sensitivity", [1.0, 0.7, 1e-12, 3e15])
def test_release_moves_values_less_than_it_charges(m, sensitivity, monkeypatch):
    noised = []

    def keep(bounded_sum, sigma, seed, context):
        noised.append((bounded_sum, sigma))
        return bounded_sum.total.to_float(bounded_sum.unit)

    monkeypatch.setattr("skdp.mechanism.add_noise", keep)
    mechanism = GaussianMechanism(sensitivity=sensitivity, n_releases=2).fit(np.zeros((1, 1)))
    value = random.normal(size=m) * sensitivity
    step = random.normal(size=m)
    step *= sensitivity / np.linalg.norm(step) * (1 - 1e-14)
    neighbour = value + step
    mechanism.release(value)
    mechanism.release(neighbour)
    (one, sigma), (two, _) = noised
    assert one.unit == two.unit  # the grid does not depend on the value
    distance = square(integers(one.total) - integers(two.total)) * Fraction(one.unit) ** 2
    true = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(value, neighbour, strict=True))
    assert true <= Fraction(sensitivity) ** 2
    root = Fraction(isqrt(int(distance * 2**200 / Fraction(sensitivity) ** 2)) + 1, 2**100)
    ratio = root * Fraction(sensitivity) / Fraction(sigma)
    assert ratio < Fraction(mechanism.plan_.releases[0].mu)
    assert Fraction(one.unit) <= Fraction(sensitivity) * (1 + Fraction(2) ** -29) / 2**30


def test_clipping_to_zero_is_zero():
    rows = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert not clip_integers(rows, np.zeros(2)).any() and not rows.any()


@pytest.mark.parametrize("function", [np.tanh, np.exp, np.log2, np.log, np.arcsinh])
def test_assumption_3_elementwise_functions_do_not_look_around(function):
    rng = np.random.default_rng(0)
    values = np.abs(3.0 * rng.normal(size=4099))
    whole = function(values)
    for start in range(1, 18):
        assert np.array_equal(function(values[start:]), whole[start:])  # rows moved up
        assert np.array_equal(function(values[::start]), whole[::start])
        assert np.array_equal(function(values[start : 2 * start].copy()), whole[start : 2 * start])
    order = rng.permutation(len(values))
    assert np.array_equal(function(values[order]), whole[order])
    alone = np.array([function(values[i : i + 1])[0] for i in range(0, 4099, 7)])
    assert np.array_equal(alone, whole[::7])
    # A function that looks at its place would be seen.
    placed = values + np.arange(len(values)) * np.spacing(values)
    assert not np.array_equal(placed[1:], values[1:] + np.arange(4098) * np.spacing(values[1:]))


@pytest.mark.parametrize("bits", [0, 20])
def test_lemma_14_thresholded_histograms(bits):
    # The law of what appears, in exact arithmetic, for own and shared levels of small tables.
    unit, sigma, delta0 = 2.0**-bits, 1.5, 0.03
    for n_columns in (1, 2, 5):
        tau = threshold(sigma, n_columns, delta0, unit)
        with mpmath.workdps(40):
            # The real value at which 1 + u round(x / u) reaches tau.
            least = mpmath.mpf(tau) - 1 - mpmath.mpf(unit) / 2
            assert 1 + unit * np.floor(float(least) / unit + 0.5) == tau
            assert 1 + unit * np.floor((float(least) - unit / 4) / unit + 0.5) < tau
            own = mpmath.ncdf(-least / sigma)
            assert 1 - (1 - own) ** n_columns <= delta0
            # A threshold for noise alone would let a record's own level through too often.
            low = 1 - (1 - mpmath.ncdf(-(least - 1) / sigma)) ** n_columns
            assert low > delta0


@pytest.mark.parametrize("kind", ["numbers", "two", "three"])
@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
def test_lemma_15_sums_of_targets(kind, neighboring):
    facts = {
        "numbers": {"y_bounds": (-3.0, 7.0)},
        "two": {"classes": [0, 1]},
        "three": {"classes": [0, 1, 2]},
    }[kind]
    encoder = DPTargetEncoder(neighboring=neighboring, **facts)
    if kind == "numbers":
        y = np.r_[-3.0, 7.0, random.uniform(-3, 7, 50), 1e308, -1e308, 2.0 + 1e-9, 5e-324]
    else:
        y = np.arange(len(facts["classes"])).repeat(3)
    shares = encoder._shares(y).astype(np.int64).tolist()  # in units of 2**-19
    one, worst = 2**20, 0
    for d in (1, 3):
        claim = Fraction(encoder._sensitivity(d)) ** 2 * one**2
        for t, other in itertools.product(shares, shares):
            half = sum((a - b) ** 2 for a, b in zip(t, other, strict=True))  # of t / 2 in 2**-20
            if neighboring == "add_or_remove":
                change = d * (one**2 + sum((2 * a) ** 2 for a in t)) + sum(a**2 for a in t)
            else:
                apart = 2 * one**2 + sum((2 * a) ** 2 for a in t + other)
                change = d * max(apart, 4 * half) + half
            assert change <= claim
            worst = max(worst, change / claim)
    assert worst > 0.999


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
def test_lemma_16_tables(neighboring, narrow):
    # Counts: a binary column has one count.
    kinds = [Numeric()] * 2 + [Categorical((0, 1, 2))] + [Binary()] * 3
    releases, _ = plan_table(kinds, 1000, PrivacyCost(1.0, neighboring))
    exact = 3 + 3 if neighboring == "add_or_remove" else 2 * 3 + 3
    assert exact <= Fraction(releases[0].sensitivity) ** 2 < exact * (1 + 1e-12)
    # Moments: all pairs of shares of one column, in units of their noise.
    claim = Fraction(releases[1].sensitivity) ** 2 / 2
    magnitude = Magnitude(4.0, 8.0, None, 6.0, 1.0, narrow, True)
    window = _Window(magnitude, Scale(), 20, 7)
    ends = [4.0, 8.0, -1e308, 1e308, np.nan, 5e-324, 4.0 + 4 * 0.1339]
    values = np.array([*ends, *np.random.default_rng(0).uniform(3, 9, 60)])
    weight = Fraction(_COUNT_WEIGHT[neighboring])
    shares = []
    for value in values:
        (first, second, missing), bins = window.sums(np.array([value]))
        counts_ = [Fraction(int(c)) / weight for c in (missing, *bins)]
        shares.append([Fraction(int(first)), 2 * Fraction(int(second)), *counts_])
    blank = [[Fraction(0)] * len(shares[0])]
    others = shares if neighboring == "replace" else blank
    worst = max(
        sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x in shares for y in others
    )
    assert worst <= claim * 2**80
    assert worst > 0.99 * claim * 2**80
