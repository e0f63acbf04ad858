"""No release tells by its low bits what noise was added to (Mironov, CCS 2012).

With float noise some outputs can be reached from one input only. Here all releases of a kind lie on
one lattice, whatever the data, and every place of the lattice is as likely after one input as after
another as far as its low bits go.
"""

import numpy as np
import pytest
import registry
from scipy.stats import chi2

from skdp import GaussianMechanism, noise

DRAWS = 4096
INPUTS = [0.0, 1.0 / 3.0, 1.0, np.nextafter(1.0, 2.0), 1e-300, 12345.678]


def step_of(fitted):
    """The grid of one number, from the sensitivity alone."""
    return 2.0 ** np.floor(np.log2(fitted.plan_.releases[0].sensitivity * 2.0**-30))


def low_bits_are_even(integers, bits=4):
    """Chi-square test of the last bits at level 1e-9."""
    counts = np.bincount(integers % 2**bits, minlength=2**bits)
    expected = len(integers) / 2**bits
    return np.sum((counts - expected) ** 2) / expected < chi2.isf(1e-9, 2**bits - 1)


@pytest.mark.parametrize("value", INPUTS)
def test_releases_of_a_number_lie_on_one_lattice(value):
    # False alarms: 1e-9 for each of 6 inputs.
    fitted = GaussianMechanism(sensitivity=1.0, n_releases=1).fit(np.zeros((2, 1)))
    step = step_of(fitted)
    # One vector of equal numbers: its grid is finer by the root of its size, a power of two.
    found = fitted.release(np.full(DRAWS, value)) / (step / np.sqrt(DRAWS))
    assert np.array_equal(found, np.rint(found))
    assert low_bits_are_even(found.astype(np.int64))


@pytest.mark.parametrize("value", INPUTS[1:])
def test_float_noise_would_fail(value):
    fitted = GaussianMechanism(sensitivity=1.0).fit(np.zeros((2, 1)))
    step = step_of(fitted) / np.sqrt(DRAWS)
    sigma = fitted.sigma_
    naive = (value + sigma * np.random.default_rng(0).standard_normal(DRAWS)) / step
    assert not np.array_equal(naive, np.rint(naive))
    # And so would noise on a lattice of its own, added to a value beside it.
    beside = value + np.rint(naive) * step
    on_lattice = np.array_equal(beside / step, np.rint(beside / step))
    assert on_lattice == (value < step or value % step == 0)


@pytest.mark.parametrize("name", [n for n in registry.CLASSES if n != "GaussianMechanism"])
@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_whatever_a_fit_releases_lies_on_a_lattice_that_data_do_not_move(name, monkeypatch):
    entry = next(e for e in registry.all_entries(registry.variants, [name]))
    lattices = []
    original = noise.add_noise

    def spy(bounded, sigma, seed, context):
        released = original(bounded, sigma, seed, context)
        integers = released / bounded.unit
        # Beyond 2**53 float64 itself has the coarser grid.
        assert np.array_equal(integers, np.rint(integers))
        lattices[-1].append((bounded.name, bounded.unit, np.shape(released), sigma))
        return released

    monkeypatch.setattr(noise, "add_noise", spy)
    X, y = registry.rows_for(entry, 300)
    for rows in (X, X * (1 + 2.0**-50), -X[::-1] / 3.0):
        lattices.append([])
        registry.fit(entry.estimator, rows, y)
    assert lattices[0] and lattices[0] == lattices[1] == lattices[2]
