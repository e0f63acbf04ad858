"""Picture of an audit."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from skdp.audit._epsilon import AuditResult
from skdp.display import pyplot

__all__ = ["AuditDisplay"]


class AuditDisplay:
    """The attack's errors against the trade-off that is promised.

    It is recommended to use `from_result`. All parameters are stored as attributes.

    Parameters
    ----------
    false_positive_rate, true_positive_rate : ndarray of shape (n_thresholds,)
        Rates of the attack.
    claimed_mu : float, default=None
        Promised mu of Gaussian differential privacy.
    found_mu : float, default=None
        Lower bound that the audit found.
    estimator_name : str, default=None
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that contains them.
    line_ : matplotlib Line2D
        Rates of the attack.
    claim_ : matplotlib Line2D or None
        The most that the promise allows.

    See Also
    --------
    audit_epsilon : Makes what is drawn.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from skdp import DPRidge
    >>> from skdp.audit import AuditDisplay, audit_epsilon
    >>> model = DPRidge(epsilon=4.0, y_bounds=(-1.0, 1.0))
    >>> record = ([9.0, 9.0], 1.0)
    >>> result = audit_epsilon(
    ...     model, np.zeros((20, 2)), np.zeros(20), neighbor=record, n_runs=100
    ... )
    >>> display = AuditDisplay.from_result(result)
    >>> plt.show()
    """

    def __init__(
        self,
        *,
        false_positive_rate: NDArray[np.float64],
        true_positive_rate: NDArray[np.float64],
        claimed_mu: float | None = None,
        found_mu: float | None = None,
        estimator_name: str | None = None,
    ) -> None:
        self.false_positive_rate = false_positive_rate
        self.true_positive_rate = true_positive_rate
        self.claimed_mu = claimed_mu
        self.found_mu = found_mu
        self.estimator_name = estimator_name

    def plot(self, ax: Any = None, *, name: str | None = None, **line_kw: Any) -> AuditDisplay:
        """Draw the rates of the attack, and the most that the claim allows.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None: a new figure.
        name : str, default=None
            Name of the estimator in the legend.
        **line_kw : dict
            Passed on to matplotlib's ``plot``.

        Returns
        -------
        display : AuditDisplay
            This object, with the drawn artists as attributes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        if ax is None:
            _, ax = plt.subplots()
        label = name or self.estimator_name or "attack"
        if self.found_mu is not None:
            label += f" (mu at least {self.found_mu:.3g})"
        (self.line_,) = ax.plot(
            self.false_positive_rate, self.true_positive_rate, **{"label": label, **line_kw}
        )
        self.claim_ = None
        if self.claimed_mu is not None:
            rates = np.linspace(0.0, 1.0, 201)
            allowed = ndtr(ndtri(rates) + self.claimed_mu)
            text = f"allowed by mu = {self.claimed_mu:.3g}"
            (self.claim_,) = ax.plot(rates, allowed, linestyle="--", color="0.4", label=text)
        ax.plot([0.0, 1.0], [0.0, 1.0], linestyle=":", color="0.7")
        ax.set(
            xlabel="False alarms (record guessed, was not there)",
            ylabel="Hits (record guessed, was there)",
            xlim=(-0.01, 1.01),
            ylim=(-0.01, 1.01),
            aspect="equal",
        )
        ax.legend(loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_result(
        cls, result: AuditResult, *, ax: Any = None, name: str | None = None, **line_kw: Any
    ) -> AuditDisplay:
        """Draw the result of `audit_epsilon`.

        Parameters
        ----------
        result : AuditResult
            What an audit found.
        ax : matplotlib Axes, default=None
            Where to draw. None: a new figure.
        name : str, default=None
            Name of the estimator in the legend.
        **line_kw : dict
            Passed on to matplotlib's ``plot``.

        Returns
        -------
        display : AuditDisplay
            The display, drawn.
        """
        without, with_record = result.scores
        thresholds = np.concatenate([[np.inf], np.sort(np.concatenate(result.scores))[::-1]])
        rates = [
            1.0 - np.searchsorted(np.sort(side), thresholds, side="left") / len(side)
            for side in (without, with_record)
        ]
        claim = result.claim
        gaussian = claim is not None and not (claim.epsilon0 or claim.delta0)
        display = cls(
            false_positive_rate=rates[0],
            true_positive_rate=rates[1],
            claimed_mu=claim.gaussian_mu if claim is not None and gaussian else None,
            found_mu=result.mu,
            estimator_name=name,
        )
        return display.plot(ax, **line_kw)
