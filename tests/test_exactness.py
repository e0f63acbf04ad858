"""A seeded fit is bitwise the same however the work is done.

Sums are exact, so the order of rows, the size of blocks, the number of threads and the layout of
memory cannot change a single bit. All of them are drawn at once, for every estimator.
"""

import copy

import numpy as np
import pytest
import registry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from skdp import _dense_rows, engine

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning"),
]
# The Gaussian mechanism learns nothing; what it releases of rows has the order of the rows.
# A search divides the rows by their places.
NAMES = [n for n in registry.CLASSES if n not in ("GaussianMechanism", *registry.SEARCHES)]
ENTRIES = [
    registry.Entry(entry.name, entry.label, registry.set_deep(entry.estimator, "random_state", 7))
    for entry in registry.all_entries(registry.variants, NAMES)
]
ONE = next(entry for entry in ENTRIES if str(entry) == "DPLogisticRegression-declared")
N_ROWS = 700


def learned(fitted):
    """The fitted state, without the parameters that may be set differently on purpose."""
    return {
        path: value
        for path, value in registry.state(fitted).items()
        if not path.endswith((".n_jobs", ".feature_names_in_"))
    }


def data_for(entry):
    """Ordinary rows and some that take other paths through the rounding."""
    X, y = registry.rows_for(entry, N_ROWS)
    X[3], X[4], X[5], X[6] = [1e308, -1e308, 0.0], 0.0, [1e-320, 5e-324, 0.0], [40.0, 1e9, -0.3]
    return X, y


def reference(entry):
    X, y = data_for(entry)
    return learned(registry.fit(entry.estimator, X, y))


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
    "transposed view": lambda X: X.T.copy().T,
    "list": lambda X: X.tolist(),
}


@pytest.mark.parametrize("entry", ENTRIES, ids=registry.ids(ENTRIES))
def test_a_seeded_fit_does_not_depend_on_how_the_work_is_done(entry):
    X, y = data_for(entry)
    want = reference(entry)
    assert len(want) > 2
    threaded = [n for n in entry.estimator.get_params() if n.split("__")[-1] == "n_jobs"]

    @settings(
        max_examples=16, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(
        seed=st.none() | st.integers(0, 2**20),
        block=st.sampled_from([1, 1 << 12, 1 << 20]),
        layout=st.sampled_from(sorted(LAYOUTS)),
        jobs=st.sampled_from([None, 1, 2, 3, -1]),
        blas=st.sampled_from([1, 2]),
        serial=st.booleans(),
        compiled=st.booleans(),
    )
    def check(seed, block, layout, jobs, blas, serial, compiled):
        order = slice(None) if seed is None else np.random.default_rng(seed).permutation(N_ROWS)
        estimator = clone(entry.estimator).set_params(**dict.fromkeys(threaded, jobs))
        with pytest.MonkeyPatch.context() as patch, threadpool_limits(blas, user_api="blas"):
            patch.setattr(engine, "_CACHE_BYTES", block)
            if not serial:
                patch.setattr(engine, "_SERIAL_ENTRIES", 0)
            if compiled:  # where numba is installed
                patch.setattr(_dense_rows, "_COMPILED_ENTRIES", 0)
            rows = LAYOUTS[layout](X[order])
            fitted = registry.fit(estimator, rows, None if y is None else y[order])
        assert learned(fitted) == want

    check()


@pytest.mark.parametrize("entry", ENTRIES, ids=registry.ids(ENTRIES))
def test_another_record_another_seed_or_another_budget_changes_the_fit(entry):
    # Without this the comparison above could not fail.
    X, y = data_for(entry)
    want = reference(entry)
    changed = X.copy()
    changed[8] = -changed[8] / 2
    assert learned(registry.fit(entry.estimator, changed, y)) != want
    arrays = [path for path, value in want.items() if len(value) == 3]
    reseeded = registry.set_deep(entry.estimator, "random_state", 8)
    cheaper = clone(entry.estimator).set_params(epsilon=0.99 * entry.estimator.epsilon)
    for other in (reseeded, cheaper):
        found = learned(registry.fit(other, X, y))
        assert any(found[path] != want[path] for path in arrays)


def test_threads_and_blocks_are_really_used(monkeypatch):
    # The settings drawn above reach the code that they are meant for.
    entry = ONE
    X, y = registry.rows_for(entry, N_ROWS)
    seen = set()
    run = engine.BoundedRows._run

    def spy(self, work, rows):
        seen.add((self._pool.count, rows))
        return run(self, work, rows)

    monkeypatch.setattr(engine.BoundedRows, "_run", spy)
    monkeypatch.setattr(engine, "_CACHE_BYTES", 1)
    monkeypatch.setattr(engine, "_SERIAL_ENTRIES", 0)
    registry.fit(clone(entry.estimator).set_params(n_jobs=2), X, y)
    assert {count for count, _ in seen} == {2}
    assert min(rows for _, rows in seen) < N_ROWS / 2


def test_float32_rows_are_the_same_in_every_layout():
    entry = ONE
    X, y = registry.rows_for(entry, N_ROWS)
    narrow = X.astype(np.float32)
    fits = [
        learned(registry.fit(entry.estimator, rows, y))
        for rows in (narrow, np.asfortranarray(narrow), narrow.astype(np.float64), narrow.tolist())
    ]
    assert fits[0] == fits[1] == fits[2] == fits[3]


SPARSE = [e for e in ENTRIES if e.estimator.__sklearn_tags__().input_tags.sparse]


@pytest.mark.parametrize("entry", SPARSE, ids=registry.ids(SPARSE))
def test_sparse_and_dense_rows_give_bitwise_the_same_fit(entry):
    X, y = data_for(entry)
    X = np.where(np.abs(X) < 0.8, 0.0, X)
    want = learned(registry.fit(entry.estimator, X, y))
    rows = csr_array(X)
    split = csr_array(  # every entry in two halves
        (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), 2 * rows.indptr), shape=X.shape
    )
    before = split.copy()
    for same in (rows, csc_array(X), split):
        assert learned(registry.fit(entry.estimator, same, y)) == want
    assert np.array_equal(split.data, before.data)  # the caller's array is left alone


def test_two_fits_at_once_do_not_disturb_each_other():
    # Threads of one process: the limit on BLAS threads and the noise belong to each fit.
    from concurrent.futures import ThreadPoolExecutor

    entry = ONE
    X, y = data_for(entry)
    want = reference(entry)
    with ThreadPoolExecutor(2) as pool:
        fits = list(
            pool.map(lambda _: registry.fit(copy.deepcopy(entry.estimator), X, y), range(6))
        )
    assert all(learned(f) == want for f in fits)
