"""What a privacy cost means: its curve of (epsilon, delta), and its export."""

import math
from typing import Any

from skdp._gdp import check_real, gdp_delta, gdp_epsilon
from skdp._pairs import pair_delta, pair_epsilon

__all__ = ["PrivacyCurve"]


class PrivacyCurve:
    """Base of `PrivacyCost`: the curve of a Gaussian part and a pair."""

    gaussian_mu: float
    reference_delta: float
    epsilon0: float
    delta0: float

    @property
    def mu(self) -> float:
        """The Gaussian privacy parameter, where it is the whole cost."""
        if self.has_pair:
            raise AttributeError(
                "mu is not the whole cost: there is a pair (epsilon0, delta0) beside it; use "
                "epsilon(delta), or gaussian_mu for the Gaussian part"
            )
        return self.gaussian_mu

    @property
    def has_pair(self) -> bool:
        """Whether a pair (epsilon0, delta0) stands beside mu."""
        return self.epsilon0 > 0.0 or self.delta0 > 0.0

    @property
    def is_finite(self) -> bool:
        """Whether there is a guarantee at all."""
        return self.gaussian_mu < math.inf and self.epsilon0 < math.inf and self.delta0 < 1.0

    def epsilon(self, delta: float | None = None) -> float:
        """Return the smallest epsilon that holds at `delta`, rounded up.

        Parameters
        ----------
        delta : float, default=None
            Probability with which the loss may exceed epsilon, in [0, 1]; None for the
            cost's `reference_delta`.

        Returns
        -------
        float
            The epsilon; ``inf`` where none is large enough: at most at `delta0`.
        """
        delta = self.reference_delta if delta is None else delta
        if not self.has_pair:
            return gdp_epsilon(delta, self.gaussian_mu)
        delta = check_real(delta, "delta", upper=1.0)
        if not self.is_finite:
            return gdp_epsilon(delta, math.inf)
        return pair_epsilon(delta, self.gaussian_mu, self.epsilon0, self.delta0)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that holds at `epsilon`, rounded up.

        Parameters
        ----------
        epsilon : float
            Privacy loss that is tolerated outright, at least 0.

        Returns
        -------
        float
            The delta, in [0, 1].
        """
        if not self.has_pair:
            return gdp_delta(epsilon, self.gaussian_mu)
        epsilon = check_real(epsilon, "epsilon")
        if not self.is_finite:
            return 1.0
        return pair_delta(epsilon, self.gaussian_mu, self.epsilon0, self.delta0)

    def to_dp_event(self) -> Any:
        """Return the cost as an event of dp-accounting, which must be installed.

        Returns
        -------
        event : dp_accounting.DpEvent
            A `GaussianDpEvent` whose noise multiplier is ``1 / mu``, a `NoOpDpEvent` for a cost of
            zero, a `NonPrivateDpEvent` for an infinite one. Neighbours are those of this cost,
            whatever an accountant of that package calls its relation: give it its default one.

        Raises
        ------
        ImportError
            If dp-accounting is not installed.
        ValueError
            If there is a pair (epsilon0, delta0), for which that package has no event.

        Examples
        --------
        >>> from skdp import PrivacyCost
        >>> PrivacyCost(0.25).to_dp_event()  # doctest: +SKIP
        GaussianDpEvent(noise_multiplier=4.0)
        """
        try:
            import dp_accounting
        except ImportError as error:
            raise ImportError(
                "to_dp_event needs dp-accounting: pip install dp-accounting"
            ) from error
        if not self.is_finite:
            return dp_accounting.NonPrivateDpEvent()
        if self.has_pair:
            raise ValueError("dp-accounting has no event for a pair (epsilon0, delta0)")
        if self.gaussian_mu == 0.0:
            return dp_accounting.NoOpDpEvent()
        # Rounded down: less noise than there was.
        return dp_accounting.GaussianDpEvent(math.nextafter(1.0 / self.gaussian_mu, 0.0))
