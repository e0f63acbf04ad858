"""No release tells by its low bits what noise was added to, and no draw by its work what it is.

With float noise some outputs can be reached from one input only: it shows in the low bits (Mironov,
CCS 2012), and in how finely a small output is resolved (Haney, Desfontaines, Hartman, Shrestha and
Hay, "Precision-based attacks and interval refining", 2022). Here all releases of a kind lie on one
lattice, whatever the data. Every release path of every estimator is attacked, with neighbours that
differ in one record, and so is the same path with float noise, where the attack has to succeed.

Samplers of discrete noise may work the longer the larger the draw is, so that its time tells it
(Jin, McMurtry, Rubinstein and Ohrimenko, "Are we there yet?", 2022). Ours is watched at its work.
"""

import dataclasses

import numpy as np
import pytest
import registry
from scipy.stats import chi2
from test_privacy_contract import REAL_NOISE, Tape, with_noise

from skdp import GaussianMechanism
from skdp._entropy import keyed_source
from skdp._lattice import ExactTotal
from skdp._sampler import rounded_gaussian

DRAWS = 4096
INPUTS = [0.0, 1.0 / 3.0, 1.0, np.nextafter(1.0, 2.0), 1e-300, 12345.678]


def step_of(fitted):
    """The grid of one number, from the sensitivity alone."""
    return 2.0 ** np.floor(np.log2(fitted.plan_.releases[0].sensitivity * 2.0**-30))


def low_bits_are_even(integers, bits=4):
    """Chi-square test of the last bits at level 1e-9."""
    counts = np.bincount(integers % 2**bits, minlength=2**bits)
    expected = len(integers) / 2**bits
    return np.sum((counts - expected) ** 2) / expected < chi2.isf(1e-9, 2**bits - 1)


@pytest.mark.parametrize("value", INPUTS)
def test_releases_of_a_number_lie_on_one_lattice(value):
    # False alarms: 1e-9 for each of 6 inputs.
    fitted = GaussianMechanism(sensitivity=1.0, n_releases=1).fit(np.zeros((2, 1)))
    step = step_of(fitted)
    # One vector of equal numbers: its grid is finer by the root of its size, a power of two.
    found = fitted.release(np.full(DRAWS, value)) / (step / np.sqrt(DRAWS))
    assert np.array_equal(found, np.rint(found))
    assert low_bits_are_even(found.astype(np.int64))


@pytest.mark.parametrize("value", INPUTS[1:])
def test_float_noise_would_fail(value):
    fitted = GaussianMechanism(sensitivity=1.0).fit(np.zeros((2, 1)))
    step = step_of(fitted) / np.sqrt(DRAWS)
    sigma = fitted.sigma_
    naive = (value + sigma * np.random.default_rng(0).standard_normal(DRAWS)) / step
    assert not np.array_equal(naive, np.rint(naive))
    # And so would noise on a lattice of its own, added to a value beside it.
    beside = value + np.rint(naive) * step
    on_lattice = np.array_equal(beside / step, np.rint(beside / step))
    assert on_lattice == (value < step or value % step == 0)


# ---------------------------------------------------------------- every release path

SIZE = 40
ATTEMPTS = 1 << 15


def covering(name):
    """Settings of an estimator that together have all its releases, few of them."""
    found, seen = [], set()
    for entry in [*registry.variants(name), registry.default(name)]:
        estimator = registry.set_deep(entry.estimator, "n_rows", SIZE)
        estimator = registry.set_deep(estimator, "search_random_state", 0)
        kinds = {""}
        if hasattr(estimator, "plan"):
            weighted = {"weighted": True} if registry.is_weighted(estimator) else {}
            plan = estimator.plan(SIZE, registry.N_FEATURES, entry.n_outputs, **weighted)
            kinds = {release.name for release in plan.releases}
        if kinds - seen:
            found.append(registry.Entry(name, entry.label, estimator))
            seen |= kinds
    return found


PATHS = [entry for name in registry.CLASSES for entry in covering(name)]


def neighbours(entry):
    """Rows that add up to zero, with equal targets; then the same with one other record."""
    X, y = registry.rows_for(entry, SIZE)
    X = np.zeros_like(X)
    if y is None and not categorical(entry):
        X[::2], X[1::2] = 1e6, -1e6  # at the bounds of any window
        changed = X.copy()
        changed[0] = 0.0
        return (X, None), [(changed, None)]
    changed = X.copy()
    changed[0] = 1.0 if categorical(entry) else 1e6
    if y is None:
        return (X, None), [(changed, None)]
    if y.dtype.kind == "i":
        usual, others = 0, [y.max()]
    else:
        least = 5e-324 if registry.positive_targets(entry.estimator) else -1e308
        usual, others = 1.0, [1e308, least, 0.5]
    targets = [np.full_like(y, usual) for _ in others]
    for moved, value in zip(targets, others, strict=True):
        moved[0] = value
    found = [(changed, moved) for moved in targets]
    if entry.name in registry.SEARCHES:  # some of these places are validation rows
        found = [(np.roll(changed, k, 0), np.roll(targets[0], k)) for k in range(6)]
    return (X, np.full_like(y, usual)), found


def categorical(entry):
    return entry.name in registry.CATEGORICAL or entry.label == "mixed"


def caught(entry, X, y, answers=None):
    """Sums on their way to the noise, and what was released."""
    tape = Tape(answers)
    with pytest.MonkeyPatch.context() as patch:
        with_noise(patch, tape)
        fitted = registry.fit(entry.estimator, X, y)
        if entry.name == "GaussianMechanism":
            fitted.transform(X)
            fitted.release(np.clip(X[0], -0.5, 0.5), sensitivity=1.0)
    return tape


def grids(tape):
    return [(b.name, b.unit, b.groups, b.total.shape, sigma) for b, sigma in tape.sums]


def other_rows(entry, X):
    """Rows that have nothing in common but their shape."""
    random = registry.rows_for(entry, SIZE)[0]
    if categorical(entry):
        return [np.ones_like(X), random]
    return [np.full_like(X, 1e308), np.full_like(X, -5e-324), random]


def coordinates(bounded):
    """Exact integers, and the weights of their noise."""
    total = bounded.total
    assert total.high.dtype == total.low.dtype == np.int64
    limbs = zip(total.high.ravel().tolist(), total.low.ravel().tolist(), strict=True)
    weights = [w for count, w in bounded.groups for _ in range(count)] or [1.0] * total.size
    return [high * 2**32 + low for high, low in limbs], weights


def most_telling(name, tape, others):
    """Two values of a coordinate, one far smaller than the other for the noise on them."""
    found = []
    for other in others:
        for (bounded, sigma), (moved, _) in zip(tape.sums, other.sums, strict=True):
            if bounded.name == name:
                values, weights = coordinates(bounded)
                for a, b, weight in zip(values, coordinates(moved)[0], weights, strict=True):
                    size = abs(a - b) * bounded.unit / sigma / weight
                    ratio = size / (1 + min(abs(a), abs(b)))
                    found.append((ratio, a, b, bounded, sigma * weight))
    return max(found, key=lambda each: each[0])[1:]


def excluded(outputs, value):
    """Outputs that float noise cannot lead to from a value.

    The noise is a float. Where it is coarser than the output the sum of the two is exact, so the
    difference must be a float.
    """
    noise = outputs - value
    back = outputs - noise
    lost = (value - back) != 0  # what the difference loses by its rounding
    return lost & (np.spacing(np.abs(outputs)) < np.spacing(np.abs(noise)))


def attack(draw, values):
    """How many of the outputs of either of two values exclude the other one, and itself."""
    told = lies = 0
    for truth, other in (values, values[::-1]):
        outputs = draw(truth)
        told += int(excluded(outputs, other).sum())
        lies += int(excluded(outputs, truth).sum())
    return told, lies


@pytest.mark.parametrize("entry", PATHS, ids=registry.ids(PATHS))
@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")
def test_no_release_path_can_be_attacked_by_its_floats(entry):
    # A search draws which rows it learns from, and once in a while there is nothing to tell.
    telling = set()
    for _ in range(8 if entry.name in registry.SEARCHES else 1):
        names, told = attacked(entry)
        telling |= told
        if telling == names:
            break
    assert telling == names


def attacked(entry):
    """Names of the releases, and of those that noise in floats would give away."""
    data, changed = neighbours(entry)
    tape = caught(entry, *data)
    others = [caught(entry, *neighbour, tape.given) for neighbour in changed]
    assert tape.sums
    # The lattice, the noise and the number of values are fixed before the data.
    assert all(grids(tape) == grids(other) for other in others)
    for rows in other_rows(entry, data[0]):
        assert grids(caught(entry, rows, data[1])) == grids(tape)
    for (bounded, _), answer in zip(tape.sums, tape.given, strict=True):
        assert np.frexp(bounded.unit)[0] == 0.5  # a power of two
        assert np.array_equal(answer / bounded.unit, np.rint(answer / bounded.unit))
    names, telling = {bounded.name for bounded, _ in tape.sums}, set()
    for name in names:
        *integers, bounded, sigma = most_telling(name, tape, others)
        values = [integer * bounded.unit for integer in integers]

        def naive(value, sigma=sigma):
            return value + np.random.default_rng(1).normal(0.0, sigma, ATTEMPTS)

        def ours(value, sigma=sigma, bounded=bounded):
            total = ExactTotal((ATTEMPTS,))
            total.add(np.full(ATTEMPTS, value / bounded.unit))
            repeated = dataclasses.replace(bounded, total=total, groups=())
            return REAL_NOISE(repeated, sigma, None, ())

        # Of two times 32768 outputs 160 were the fewest to tell: none would be no accident.
        told, lies = attack(naive, values)
        assert not lies, name
        if told:
            telling.add(name)
        assert attack(ours, values) == (0, 0), name
    return names, telling


# ---------------------------------------------------------------- the sampler at work


class Counting:
    """Words of a keyed stream, counted."""

    def __init__(self, key):
        self.stream = keyed_source(key)
        self.taken = 0

    def words(self, n):
        self.taken += n
        return self.stream.words(n)


def extra_work(draw, number=20_000):
    """Words that draws of more than two standard deviations take beyond those of less than one."""
    source = Counting(b"work of draws")
    values, words = np.empty((2, number))
    for i in range(number):
        before = source.taken
        values[i] = draw(source)
        words[i] = source.taken - before
    size = np.abs(values) / np.std(values)
    return words[size > 2.0].mean() - words[size < 1.0].mean(), words.mean()


def by_steps(source):
    """A naive sampler of discrete noise: it walks as far as the noise is large."""
    steps = 0
    while source.words(1)[0] >> np.uint64(60):
        steps += 1
    return steps


def test_the_work_on_a_draw_hardly_depends_on_its_size():
    # A quarter of a word is ten standard errors of the difference; the words are fixed.
    extra, usual = extra_work(lambda source: rounded_gaussian(2.0**20, 1, source)[0])
    assert abs(extra) < 0.25 and usual < 14.0
    extra, usual = extra_work(by_steps, 2_000)
    assert extra > usual
