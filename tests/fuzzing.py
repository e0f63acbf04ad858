"""Fuzzing of every estimator: hostile rows, targets and containers, and a verdict on each fit.

``make fuzz`` runs it; ``python tests/fuzzing.py --only 1234`` repeats one input by its number.

An input is a function of a chooser, which draws from a seeded generator here and from hypothesis
in `test_fuzzing.py`. What a fit may do: learn, and show finite numbers only, or raise a ValueError
or TypeError that says something. It may not warn of numpy's troubles, break inside, keep NaN,
add more than its clip allows to a sum, spend without a charge, or charge without spending.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from math import inf, nan
from pathlib import Path

import numpy as np
import pandas as pd
import registry
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError

import skdp.noise
from skdp.exceptions import PrivacyWarning, UtilityWarning

REAL_NOISE = skdp.noise.add_noise
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, -2.2e-308, 1e-300, 1e300, 1e308, -1.7e308, 3.5e38, 1e-46]
BAD = [nan, inf, -inf]
ALLOWED = (PrivacyWarning, UtilityWarning, DataConversionWarning)


class Seeded:
    """Draws from a generator."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)

    def pick(self, options):
        return options[int(self.generator.integers(len(options)))]

    def numbers(self, shape):
        return self.generator.normal(size=shape) * 2.0

    def mask(self, shape, share):
        return self.generator.random(shape) < share


@cache
def entries():
    """All estimators with all their settings, made cheap."""
    found = []
    for entry in registry.all_entries(registry.variants) + registry.all_entries(registry.default):
        estimator = clone(entry.estimator)
        for name, value in (("max_iter", 2), ("n_quantiles", 5), ("n_bins", 3)):
            estimator = registry.set_deep(estimator, name, value)
        found.append(registry.Entry(entry.name, entry.label, estimator))
    return found


# ---------------------------------------------------------------- inputs


def rows(chooser, entry):
    n = chooser.pick([0, 1, 2, 3, 3, 5, 8, 8, 13, 30])
    d = chooser.pick([0, 1, 2, 3, 3, 3, 3, 3, 4])
    X = chooser.numbers((n, d))
    if entry.name in registry.CATEGORICAL or entry.label == "mixed" or chooser.pick([0, 0, 0, 1]):
        X = np.rint(X).clip(-1, 1) + 0.0
    kind = chooser.pick(
        ["plain", "plain", "special", "special", "bad", "tiny", "huge", "constant", "twice", "same"]
    )
    if kind in ("special", "bad") and X.size:
        values = SPECIAL if kind == "special" else SPECIAL + BAD
        hit = chooser.mask(X.shape, chooser.pick([0.05, 0.3, 1.0]))
        X[hit] = [chooser.pick(values) for _ in range(int(hit.sum()))]
    elif kind == "tiny":
        X = X * 1e-308
    elif kind == "huge":
        X = X.clip(-1, 1) * 1.7e308
    elif kind == "constant":
        X = np.full_like(X, chooser.pick(SPECIAL))
    elif kind == "twice" and d > 1:
        X[:, 1:] = X[:, :1]
    elif kind == "same" and n > 1:
        X[1:] = X[:1]
    return X


def in_container(chooser, X):
    """The rows in one of many forms."""
    kind = chooser.pick(FORMS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # our own casts overflow on purpose
        return kind, CONTAINERS[kind](chooser, X)


def frame(X, **columns):
    made = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    for name, values in columns.items():
        if X.shape[1]:
            made[name] = values
    return made


def integers(X):
    return np.nan_to_num(X, nan=0.0, posinf=9.0, neginf=-9.0).clip(-9, 9).astype(np.int64)


def untidy(chooser, X):
    """Sparse rows with explicit zeros, repeated and unsorted indices."""
    n, d = X.shape
    if not X.size:
        return sp.csr_array(X)
    indices = np.tile(np.r_[np.arange(d)[::-1], 0], n)
    values = np.column_stack([X[:, ::-1], 0.25 * X[:, 0]]).ravel()
    return sp.csr_array((values, indices, np.arange(n + 1) * (d + 1)), shape=(n, d))


@cache
def scratch():
    return tempfile.TemporaryDirectory()


def mapped(chooser, X):
    if not X.size:
        return X
    path = Path(scratch().name) / "rows.npy"
    path.unlink(missing_ok=True)
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def frozen(chooser, X):
    X = X.copy()
    X.flags.writeable = False
    return X


def objects(chooser, X):
    made = X.astype(object)
    if made.size and chooser.pick([0, 1]):
        odd = [
            "a",
            None,
            b"b",
            1 + 2j,
            10**400,
            [1.0],
            {"k": 1},
            True,
            pd.NA,
            np.datetime64(1, "D"),
        ]
        made[0, 0] = chooser.pick(odd)
    return made


def dense(form):
    return lambda chooser, X: form(X)


CONTAINERS = {
    "plain": dense(lambda X: X),
    "fortran": dense(np.asfortranarray),
    "strided": dense(lambda X: np.repeat(X, 2, axis=0)[::2]),
    "reversed": dense(lambda X: X[::-1, ::-1]),
    "float32": dense(lambda X: X.astype(np.float32)),
    "float16": dense(lambda X: X.astype(np.float16)),
    "longdouble": dense(lambda X: X.astype(np.longdouble) * 10),
    "big-endian": dense(lambda X: X.astype(">f8")),
    "integers": dense(integers),
    "int8": dense(lambda X: integers(X).astype(np.int8)),
    "uint64": dense(lambda X: integers(X).astype(np.uint64)),
    "bool": dense(lambda X: X > 0),
    "complex": dense(lambda X: X.astype(complex)),
    "texts": dense(lambda X: X.astype(str)),
    "bytes": dense(lambda X: integers(X).astype("S")),
    "dates": dense(lambda X: integers(X).astype("datetime64[D]")),
    "objects": objects,
    "lists": dense(lambda X: X.tolist()),
    "tuple": dense(lambda X: tuple(map(tuple, X))),
    "ragged": dense(lambda X: [*X.tolist(), [1.0]]),
    "vector": dense(lambda X: X[:, 0] if X.shape[1] else X),
    "three axes": dense(lambda X: X[:, :, None]),
    "masked": dense(lambda X: np.ma.masked_greater(X, 1.0)),
    "matrix": dense(np.asmatrix),
    "frozen": frozen,
    "mapped": mapped,
    "csr": dense(sp.csr_array),
    "csr matrix": dense(sp.csr_matrix),
    "csc": dense(sp.csc_array),
    "coo": dense(sp.coo_array),
    "lil": dense(sp.lil_array),
    "untidy": untidy,
    "csr float32": dense(lambda X: sp.csr_array(X.astype(np.float32))),
    "csr integers": dense(lambda X: sp.csr_array(integers(X))),
    "frame": dense(frame),
    "frame float32": dense(lambda X: frame(X).astype(np.float32)),
    "frame nullable": dense(lambda X: frame(X).astype("Float64")),
    "frame nullable integers": dense(lambda X: frame(integers(X)).astype("Int64")),
    "frame boolean": dense(lambda X: frame(X > 0).astype("boolean")),
    "frame category": dense(lambda X: frame(X, c0=pd.Categorical(["u"] * len(X)))),
    "frame text": dense(lambda X: frame(X, c0=["u"] * len(X))),
    "frame string": dense(lambda X: frame(X, c0=pd.array(["u"] * len(X), dtype="string"))),
    "frame NA": dense(lambda X: frame(X, c0=pd.array([pd.NA] * len(X), dtype="Int64"))),
    "frame dates": dense(lambda X: frame(X, c0=pd.to_datetime([7] * len(X)))),
    "frame sparse": dense(lambda X: frame(X).astype(pd.SparseDtype(float, 0.0))),
    "frame names twice": dense(lambda X: pd.DataFrame(X, columns=["c"] * X.shape[1])),
    "frame index": dense(lambda X: frame(X).set_axis([7] * len(X), axis=0)),
}
# Half of the inputs come in a form that may be fitted.
FORMS = [*CONTAINERS, *(["plain", "float32", "csr", "untidy", "frame", "frozen", "strided"] * 5)]


def targets(chooser, entry, n):
    """Targets that conform, or do not."""
    estimator = entry.estimator
    labels, numbers = registry.has_labels(estimator), registry.has_numbers(estimator)
    if not (labels or numbers) and chooser.pick([0, 0, 0, 1]) == 0:
        return "none", None
    y = registry.rows_for(entry, max(n, 1), seed=chooser.pick(range(9)))[1]
    y = (np.zeros(n) if y is None else y)[:n]
    kind = chooser.pick([*(["good"] * 12), *BAD_TARGETS])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind, y if kind == "good" else BAD_TARGETS[kind](y)


def as_columns(y):
    return np.reshape(y, (len(y), int(np.size(y) / len(y)))) if len(y) else np.zeros((0, 1))


def first(y, value):
    made = np.array(y, dtype=object if isinstance(value, str) else float)
    if len(made):
        made[0] = value
    return made


BAD_TARGETS = {
    "NaN": lambda y: first(y, nan),
    "inf": lambda y: first(y, inf),
    "huge": lambda y: first(y, -1.7e308),
    "tiny": lambda y: first(y, 5e-324),
    "unknown": lambda y: first(y, 77),
    "text": lambda y: first(y, "a"),
    "texts": lambda y: np.asarray(y).astype(str),
    "short": lambda y: y[:-1],
    "constant": lambda y: np.repeat(y[:1], len(y), axis=0),
    "column": as_columns,
    "two": lambda y: np.column_stack([y, y]),
    "float32": lambda y: np.asarray(y).astype(np.float32),
    "bool": lambda y: np.asarray(y) > 0,
    "list": lambda y: np.asarray(y).tolist(),
    "series": lambda y: pd.Series(np.asarray(y).ravel()[: len(y)]),
    "nullable": lambda y: pd.Series([None] * len(y), dtype="Float64"),
    "category": lambda y: pd.Series(np.asarray(y).ravel()[: len(y)]).astype("category"),
    "nothing": lambda y: None,
    "sparse": lambda y: sp.csr_array(as_columns(np.asarray(y, dtype=float))),
}


# ---------------------------------------------------------------- verdict


class Watch:
    """Sees what goes to the noise: how often, and whether it is larger than clips allow."""

    def __init__(self):
        self.spent, self.unclipped, self.n_rows = 0, [], 0

    def __call__(self, bounded, sigma, seed, context):
        self.spent += 1
        total = np.abs(bounded.total.to_float(bounded.unit)).ravel()
        if bounded.groups:
            total = total / np.concatenate([np.full(count, w) for count, w in bounded.groups])
        if total.size and not total.max() <= self.n_rows * bounded.sensitivity * (1 + 1e-9):
            self.unclipped.append(bounded.name)
        return REAL_NOISE(bounded, sigma, seed, context)

    @contextmanager
    def watching(self, n_rows):
        self.spent, self.unclipped, self.n_rows = 0, [], n_rows
        modules = [
            module
            for name, module in list(sys.modules.items())
            if name.split(".")[0] == "skdp" and getattr(module, "add_noise", None) is REAL_NOISE
        ]
        for module in modules:
            module.add_noise = self
        try:
            yield self
        finally:
            for module in modules:
                module.add_noise = REAL_NOISE


WATCH = Watch()


def called(function):
    """The error of a call, and its complaints about the way in which it ended."""
    error, said = None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function()
        except Exception as raised:
            error = raised
    for warning in caught:
        if not issubclass(warning.category, ALLOWED):
            said.append(f"{warning.category.__name__}: {str(warning.message)[:90]}")
    if error is not None:
        kind = type(error)
        clear = isinstance(error, ValueError | TypeError) and len(str(error)) > 10
        inner = isinstance(error, np.linalg.LinAlgError | NotFittedError)
        if inner or not clear:
            said.append(f"{kind.__name__}: {str(error)[:90]}")
    return error, said


def holds_nan(fitted):
    """Paths to numbers that are not finite among what a fit has learned."""
    found = []
    for path, value in registry.walk(fitted):
        learned = any(part.endswith("_") for part in path.split("."))
        if "categories_" in path:  # a missing value is a level of its own
            continue
        if learned and isinstance(value, float | np.floating | np.ndarray):
            array = np.asarray(value)
            if array.dtype.kind == "f" and np.isnan(array).any():
                found.append(path)
    return found


def verdict(chooser, entry):
    """What is wrong with the fit of one input (a list of texts), and whether it was refused."""
    raw = rows(chooser, entry)
    form, X = in_container(chooser, raw)
    kind, y = targets(chooser, entry, len(raw))
    estimator = clone(entry.estimator)
    for name in ("categories", "schema"):
        given = estimator.get_params().get(name)
        if isinstance(given, list) and len(given) != raw.shape[1]:
            estimator.set_params(**{name: (given * (raw.shape[1] + 1))[: raw.shape[1]]})
    fit = (lambda: estimator.fit(X)) if y is None else (lambda: estimator.fit(X, y))
    with WATCH.watching(len(raw) + 1):
        error, wrong = called(fit)
    wrong += [f"unclipped {name}" for name in WATCH.unclipped]
    charged = "privacy_cost_" in vars(estimator)
    # What fits others states the cost of what it holds, and before that the plan's.
    states = not isinstance(getattr(type(estimator), "privacy_cost_", None), property)
    if error is not None and states:
        if WATCH.spent and not charged:
            wrong.append("spent, not charged")
        if charged and not WATCH.spent:
            wrong.append("charged, not spent")
    if error is None:
        wrong += [f"NaN in {path}" for path in holds_nan(estimator)]
        for method in ("predict", "transform"):
            if hasattr(estimator, method):
                _, more = called(lambda method=method: getattr(estimator, method)(X))
                wrong += [f"{method}: {text}" for text in more]
    where = f"{entry} rows in {form}, target {kind}"
    return [f"{text} ({where})" for text in wrong], error is not None


def run(number):
    """The verdict on the input of that number."""
    chooser = Seeded(number)
    entry = chooser.pick(entries())
    found, refused = verdict(chooser, entry)
    return number, entry.name, found, refused


def run_many(numbers):
    return [run(number) for number in numbers]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--only", type=int, help="run one input and show what is wrong")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.only is not None:
        _, name, found, refused = run(options.only)
        print(name, "refused" if refused else "fitted", *found, sep="\n")
        return 1 if found else 0
    start = time.monotonic()
    last = options.first + options.inputs
    batches = [range(a, min(a + 250, last)) for a in range(options.first, last, 250)]
    done, refusals, failures, kinds = 0, 0, 0, Counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for results in pool.map(run_many, batches):
            for number, _, found, refused in results:
                done += 1
                refusals += refused
                failures += bool(found)
                for text in found:
                    kinds[text] += 1
                    if kinds[text] == 1:
                        print(f"input {number}: {text}", flush=True)
            if sys.stderr.isatty():
                print(f"\r{done}/{options.inputs} ", end="", file=sys.stderr)
    seconds = time.monotonic() - start
    print(f"{done} inputs in {seconds:.0f} s, {done / seconds:.0f} per second")
    print(f"{done - refusals} fitted, {refusals} refused with a clear error, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
