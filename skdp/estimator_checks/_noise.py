"""Checks of the noise: fresh, secret, as large as it must be, on a grid."""

import os
import pickle
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any
from unittest import SkipTest

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.cost import privacy_cost
from skdp.estimator_checks._subject import Subject, leaves, require

__all__ = [
    "check_global_seeds_have_no_effect",
    "check_noise_cannot_be_replayed",
    "check_noise_grows_as_epsilon_falls",
    "check_noise_is_fresh",
    "check_noise_is_fresh_in_forks",
    "check_noise_is_fresh_in_workers",
    "check_releases_lie_on_a_grid",
    "check_seeds_are_flagged_and_keyed",
]

# A value with 53 bits has so many below the largest of some; a grid has fewer.
_BITS_OF_A_GRID = 49
# Until both of two workers have fitted that many.
_ROUNDS, _FROM_EACH, _IN_A_ROW = 40, 24, 20
_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)


def check_noise_is_fresh(subject: Subject) -> None:
    """Fits of one estimator, of clones and of copies of a fitted one all differ.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """

    def streams(count: int) -> list[NDArray[np.float64]]:
        first = _noisy(subject)
        shown = [subject.stream(first, count)]
        models = [pickle.loads(pickle.dumps(first)) for _ in range(2)]
        models += [clone(first), clone(first), first]
        if subject.parameters("n_jobs"):
            jobs = dict.fromkeys(subject.parameters("n_jobs"), 2)
            models += [clone(first).set_params(**jobs) for _ in range(2)]
        return shown + [subject.stream(model, count) for model in models]

    _require_different(streams, "two fits share their noise")


def check_global_seeds_have_no_effect(subject: Subject) -> None:
    """A seed for `random` or ``numpy.random`` fixes no noise, and their states are not changed.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """

    def streams(count: int) -> list[NDArray[np.float64]]:
        shown = []
        for _ in range(3):
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002
            shown.append(subject.stream(clone(model), count))
        return shown

    model = _noisy(subject)
    message = "seeding numpy's or Python's global generator fixes the noise"
    with _global_states():
        _require_different(streams, message)


def check_noise_is_fresh_in_workers(subject: Subject) -> None:
    """Two processes that fit copies of one estimator do not draw the same noise.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    model = _noisy(subject)
    by_worker: dict[int, list[NDArray[np.float64]]] = {}
    job = delayed(_fitted_elsewhere)
    for _ in range(_ROUNDS):
        jobs = (job(clone(model), subject.X, subject.y) for _ in range(4))
        with warnings.catch_warnings():
            # Where warnings are errors, joblib's word of a worker that ended for want of work
            # would end the thread that serves the others: this one would wait for ever.
            warnings.filterwarnings("ignore", "A worker stopped while", UserWarning)
            results = Parallel(n_jobs=2, batch_size=1)(jobs)
        for worker, fitted in results:
            by_worker.setdefault(worker, []).extend(subject.shown(one) for one in fitted)
        if len(by_worker) > 1 and min(map(len, by_worker.values())) >= _FROM_EACH:
            break
    else:
        raise SkipTest("there is one worker only")
    # A worker may be ahead of the other, and values on a coarse grid coincide now and then.
    first, second = list(by_worker.values())[:2]
    require(_longest_run(first, second) < _IN_A_ROW, "two workers share one noise stream")


def check_noise_is_fresh_in_forks(subject: Subject) -> None:
    """Two children of a process that has fitted already do not draw the same noise.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    if not hasattr(os, "fork"):
        raise SkipTest("no fork on this system")
    model = _noisy(subject)

    def streams(count: int) -> list[NDArray[np.float64]]:
        subject.stream(model, 1)  # whatever is drawn in advance is there to be shared
        shown = [_shown_by_a_child(subject, model, count) for _ in range(2)]
        return [*shown, subject.stream(model, count)]

    _require_different(streams, "two forks share their noise")


def check_noise_cannot_be_replayed(subject: Subject) -> None:
    """No generator, no state of one and no seed is kept on a fitted estimator.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    fitted = subject.fit(random_state=None)
    for path, value in leaves(fitted):
        require(
            not isinstance(value, _GENERATORS) and not isinstance(value, np.random.SeedSequence),
            f"{path} of the fitted estimator is a {type(value).__name__}: it tells the noise",
        )
        name = path.rpartition(".")[2].lower()
        seeds = ("random_state", "seed", "seed_", "seeds_", "rng_", "random_state_")
        require(
            name not in seeds or value is None,
            f"{path} of the fitted estimator keeps a seed: the noise can be computed anew",
        )


def check_seeds_are_flagged_and_keyed(subject: Subject) -> None:
    """A seed is stated as an assumption, and gives other data other noise.

    Parameters
    ----------
    subject : Subject
        The estimator.

    Notes
    -----
    For 24 seeds the fits on two neighbouring data sets are subtracted. Independent noise leaves
    differences that spread more than the fits themselves (below 0.3 of them with a probability
    of less than 1e-8); shared noise leaves what the record did.
    """
    if not subject.parameters("random_state"):
        raise SkipTest("no parameter random_state")
    seeded = subject.fresh(random_state=0)
    cost = privacy_cost(seeded)
    if cost.is_finite and not cost.assumptions and not _seed_fixes_a_release(subject):
        raise SkipTest("no release has its noise from random_state")
    require(
        not cost.is_finite or bool(cost.assumptions),
        "random_state=0 makes the noise computable, and the cost does not say so",
    )
    neighbours = [subject.canary(0.0), subject.canary(1.0)]
    sides: list[list[NDArray[np.float64]]] = [[], []]
    for seed in range(24):
        for side, (X, y) in zip(sides, neighbours, strict=True):
            side.append(subject.shown(subject.fit(X, y, random_state=seed), X))
    shortest = min(len(row) for side in sides for row in side)
    first, second = (np.array([row[:shortest] for row in side]) for side in sides)
    noisy = _spread(first) > 0.0
    if not noisy.any():
        raise SkipTest("nothing that is shown varies with the seed")
    ratio = _spread(first - second)[noisy] / _spread(first)[noisy]
    require(
        float(np.max(ratio)) > 0.3,
        "one seed gives two data sets the same noise: their difference is the missing record",
    )


def _seed_fixes_a_release(subject: Subject) -> bool:
    """Whether a seed decides something that also the data decide; a random projection is public."""
    X, y = subject.data(1)
    first, again, other = (subject.shown(subject.fit(random_state=seed)) for seed in (0, 0, 1))
    elsewhere = subject.shown(subject.fit(X, y, random_state=0), subject.X)
    if not len(first) == len(again) == len(other) == len(elsewhere):
        return True
    return bool(np.any((first == again) & (first != other) & (first != elsewhere)))


def check_noise_grows_as_epsilon_falls(subject: Subject) -> None:
    """A tiny epsilon hides even which of two quite different data sets was fitted.

    Parameters
    ----------
    subject : Subject
        The estimator.

    Notes
    -----
    Ten thousand records, nearly all copies of one, against as many of another. At epsilon = 1e-5
    all of them together cost so little that the side with the larger number is guessed with
    probability 0.56 at most; 38 times of 40 with probability below 3e-7. Noise that ignores
    epsilon, or grows as its square root, is far from hiding so many records. How much noise is
    left in a model depends on the model, so the noise itself is not measured.
    """
    if "epsilon" not in subject.estimator.get_params(deep=False):
        raise SkipTest("no parameter epsilon")
    settings = {"delta": 1e-9} if subject.parameters("delta") else {}
    model = subject.fresh(**settings).set_params(epsilon=1e-5)
    cost, sides = privacy_cost(model), _opposite(subject)
    pairs = 2.0 * len(sides[0][0])
    group = pairs * max(cost.gaussian_mu, cost.epsilon0)
    require(group < 0.21, f"at epsilon=1e-5 the stated cost is {cost!r}")
    chosen = [subject.runs(8, model, *side) for side in sides]
    shortest = min(table.shape[1] for table in chosen)
    first, second = (table[:, :shortest] for table in chosen)
    shift = np.median(second, axis=0) - np.median(first, axis=0)
    spread = _spread(first) + _spread(second)
    at = int(np.argmax(np.abs(shift) / np.where(spread > 0.0, spread, 1e-300)))
    right = 0
    for turn in range(40):
        low, high = (subject.runs(1, model, *side)[0] for side in sides)
        right += bool(min(len(low), len(high)) > at and (high[at] - low[at]) * shift[at] > 0.0)
        if right + 39 - turn < 38:
            return
    require(
        right < 38,
        "at epsilon=1e-5 it can be told which of two data sets was fitted: the noise does not "
        "grow as epsilon falls",
    )


def _opposite(subject: Subject) -> list[tuple[Any, Any]]:
    """Two large data sets: that of the subject, and copies of one of two records."""
    X, y = subject.X, subject.y
    distance = np.sum((X - X[0]) ** 2, axis=1)
    if y is not None:
        other = np.reshape(y != y[0], (len(X), -1)).any(axis=1)
        distance = np.where(other, distance + 1.0, 0.0)
    sides = []
    for record in (0, int(np.argmax(distance))):
        rows = np.r_[np.arange(len(X)), np.full(10_000 - len(X), record)]
        sides.append((X[rows], None if y is None else y[rows]))
    return sides


def check_releases_lie_on_a_grid(subject: Subject) -> None:
    """What is released of two neighbouring data sets lies on one grid, coarser than floats.

    Parameters
    ----------
    subject : Subject
        The estimator.

    References
    ----------
    I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
    """
    if subject.released is None:
        raise SkipTest("give `released` to show the released numbers")
    found = []
    for size in (0.0, 1.0):
        X, y = subject.canary(size)
        for _ in range(20):
            found.append(np.ravel(subject.released(subject.fit(X, y), X, y)))
    # Components may have grids of their own; 40 values of each share one.
    values = np.array(found, dtype=np.float64)
    for column in values.T:
        column = column[column != 0.0]
        if len(column) < 20:
            continue
        mantissa, exponent = np.frexp(column)
        integers = np.abs(mantissa * 2.0**53).astype(np.int64)
        trailing = np.log2((integers & -integers).astype(np.float64))
        step = float(np.min(exponent - 53 + trailing))
        require(
            float(exponent.max()) - step <= _BITS_OF_A_GRID,
            "the low bits of a release depend on the value under the noise: add the noise as an "
            "integer, on a grid that no data decide",
        )


def _noisy(subject: Subject) -> Any:
    """A clone of which fits differ, with less budget where a lot of it leaves one likely result."""
    for most in (np.inf, 1.0, 0.1, 0.01):
        model = subject.with_epsilon(most)
        model.set_params(**dict.fromkeys(subject.parameters("random_state")))
        first, second = (subject.shown(subject.fit(model=clone(model))) for _ in range(2))
        if not np.array_equal(first, second):
            break
    return model


def _require_different(streams: Callable[[int], list[NDArray[np.float64]]], message: str) -> None:
    """No two streams of fits are the same, unless single fits are by chance.

    What is released on a coarse grid coincides sometimes; forty fits in a row never do.
    """
    for count in (1, 40):
        shown = streams(count)
        require(bool(len(shown[0])), "nothing is seen of the fitted estimator")
        if not any(np.array_equal(a, b) for a, b in combinations(shown, 2)):
            return
    if all(np.array_equal(shown[0], other) for other in shown[1:]):
        message += (
            ": every fit shows the same (if that is the most likely result by far, and not a fixed "
            "seed, give data or a budget that leave it open)"
        )
    raise AssertionError(message)


def _spread(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation of the columns, of a normal law, that no single run decides."""
    low, high = np.quantile(table, [0.2, 0.8], axis=0)
    return np.asarray((high - low) / 1.683)


def _longest_run(first: list[Any], second: list[Any]) -> int:
    """Most consecutive fits that are the same in both lists, at any distance."""
    longest = 0
    run = np.zeros(len(second) + 1, dtype=int)
    for one in first:
        same = np.array([np.array_equal(one, other) for other in second])
        run[1:] = np.where(same, run[:-1] + 1, 0)
        longest = max(longest, int(run.max()))
    return longest


def _fitted_elsewhere(model: Any, X: Any, y: Any) -> tuple[int, list[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [clone(model) for _ in range(_FROM_EACH)]
        fitted = [one.fit(X) if y is None else one.fit(X, y) for one in models]
    time.sleep(0.1)  # so that no worker takes all the jobs
    return os.getpid(), fitted


def _shown_by_a_child(subject: Subject, model: Any, count: int) -> NDArray[np.float64]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            shown = subject.stream(model, count)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(pickle.dumps(shown))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        sent = pipe.read()
    os.waitpid(child, 0)
    require(bool(sent), "a fit in a forked process fails")
    return np.asarray(pickle.loads(sent))


@contextmanager
def _global_states() -> Iterator[None]:
    """Give the global generators their states back."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
