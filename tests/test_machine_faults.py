"""What stays true when the machine misbehaves: interrupts, memory, entropy, threads, processes.

Comparisons of fresh noise fail by chance with probability below 2**-40.
"""

import decimal
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
import registry
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

import skdp.noise
from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPRidge,
    DPStandardScaler,
    GaussianMechanism,
    PrivacyBudget,
    PrivacyLedger,
    _entropy,
    privacy_cost,
)

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X[:, 0] > 0).astype(int)
MODELS = [
    DPLogisticRegression(classes=[0, 1], max_iter=5),
    DPRidge(y_bounds=(-3, 3)),
    DPStandardScaler(bounds=(-5, 5)),
]
for_each_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
with_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")


@pytest.fixture(autouse=True)
def with_interrupts():
    """Ctrl-C works, also where the tests run in the background and it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_at(monkeypatch, count):
    """Ctrl-C is pressed while a value gets its noise."""
    made = []

    def add_noise(*args):
        made.append(1)
        if len(made) == count:
            os.kill(os.getpid(), signal.SIGINT)
        return REAL(*args)

    REAL = skdp.noise.add_noise
    monkeypatch.setattr(skdp.noise, "add_noise", add_noise)
    return made


# ---------------------------------------------------------------- Ctrl-C


@for_each_model
def test_an_interrupted_fit_is_charged_and_shows_nothing(model, monkeypatch):
    fitted = registry.fit(model, X, Y)
    learned = {n for n in vars(fitted) if n.endswith("_") and "coef" in n or n in ("mean_",)}
    assert learned
    made = interrupted_at(monkeypatch, len(fitted.releases_))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, Y)
    assert made
    assert fitted.privacy_cost_ == model.planned_cost()
    assert not learned & set(vars(fitted))
    monkeypatch.undo()
    assert learned <= set(vars(fitted.fit(X, Y)))


RIDGE = DPRidge(y_bounds=(-3, 3), max_iter=2)
SEVERAL = [
    PrivacyBudget(make_pipeline(DPStandardScaler(bounds=(-5, 5)), RIDGE), epsilon=0.1),
    DPGridSearchCV(RIDGE, {"alpha": [1.0, 2.0]}, epsilon=0.1),
]


@pytest.mark.parametrize("model", SEVERAL, ids=lambda m: type(m).__name__)
def test_several_fits_that_are_interrupted_are_charged_and_show_nothing(model, monkeypatch):
    made = interrupted_at(monkeypatch, 0)
    fitted = clone(model).fit(X, X[:, 0]).set_params(epsilon=5.0)
    monkeypatch.undo()
    last = interrupted_at(monkeypatch, len(made))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, X[:, 0])
    assert len(last) == len(made)
    assert not [name for name in vars(fitted) if name.endswith("_")]
    assert privacy_cost(fitted).epsilon() == pytest.approx(5.0)
    with pytest.raises(NotFittedError):
        fitted.predict(X)


def test_ctrl_c_before_the_first_release_costs_nothing(monkeypatch):
    model = DPRidge(y_bounds=(-3, 3))
    real = DPRidge.plan

    def plan(self, *args, **kwargs):
        os.kill(os.getpid(), signal.SIGINT)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(DPRidge, "plan", plan)
    made = interrupted_at(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not made and not hasattr(model, "privacy_cost_")


@pytest.mark.parametrize("count", [1, 4])
def test_an_interrupted_search_stays_charged_in_full(count, tmp_path, monkeypatch):
    model = DPRidge(epsilon=0.1, y_bounds=(-3, 3))
    search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, scoring=lambda *a: 0.0, cv=KFold(2))
    total = privacy_cost(search)
    with PrivacyLedger(tmp_path / "search.ledger", dataset="d", epsilon=2.0, delta=1e-5) as ledger:
        interrupted_at(monkeypatch, count)
        with pytest.raises(KeyboardInterrupt):
            ledger.fit(search, X, X[:, 0], accept=True)
        (entry,) = ledger.history()
        assert entry.state == "failed"
        assert entry.cost.gaussian_mu >= total.gaussian_mu * (1 - 1e-9)


# ---------------------------------------------------------------- memory


def test_a_fit_without_memory_breaks_off_in_a_known_state():
    code = """
        import resource, sys, warnings
        import numpy as np
        from skdp import DPLogisticRegression, DPQuantileTransformer
        warnings.simplefilter("ignore")
        rows = np.random.default_rng(0).normal(size=(200_000, 8))
        y = (rows[:, 0] > 0).astype(int)
        models = [
            DPLogisticRegression(classes=[0, 1], max_iter=2),
            DPQuantileTransformer(bounds=(-5, 5)),
        ]
        for model in models:
            model.fit(rows, y)  # what is loaded late, and the buffers of linear algebra, are there
        first = [dict(vars(model)) for model in models]
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        for extra in (1, 4, 16, 512):
            resource.setrlimit(resource.RLIMIT_AS, (used + (extra << 20), -1))
            for model, before in zip(models, first):
                try:
                    model.fit(rows, y)
                except MemoryError:
                    now = vars(model)
                    kept = now.get("plan_") is before["plan_"]
                    charged = "privacy_cost_" in now and "releases_" not in now
                    print("out of memory", kept or charged)
                else:
                    print("fitted", len(model.releases_) > 0)
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=environment,
    )
    said = run.stdout.splitlines()
    assert run.returncode == 0 and len(said) == 8, run.stderr[-2000:]
    assert {"out of memory True", "fitted True"} == set(said)


# ---------------------------------------------------------------- entropy


def failing(size):
    raise OSError("no entropy")


BROKEN_ENTROPY = {
    "fails": failing,
    "is missing": lambda size: (_ for _ in ()).throw(NotImplementedError("no source")),
    "is short": lambda size: bytes(max(size - 8, 0)),
    "is short by one": lambda size: bytes(size - 1),
    "is empty": lambda size: b"",
    "is long": lambda size: bytes(size + 8),
}


@pytest.mark.parametrize("cipher", [True, False], ids=["cipher", "no cipher"])
@pytest.mark.parametrize("kind", BROKEN_ENTROPY)
def test_without_entropy_nothing_is_released(kind, cipher, monkeypatch):
    if not cipher:
        monkeypatch.setattr(_entropy, "_cipher_factory", lambda: None)
    elif _entropy._cipher_factory() is None:
        pytest.skip("no cipher installed")
    for size in (3, 4000):
        mechanism = GaussianMechanism(sensitivity=1.0).fit(X)
        scaler = DPStandardScaler(bounds=(-5, 5))
        with monkeypatch.context() as patch:
            patch.setattr(os, "urandom", BROKEN_ENTROPY[kind])
            with pytest.raises((OSError, NotImplementedError)):
                mechanism.release(np.zeros(size))
            with pytest.raises((OSError, NotImplementedError)):
                scaler.fit(np.zeros((50, size)))
        assert not hasattr(scaler, "mean_") and not hasattr(scaler, "releases_")
        assert scaler.privacy_cost_ == scaler.planned_cost()  # it may have drawn some already
        scaler.fit(np.zeros((50, size)))


# ---------------------------------------------------------------- global state


@for_each_model
def test_global_state_changes_nothing(model):
    seeded = registry.set_deep(model, "random_state", 3)
    want = registry.state(registry.fit(seeded, X, Y))
    printing, context = np.get_printoptions(), decimal.getcontext().copy()
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        np.set_printoptions(precision=1, threshold=0, floatmode="fixed")
        decimal.getcontext().prec = 2
        decimal.getcontext().rounding = decimal.ROUND_UP
        with np.errstate(all="raise"):
            random.seed(1)
            np.random.seed(1)  # noqa: NPY002
            assert registry.state(registry.fit(seeded, X, Y)) == want
            before = random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
            fresh = [registry.fit(model, X, Y) for _ in range(2)]
            after = random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
            assert before == after
            assert registry.state(fresh[0]) != registry.state(fresh[1])
    finally:
        np.set_printoptions(**printing)
        decimal.setcontext(context)
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


# ---------------------------------------------------------------- threads and processes


def learned(fitted):
    return np.r_[fitted[-1].coef_.ravel(), fitted[0].mean_].tobytes()


def pipeline():
    return make_pipeline(
        DPStandardScaler(bounds=(-5, 5)), DPRidge(y_bounds=(-3, 3), feature_bound=3.0)
    )


def all_differ(found):
    assert len(found) > 1 and all(len(one) == len(found[0]) > 8 for one in found)
    return all(a != b for a, b in combinations(found, 2))


def test_threads_do_not_share_noise():
    barrier = threading.Barrier(8)

    def task(_):
        barrier.wait()
        return [learned(pipeline().fit(X, X[:, 0])) for _ in range(2)]

    with ThreadPoolExecutor(8) as pool:
        found = [one for two in pool.map(task, range(8)) for one in two]
    assert all_differ(found)


def sent_by_a_child(function):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(function(), pipe)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        sent = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(sent)


def words():
    """Bits from the operating system, and from the cipher where there is one."""
    return [SOURCE.words(2).tobytes(), SOURCE.words(400)[:2].tobytes()]


SOURCE = _entropy.system_source()


def family():
    """Words of a process, its child and its grandchild, which fork from one source."""
    own = words()
    return [own, *sent_by_a_child(lambda: [words(), sent_by_a_child(words)])]


@with_fork
def test_forks_of_forks_do_not_share_bits():
    words()
    generations = [*sent_by_a_child(family), *sent_by_a_child(family), *family()]
    assert len(generations) == 9
    assert len({word for pair in generations for word in pair}) == 18


@with_fork
def test_a_source_that_forgets_to_look_for_forks_would_be_noticed(monkeypatch):
    if _entropy._cipher_factory() is None:
        pytest.skip("no cipher installed")
    words()
    # Everybody believes to be the first process.
    first = os.getpid()
    monkeypatch.setattr(_entropy.os, "getpid", lambda: first)
    monkeypatch.setattr(_entropy, "_count_fork", lambda: None)
    forgetful = _entropy._SystemSource()
    forgetful.words(400)

    def draw():
        _entropy._forks = forgetful._owner[1]
        return forgetful.words(400).tobytes()

    assert sent_by_a_child(draw) == sent_by_a_child(draw)


@with_fork
def test_a_fork_in_a_thread_does_not_share_noise():
    pipeline().fit(X, X[:, 0])

    def task(_):
        return sent_by_a_child(lambda: learned(pipeline().fit(X, X[:, 0])))

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(task, range(2)))
    assert all_differ([*found, learned(pipeline().fit(X, X[:, 0]))])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_started_processes_do_not_share_noise(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        found = pool.map(draw_elsewhere, range(4), chunksize=1)
    assert all_differ(found)


def draw_elsewhere(_):
    return learned(pipeline().fit(X, X[:, 0]))
