"""A durable record of what was spent on a data set, which refuses to be overspent."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skdp.accounting import PrivacyCost
from skdp.cost import privacy_cost
from skdp.ledger._admission import Accept, checked_accept
from skdp.ledger._caps import UNITS, Amount, Caps
from skdp.ledger._cashier import Cashier, numbers
from skdp.ledger._entry import COLUMNS, LedgerEntry, as_dict, html_table
from skdp.ledger._mechanisms import attach
from skdp.ledger._one_fit import one_fit
from skdp.ledger._store import Store, create

__all__ = ["PrivacyLedger"]


class PrivacyLedger:
    """A file that records what fits on one data set cost, and refuses what would exceed a total.

    `fit` reserves the planned cost of an estimator, durably, *before* the data are touched, and
    only then fits it. Many processes and threads can charge one file at once. What is killed
    between the reservation and the end of the fit stays charged.

    Parameters
    ----------
    path : str or path-like
        The file. If it exists, it is opened, and all other parameters that are given must be
        those it was made with; else it is made, which needs `dataset`, `epsilon` and `delta`.
    dataset : str, default=None
        Name of the data set, for people to read. One data set should have one ledger.
    epsilon : float or PrivacyCost, default=None
        Total for everything that is ever charged. A `PrivacyCost` states all of the guarantee:
        its mu, delta, relation and unit.
    delta : float, default=None
        Probability bound of the total; below one over the number of records.
    epsilon0, delta0 : float, default=None
        Part of the total that is set aside for costs with a pair (epsilon0, delta0) beside mu,
        from releases that are not Gaussian. None: 0, which leaves all of the total to mu and
        refuses such costs. A delta0 of a tenth of `delta`, which is what steps that need one set
        aside, makes mu 0.6% smaller at epsilon 1.
    neighboring : {"add_or_remove", "replace"}, default=None
        The relation of the guarantee, and of all that is charged. None: ``"add_or_remove"``.
    unit : str, default=None
        The unit of the guarantee, and of all that is charged. None: ``"record"``.
    timeout : float, default=60.0
        Seconds to wait for other processes that are charging the file.
    durable : bool, default=True
        Whether a charge waits until it is on the disk, where it survives a power cut. False is as
        safe against processes that end or are killed, and faster where the disk is slow.

    Raises
    ------
    TypeError, ValueError
        If parameters are invalid, missing for a new file, or differ from those of the file.
    PrivacyLedgerError
        If the file cannot be made, is not a ledger, or is corrupted.

    See Also
    --------
    PrivacyBudget : Fit a pipeline to a stated total.
    privacy_cost : What a single fit costs.

    Notes
    -----
    **Privacy.** Whatever is charged, in any order, by anyone who chooses each fit after seeing the
    results of those before, and stops when they like, is together (epsilon, delta)-DP: the sum of
    mu squared is kept below the square of a mu that was fixed when the file was made, which is
    sound under adaptive choice of the next mu too [1]_ [2]_, and so are the sums of epsilon0 and
    delta0. The guarantee is the *total* of the file; `spent` says how much of it is gone, and is
    not a smaller guarantee for an analyst who stopped because of what was seen.

    Charges are whole units of the cap's 2^-60, rounded up; equal shares of the total fit exactly,
    since the noise of every release is larger than its mu says by a relative 2^-40.

    The file holds class names, numeric and one-word parameters, times and costs. It holds nothing
    made from the data: no values, hashes, labels or texts of errors. Whether a fit failed is
    written down, and may depend on the data.

    What a ledger does not see is not in it: fits outside of it, on copies of the data, or in a
    second ledger. Its rows are chained by digests and cannot be changed by ordinary SQL, which
    reveals accidents; who may write the file can forge it, or put an old copy in its place.

    The file is in SQLite's format, with its journal beside it while it is open: it wants a local
    disk, and a container needs the folder, not the file alone. A file with a second name (a hard
    link) is refused, since each name would have a journal of its own; symbolic links are followed.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.
    .. [2] A. Smith and A. Thakurta, "Fully Adaptive Composition for Gaussian Differential
       Privacy", 2022.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge, PrivacyLedger
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "diabetes.ledger"
    >>> ledger = PrivacyLedger(path, dataset="diabetes", epsilon=1.0, delta=1e-5)
    >>> model = ledger.fit(DPRidge(epsilon=0.6, y_bounds=(0, 400)), X / 0.05, y)
    >>> round(ledger.remaining().epsilon(), 3)
    0.761
    >>> ledger.fit(DPRidge(epsilon=0.9, y_bounds=(0, 400)), X / 0.05, y)
    Traceback (most recent call last):
        ...
    skdp.exceptions.PrivacyBudgetError: DPRidge would cost epsilon=0.9 at delta=1e-05, but ...
    >>> last = ledger.fit(DPRidge(epsilon=ledger.remaining(), y_bounds=(0, 400)), X / 0.05, y)
    >>> [entry.state for entry in ledger.history()]
    ['released', 'released']
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        dataset: str | None = None,
        epsilon: float | PrivacyCost | None = None,
        delta: float | None = None,
        epsilon0: float | None = None,
        delta0: float | None = None,
        neighboring: str | None = None,
        unit: str | None = None,
        timeout: float = 60.0,
        durable: bool = True,
    ) -> None:
        self._path = Path(path).absolute()
        if dataset is not None and (not isinstance(dataset, str) or not dataset.strip()):
            raise ValueError(f"dataset must be the name of a data set, got {dataset!r}")
        given = {
            "epsilon": epsilon,
            "delta": delta,
            "epsilon0": epsilon0,
            "delta0": delta0,
            "neighboring": neighboring,
            "unit": unit,
        }
        if not self._path.exists():
            self._create(dataset, given)
        self._store = Store(self._path, float(timeout), durable)
        self._cashier = Cashier(self._store)
        if dataset is not None and dataset != self._store.dataset:
            raise ValueError(
                f"the ledger {str(self._path)!r} is that of the data set "
                f"{self._store.dataset!r}, not of {dataset!r}"
            )
        self._check_same(given)

    def _create(self, dataset: str | None, given: dict[str, Any]) -> None:
        if dataset is None or given["epsilon"] is None:
            raise ValueError(
                f"there is no ledger {str(self._path)!r} yet; to make one, give dataset=, "
                "epsilon= and delta="
            )
        caps = _requested(given)
        with suppress(FileExistsError):  # another process was faster
            create(self._path, dataset, caps)

    def _check_same(self, given: dict[str, Any]) -> None:
        stored = self._store.caps
        found = {name: value for name, value in given.items() if value is not None}
        if isinstance(given["epsilon"], PrivacyCost):
            found = asdict(_requested(given))
        for name, value in found.items():
            kept = getattr(stored, name)
            if value != kept:
                raise ValueError(
                    f"the ledger {str(self._path)!r} was made with {name}={kept!r}, got "
                    f"{value!r}; what it guarantees cannot be changed"
                )

    # ---- what it holds ----

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self._store.dataset

    @property
    def total(self) -> PrivacyCost:
        """The caps, as a cost."""
        caps = self._store.caps
        return PrivacyCost(
            caps.mu,
            caps.neighboring,
            caps.unit,
            caps.delta,
            epsilon0=caps.epsilon0,
            delta0=caps.delta0,
        )

    @property
    def spent(self) -> PrivacyCost:
        """What has been charged so far, rounded up. Its epsilon is no guarantee: see Notes."""
        return self._cashier.cost(Amount(*(min(n, UNITS) for n in self._store.spent())), up=True)

    def remaining(self, delta: float | None = None, *, pairs: bool = False) -> PrivacyCost:
        """Return what may still be spent: a cost that can be given as `epsilon`.

        Parameters
        ----------
        delta : float, default=None
            The `reference_delta` of the cost, at which it states epsilon. None: that of the ledger.
        pairs : bool, default=False
            Whether what is left of epsilon0 and delta0 is part of it, for steps that need some.
            Estimators whose noise is all Gaussian take a cost without.

        Returns
        -------
        cost : PrivacyCost
            Rounded down; a fit of exactly this cost is granted. Zero when all is spent.
        """
        return self._cashier.left(self._store.spent(), delta, pairs=pairs)

    # ---- charging ----

    def fit(
        self,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        accept: Accept = (),
        **params: Any,
    ) -> Any:
        """Reserve the cost of a fit, then fit a clone of an estimator.

        Parameters
        ----------
        estimator : estimator
            A private estimator, or anything made of private and free ones, such as a pipeline, a
            `PrivacyBudget` or a search, which is one charge. It is left as it is.
        X : array-like of shape (n_samples, n_features)
            Data, as the estimator wants them.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets.
        accept : bool or iterable of str, default=()
            Which of the assumptions in the cost you take upon you: all (True), or those in which
            one of these texts occurs. They are written down.
        **params : dict
            Passed on to ``fit``.

        Returns
        -------
        fitted : estimator
            The fitted clone. A `GaussianMechanism` in it charges this ledger for releases beyond
            those planned, each before it is made.

        Raises
        ------
        PrivacyBudgetError
            If the cost is infinite, seeded, assumes what was not accepted, or exceeds what is
            left; then the data were not touched and nothing is charged. Also if the fit cost more
            than planned, or assumed more: then it *is* charged.
        PrivacyLedgerError
            If the file cannot be written.
        """
        with self.charge(estimator, accept=accept) as fitted:
            fitted.fit(X, y, **params)
        return fitted

    @contextmanager
    def charge(self, estimator: Any, *, accept: Accept = ()) -> Iterator[Any]:
        """Reserve the cost of one fit, for a ``with`` block in which you make it yourself.

        For ``fit_transform``, ``partial_fit`` and the like; else `fit` is shorter.

        Parameters
        ----------
        estimator : estimator
            As for `fit`.
        accept : bool or iterable of str, default=()
            As for `fit`.

        Yields
        ------
        model : estimator
            An unfitted clone. Fit it once: a second fit in the block is refused, also where the
            first one failed. Later ones are fits outside of the ledger.

        Raises
        ------
        PrivacyBudgetError, PrivacyLedgerError
            As for `fit`; and by a second fit in the block, before it touches the data.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from sklearn.datasets import load_iris
        >>> from skdp import DPStandardScaler, PrivacyLedger
        >>> X, _ = load_iris(return_X_y=True)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.ledger"
        >>> ledger = PrivacyLedger(path, dataset="iris", epsilon=1.0, delta=1e-5)
        >>> with ledger.charge(DPStandardScaler(epsilon=0.5, bounds=(0, 10))) as scaler:
        ...     scaled = scaler.fit_transform(X)
        >>> ledger.history()[0].estimator
        'DPStandardScaler'
        """
        accept = checked_accept(accept)
        model = clone(estimator)
        cost = privacy_cost(model)
        number = self._cashier.reserve(model, cost, accept)
        try:
            with one_fit(model):
                yield model
        except BaseException:
            self._cashier.fail(number, model, cost)
            raise
        self._cashier.settle(number, model, cost, accept)

    def record(self, fitted: Any, *, accept: Accept = ()) -> int:
        """Charge the cost of an estimator that was fitted outside of the ledger.

        Parameters
        ----------
        fitted : estimator
            Fitted on the data set of this ledger. Each call charges it again.
        accept : bool or iterable of str, default=()
            As for `fit`.

        Returns
        -------
        number : int
            Of the charge in the history.

        Raises
        ------
        PrivacyBudgetError
            If the cost is infinite, seeded, or assumes what was not accepted; then nothing is
            charged. Also if it exceeds what is left: since it was spent already, *all that is
            left is charged* then.
        PrivacyLedgerError
            If the file cannot be written.
        """
        check_is_fitted(fitted)
        cost = privacy_cost(fitted)
        self._cashier.check(fitted, cost, checked_accept(accept))
        asked = self._store.caps.amount(cost)
        number = self._cashier.charge_anyway(fitted, asked, cost.assumptions)
        attach(self._cashier, number, fitted)
        return number

    # ---- showing ----

    def history(self) -> tuple[LedgerEntry, ...]:
        """Return all charges, in their order.

        Returns
        -------
        entries : tuple of LedgerEntry
        """
        return tuple(
            LedgerEntry(
                line.number,
                line.time,
                line.entry["estimator"],
                line.entry["parameters"],
                self._charged(line.entry),
                tuple(line.entry["assumptions"]),
                line.state,
            )
            for line in self._store.lines()
        )

    def _charged(self, entry: dict[str, Any]) -> PrivacyCost:
        caps = self._store.caps
        return PrivacyCost(
            entry["mu"],
            caps.neighboring,
            caps.unit,
            caps.delta,
            entry["assumptions"],
            epsilon0=entry["epsilon0"],
            delta0=entry["delta0"],
        )

    def to_frame(self) -> Any:
        """Return the history as a pandas DataFrame, one row per charge.

        Returns
        -------
        frame : pandas.DataFrame
            By ``number``: columns ``time``, ``estimator``, ``parameters``, ``mu``, ``epsilon0``,
            ``delta0``, ``epsilon`` (at the ledger's delta), ``accepted``, ``state``.
        """
        import pandas as pd

        rows = [as_dict(entry, self._store.caps.delta) for entry in self.history()]
        frame = pd.DataFrame(rows, columns=list(COLUMNS))
        frame["time"] = pd.to_datetime(frame["time"], utc=True)
        return frame.set_index("number")

    def to_json(self, path: str | PathLike[str] | None = None) -> str | None:
        """Write the guarantee and the history as JSON.

        Parameters
        ----------
        path : str or path-like, default=None
            File to write. None: return the text.

        Returns
        -------
        text : str or None
        """
        store = self._store
        text = json.dumps(
            {
                "dataset": store.dataset,
                "created": store.created,
                **asdict(store.caps),
                "spent": numbers(self.spent),
                "remaining": numbers(self.remaining()),
                "charges": [as_dict(entry, store.caps.delta) for entry in self.history()],
            },
            indent=2,
            allow_nan=False,
        )
        if path is None:
            return text
        Path(path).write_text(text + "\n", encoding="utf-8")
        return None

    def close(self) -> None:
        """Close the file. It is opened again when needed."""
        self._store.close()

    def __enter__(self) -> PrivacyLedger:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        return self  # there is one file

    def _title(self) -> str:
        return (
            f"{self.dataset!r}: epsilon={self.remaining().epsilon():.6g} left of "
            f"{self._store.caps.epsilon:g} at delta={self._store.caps.delta:g}"
        )

    def __repr__(self) -> str:
        """Say what was spent of what."""
        return f"{type(self).__name__}({str(self._path)!r}, {self._title()})"

    def _repr_html_(self) -> str:
        return html_table(self._title(), self.history(), self._store.caps.delta)


_DEFAULTS: dict[str, Any] = {
    "delta": None,
    "epsilon0": 0.0,
    "delta0": 0.0,
    "neighboring": "add_or_remove",
    "unit": "record",
}


def _requested(given: dict[str, Any]) -> Caps:
    """The caps that parameters ask for, None standing for defaults."""
    stated = {name: value for name, value in given.items() if value is not None}
    if isinstance(given["epsilon"], PrivacyCost) and (more := {*stated} - {"epsilon", "delta"}):
        raise ValueError(f"the PrivacyCost given as epsilon states {sorted(more)}; leave them out")
    settings = _DEFAULTS | stated
    return Caps.of(**settings)
