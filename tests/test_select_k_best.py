"""DPSelectKBest: private scores of columns.

Statistical tests: signals are more than six standard deviations of the noise apart, so that a
false alarm has a probability below 1e-6.
"""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest, f_classif, f_regression
from test_proof_page import Keeping, integers, neighbours_of

from skdp import DPSelectKBest
from skdp.exceptions import UtilityWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8000, 6)) * [1.0, 0.3, 1.0, 1.0, 0.2, 1.0]
SIGNAL = X[:, 1] / 0.3 - X[:, 3] + 0.7 * X[:, 5]
LABELS = np.digitize(SIGNAL, [-0.5, 0.5])
BOUNDS = (-4 * X.std(axis=0), 4 * X.std(axis=0))


@pytest.mark.parametrize("bounds", [None, BOUNDS])
@pytest.mark.parametrize(
    ("facts", "y", "score"),
    [
        ({"classes": [0, 1, 2]}, LABELS, f_classif),
        ({"classes": [False, True]}, SIGNAL > 0, f_classif),
        ({"y_bounds": (-6, 6)}, SIGNAL, f_regression),
    ],
)
def test_columns_with_signal_are_kept(bounds, facts, y, score):
    selector = DPSelectKBest(5.0, k=3, bounds=bounds, **facts).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [1, 3, 5]
    twin = SelectKBest(score, k=3).fit(X, y)
    assert np.array_equal(selector.transform(X), twin.transform(X))
    kept = [1, 3, 5]
    assert np.all(np.abs(np.log(selector.scores_[kept] / twin.scores_[kept])) < 1.0)
    assert np.all(selector.scores_[[0, 2, 4]] < 0.3 * selector.scores_[kept].min())


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
@pytest.mark.parametrize(
    ("facts", "targets"),
    [({"classes": [0, 1, 2]}, [0, 1, 2]), ({"y_bounds": (-2, 4)}, [-2.0, 4.0, 1.0, 9e99])],
)
def test_no_record_moves_the_scores_further_than_claimed(neighboring, facts, targets, monkeypatch):
    d = 2
    rows = np.vstack([np.ones((4, d)), -np.ones((4, d)), np.zeros((4, d)), np.full((2, d), 1e308)])
    both = np.column_stack([rows, np.resize(targets, len(rows))])
    keeping = Keeping(3.0)
    monkeypatch.setattr(DPSelectKBest, "_start", lambda self, plan: keeping)
    monkeypatch.setattr(DPSelectKBest, "_finish", lambda self, plan, noise: None)

    def released(data):
        selector = DPSelectKBest(bounds=(-1, 1), n_rows=200, neighboring=neighboring, **facts)
        selector.fit(data[:, :d], data[:, d].astype(int) if "classes" in facts else data[:, d])
        return keeping.given[-1]

    base, largest = released(both), 0
    weights = [Fraction(w) for count, w in base.groups for _ in range(count)]
    bound = (Fraction(base.sensitivity) / Fraction(base.unit)) ** 2
    for other in neighbours_of(both, neighboring):
        if "classes" in facts:
            other[:, d] = np.where(np.isin(other[:, d], targets), other[:, d], 0)
        change = integers(base.total) - integers(released(other).total)
        size = sum((Fraction(int(c)) / w) ** 2 for c, w in zip(change, weights, strict=True))
        assert size <= bound
        largest = max(largest, size)
    assert largest > (0.99 if neighboring == "add_or_remove" else 0.4) * bound


@pytest.mark.parametrize(
    ("facts", "y"), [({"classes": [0, 1, 2]}, LABELS), ({"y_bounds": (-6, 6)}, SIGNAL)]
)
def test_without_privacy_it_is_the_twin(facts, y):
    selector = DPSelectKBest(inf, k=2, **facts).fit(X[:300], y[:300])
    twin = selector.make_non_private().fit(X[:300], y[:300])
    np.testing.assert_array_equal(selector.scores_, twin.scores_)
    np.testing.assert_array_equal(selector.transform(X), twin.transform(X))
    assert list(selector.get_feature_names_out()) == list(twin.get_feature_names_out())


def test_few_rows_warn():
    with pytest.warns(UtilityWarning, match="mostly noise.*50 rows"):
        DPSelectKBest(0.3, bounds=BOUNDS, classes=[0, 1, 2]).fit(X[:50], LABELS[:50])


def test_the_target_must_be_declared():
    for facts in ({}, {"classes": [0, 1], "y_bounds": (0, 1)}):
        with pytest.raises(ValueError, match="declared"):
            DPSelectKBest(bounds=BOUNDS, **facts).fit(X, LABELS)
    with pytest.raises(ValueError, match="among"):
        DPSelectKBest(bounds=BOUNDS, classes=[0, 1]).fit(X, LABELS)
