"""What stays true when callers, threads or data misbehave."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import registry
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from skdp import DPLogisticRegression, DPRidge, DPStandardScaler, GaussianMechanism, engine
from skdp.exceptions import PrivacyBudgetError, UtilityWarning
from skdp.linear_model import _base
from skdp.noise import NoiseCore

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = (X[:, 0] > 0).astype(int)


def gradient_totals(monkeypatch, rows, y):
    """The exact sums that a seeded fit adds noise to."""
    seen = []
    original = engine.BoundedRows.gradient_sum

    def spy(self, *args):
        bounded = original(self, *args)
        seen.append(bounded.total.tobytes())
        return bounded

    with monkeypatch.context() as patch:
        patch.setattr(engine.BoundedRows, "gradient_sum", spy)
        DPLogisticRegression(classes=[0, 1], random_state=0, max_iter=1).fit(rows, y)
    return seen


@pytest.mark.parametrize("flag", [True, False])
def test_scipys_word_on_duplicates_is_not_taken(monkeypatch, flag):
    # Columns folded in place leave a flag that says there are no duplicates.
    wide = csr_array(np.tile(X, 2))
    assert wide.has_canonical_format
    wide.indices[:] %= 4
    wide.has_canonical_format = wide.has_sorted_indices = flag
    folded = csr_array((wide.data, wide.indices, wide.indptr), shape=(400, 4))
    folded.has_canonical_format = folded.has_sorted_indices = flag
    before = folded.indices.copy()
    assert gradient_totals(monkeypatch, folded, Y) == gradient_totals(monkeypatch, 2 * X, Y)
    assert np.array_equal(folded.indices, before)


def test_indices_beyond_the_columns_are_refused():
    broken = csr_array(X)
    broken.indices[7] = 400
    with pytest.raises(ValueError, match="ind"):
        DPLogisticRegression(classes=[0, 1]).fit(broken, Y)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("special", [1.4e308, 2.0**1010, -(2.0**1010), 0.0])
def test_columns_at_the_end_of_the_range_of_floats(special):
    rows = np.full((20_000, 1), 1.5e308)
    rows[3] = special
    fitted = DPStandardScaler(epsilon=100.0).fit(rows)
    assert np.isfinite(fitted.mean_).all() and (fitted.scale_ > 0).all()
    assert len(fitted.releases_) == sum(r.count for r in fitted.plan_.releases)


def test_threads_cannot_share_one_release():
    fitted = GaussianMechanism(sensitivity=1.0, n_releases=3).fit(X)
    barrier = Barrier(8)

    def ask(_):
        barrier.wait()
        try:
            return fitted.release(0.0)
        except PrivacyBudgetError:
            return None

    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            granted = [v for v in pool.map(ask, range(8)) if v is not None]
            assert len(fitted.releases_) <= 3
    assert granted == [] and len(fitted.releases_) == 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_a_mechanism_know_what_was_released(copied):
    fitted = GaussianMechanism(sensitivity=1.0, n_releases=2).fit(X)
    fitted.release(1.0)
    other = copied(fitted)
    assert other.releases_ == fitted.releases_
    other.release(1.0)
    with pytest.raises(PrivacyBudgetError, match="n_releases=2"):
        other.release(1.0)


def test_what_was_released_is_not_rewritten_by_parameters():
    fitted = GaussianMechanism(clip_norm=1.0, random_state=3).fit(X)
    fitted.transform(X)
    (made,) = fitted.releases_
    fitted.set_params(random_state=None, neighboring="replace", clip_norm=5.0)
    assert any("random_state" in text for text in fitted.privacy_cost_.assumptions)
    fitted.transform(X)
    assert fitted.releases_ == (made, made)


@pytest.mark.parametrize("seed", [None, 0])
def test_a_fit_that_ends_in_an_error_is_charged_and_forgets_the_one_before(seed, monkeypatch):
    model = DPRidge(epsilon=0.5, y_bounds=(-3, 3), random_state=seed).fit(X, X[:, 0])
    model.set_params(epsilon=2.0)

    def fail(*args, **kwargs):
        raise UtilityWarning("as an error")

    monkeypatch.setattr(_base.PrivateLinearModel, "_check_scale", fail)
    with pytest.raises(UtilityWarning):
        model.fit(X, X[:, 0])
    assert not hasattr(model, "coef_")
    assert model.privacy_cost_.epsilon() == pytest.approx(2.0)


PREPARE = [n for n in registry.CLASSES if hasattr(registry.declared(n).estimator, "transform")]


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("name", [n for n in PREPARE if n != "GaussianMechanism"])
def test_a_transformer_whose_fit_failed_is_not_fitted_and_is_charged(name, monkeypatch):
    entry = registry.declared(name)
    rows, targets = registry.rows_for(entry, 60)
    data = (rows,) if targets is None else (rows, targets)
    model = entry.estimator.fit(*data).set_params(epsilon=3.0)
    release = NoiseCore.release

    def fail(self, bounded):
        release(self, bounded)
        raise MemoryError

    monkeypatch.setattr(NoiseCore, "release", fail)
    with pytest.raises(MemoryError):
        model.fit(*data)
    with pytest.raises(NotFittedError):
        model.transform(rows)
    assert model.privacy_cost_.epsilon() == pytest.approx(3.0)


def test_a_fit_refused_before_any_release_is_not_charged():
    model = DPRidge(epsilon=0.5, y_bounds=(-3, 3)).fit(X, X[:, 0])
    kept = model.coef_.copy()
    bad = X.copy()
    bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.set_params(epsilon=2.0).fit(bad, X[:, 0])
    assert np.array_equal(model.coef_, kept)
    assert model.privacy_cost_.epsilon() == pytest.approx(0.5)
