"""The part of the fuzzing that runs with every test; ``make fuzz`` is the long one."""

import fuzzing
import numpy as np
import pytest
import registry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

import skdp.noise
from skdp import DPRidge, DPStandardScaler
from skdp.exceptions import UtilityWarning

N_INPUTS = 400
FIRST = 10**9  # not among those of a long run


class Drawn:
    """Draws from hypothesis, which looks for the smallest input that fails."""

    def __init__(self, data):
        self.data = data

    def pick(self, options):
        return self.data.draw(st.sampled_from(list(options)))

    def numbers(self, shape):
        values = st.floats(allow_nan=False, allow_infinity=False)
        return self.data.draw(arrays(float, shape, elements=values, fill=st.nothing()))

    def mask(self, shape, share):
        del share
        return self.data.draw(arrays(bool, shape, fill=st.nothing()))


@pytest.mark.parametrize("part", range(4))
def test_seeded_inputs(part):
    numbers = range(FIRST + part, FIRST + N_INPUTS, 4)
    results = fuzzing.run_many(numbers)
    assert [(number, found) for number, _, found, _ in results if found] == []
    # Both outcomes are frequent: neither are all inputs refused nor is all accepted.
    assert 0.2 < np.mean([refused for *_, refused in results]) < 0.8


@given(st.data())
@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
def test_drawn_inputs(data):
    chooser = Drawn(data)
    found, _ = fuzzing.verdict(chooser, chooser.pick(fuzzing.entries()))
    assert found == []


# ---------------------------------------------------------------- the verdict notices


class Fixed:
    """A chooser of valid rows."""

    def pick(self, options):
        return {10: 8, 9: 3}.get(len(options), options[0])

    def numbers(self, shape):
        return np.random.default_rng(0).normal(size=shape)

    def mask(self, shape, share):
        raise AssertionError


def verdict(estimator):
    name = type(estimator).__name__
    return fuzzing.verdict(Fixed(), registry.Entry(name, "declared", estimator))[0]


class Breaks(DPStandardScaler):
    def fit(self, X, y=None):
        raise self.error

    def __sklearn_clone__(self):
        return self


@pytest.mark.parametrize(
    "error",
    [
        IndexError("list index out of range"),
        KeyError("c"),
        ZeroDivisionError("division by zero"),
        AssertionError("this cannot be, it never was"),
        np.linalg.LinAlgError("singular matrix, as it seems"),
        ValueError("bad"),
    ],
)
def test_errors_from_inside_are_noticed(error):
    broken = Breaks()
    broken.error = error
    assert any(type(error).__name__ in text for text in verdict(broken))


class Warns(DPStandardScaler):
    def fit(self, X, y=None):
        np.array([1e308]) * 10
        return super().fit(X)


class Missing(DPStandardScaler):
    def fit(self, X, y=None):
        super().fit(X)
        self.mean_ = self.mean_ * np.nan
        return self


class SpendsUncharged(DPStandardScaler):
    def _finish(self, *args):
        del self.privacy_cost_
        raise ValueError("it ends in an error")


class ChargesUnspent(DPStandardScaler):
    def fit(self, X, y=None):
        self.privacy_cost_ = self.planned_cost()
        raise ValueError("it ends in an error")


@pytest.mark.parametrize(
    ("estimator", "text"),
    [
        (Warns(bounds=(-5, 5)), "RuntimeWarning"),
        (Missing(bounds=(-5, 5)), "NaN in .mean_"),
        (SpendsUncharged(bounds=(-5, 5)), "spent, not charged"),
        (ChargesUnspent(bounds=(-5, 5)), "charged, not spent"),
    ],
)
def test_other_faults_are_noticed(estimator, text):
    assert any(text in found for found in verdict(estimator))


@pytest.mark.filterwarnings(f"ignore::{UtilityWarning.__module__}.UtilityWarning")
def test_sums_beyond_their_clip_are_noticed():
    watch = fuzzing.Watch()
    X = np.random.default_rng(0).normal(size=(20, 3))
    with watch.watching(20):
        DPRidge(y_bounds=(-3, 3)).fit(csr_array(X), X[:, 0].clip(-3, 3))
    assert watch.spent and not watch.unclipped
    with watch.watching(0):  # no row at all explains a sum
        DPRidge(y_bounds=(-3, 3)).fit(X, X[:, 0].clip(-3, 3))
    assert watch.unclipped
    assert skdp.noise.add_noise is fuzzing.REAL_NOISE
