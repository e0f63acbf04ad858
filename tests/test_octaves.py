"""Location and spread where rows are few for the noise.

In 400 runs the ratios of the spreads were between 0.41 and 2.6, with a standard deviation of at
most 0.39 on the scale of log2, and the centres within 1.02 standard deviations. The limits below
are more than six of their standard deviations away: a false alarm is below 1e-6.
"""

import numpy as np
import pytest
import test_standard_scaler as scaler_tests

from skdp import DPStandardScaler, PrivacyCost
from skdp._location import find_location, plan_location
from skdp._octaves import _TEMPLATES
from skdp._threads import Workers
from skdp.exceptions import UtilityWarning
from skdp.noise import NoiseCore

N = 1500


def columns(n=N, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 6))
    spoilt = np.where(rng.random(n) < 0.005, 1e12, 100 + 30 * z[:, 1])
    return {
        "normal": 4.0 * z[:, 0],
        "outliers": spoilt,
        "lognormal": np.exp(9 + 0.5 * z[:, 2]),
        "tiny": 1e-9 * z[:, 3],
        "negative": -70 + 20 * z[:, 4],
        "huge": 1e200 * (2 + z[:, 5]),
        "flags": (z[:, 0] > 0).astype(float),
    }


def locate(X, ratio, *, n_rows=None, neighboring="add_or_remove"):
    """Location at so many rows per standard deviation of the noise of one histogram."""
    n_rows = n_rows or len(X)
    factor = 2.0 if neighboring == "replace" else 1.0
    budget = PrivacyCost(ratio * np.sqrt(factor * X.shape[1]) / n_rows, neighboring)
    noise = NoiseCore(plan_location(budget, X.shape[1], n_rows), seed=None, owner="test")
    options = {"noise": noise, "neighboring": neighboring, "pool": Workers(1)}
    found = find_location(X, n_rows=n_rows, **options)
    assert sum(r.mu**2 for r in noise.finish()) == pytest.approx(budget.mu**2)
    return found


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
def test_columns_of_any_size_are_found(neighboring):
    # With 50 rows per standard deviation; four rounds find none of these columns.
    X = np.column_stack(list(columns().values()))
    unit = np.abs(np.median(np.abs(X), axis=0)) + (np.median(X, axis=0) == 0)
    usual = X[X[:, 1] < 1e11] / unit
    for _ in range(3):
        found = locate(X, 50.0, neighboring=neighboring)
        assert found.found.all()
        ratio = found.spread / unit / usual.std(axis=0)
        assert ratio.min() > 0.15 and ratio.max() < 7.0
        apart = np.abs(found.mean / unit - usual.mean(axis=0)) / usual.std(axis=0)
        assert apart.max() < 3.0


def test_rounds_are_chosen_by_public_facts():
    names = [
        {r.name for r in plan_location(PrivacyCost(0.1), 4, n_rows)} for n_rows in (1590, 1610)
    ]
    assert names == [{"octaves", "rough moments"}, {"magnitudes", "locations", "distances"}]


def test_hopeless_columns_keep_location_zero_and_scale_one():
    X = 1e6 * np.column_stack(list(columns(40).values()))
    with pytest.warns(UtilityWarning, match="7 columns 7 could not be told from the noise"):
        scaler = DPStandardScaler(0.1).fit(X)
    assert np.array_equal(scaler.mean_, np.zeros(7)) and np.array_equal(scaler.scale_, np.ones(7))


def test_templates_are_shares():
    for template, tail in _TEMPLATES:
        assert abs(template.sum() - 1.0) < 0.01
        assert 0 <= tail < len(template)


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
def test_no_record_moves_a_release_further_than_claimed(neighboring):
    X = scaler_tests.table(500)
    records = list(scaler_tests.adversaries(X))
    options = {"neighboring": neighboring, "bounds": None, "mu": 0.05}
    tapes, base = [], None
    for record in records:
        tapes.append(scaler_tests.run(np.vstack([X, record]), 501, again=base, **options))
        base = base or tapes[0]
    assert [r.name for r in base.sums] == ["octaves", "rough moments", "moments"]
    blank = scaler_tests.run(X, 501, again=base, **options)
    others = tapes if neighboring == "replace" else [blank]
    found = [scaler_tests.shifts(one, other) for one in tapes for other in others]
    assert np.max(found) <= 1.0
    assert np.max(found, axis=0)[0] > 0.99


def test_norm_of_the_output_is_public():
    X = np.column_stack(list(columns().values()))
    X /= np.abs(X).max(axis=0)
    scaler = DPStandardScaler(bounds=(-2, 2)).fit(X)
    assert scaler.output_norm_ == np.sqrt(X.shape[1])
    assert DPStandardScaler(np.inf).fit(X).output_norm_ == np.sqrt(X.shape[1])
    assert DPStandardScaler(bounds=(-2, 2), with_std=False).fit(X).output_norm_ is None
