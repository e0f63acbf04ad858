"""Privacy bugs put into copies of the package, one at a time: the tests have to notice each.

``make mutations`` runs it. A bug is a change of text in a copy of ``skdp``; the tests named beside
it run on the copy in a process of their own, and at least one must fail. They pass on an unchanged
copy, which is tested too. The table in ``docs/trust.rst`` is compared with this list.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "trust.rst"


class Bug(NamedTuple):
    """What is wrong, the changes that make it so, and what has to notice."""

    what: str
    changes: list[tuple[str, str, str]]
    tests: str
    named: str  # -k


CONTRACT = "tests/test_privacy_contract.py"
NEIGHBOURS = f"{CONTRACT}::test_no_neighbour_moves_a_release_by_more_than_its_sensitivity"
RECORDS = f"{CONTRACT}::test_no_record_whatever_moves_a_release_by_more_than_its_sensitivity"
NOTHING_ELSE = f"{CONTRACT}::test_nothing_but_noisy_sums_leaves_the_data"
SPENT = f"{CONTRACT}::test_spent_equals_planned_and_never_exceeds_the_budget"
FRESH = f"{CONTRACT}::test_no_two_fits_share_their_noise_and_none_keeps_its_source"
DESCENT, ENGINE = "solvers/gradient_descent.py", "engine.py"

BUGS = [
    Bug(
        "sensitivity of a gradient halved",
        [
            (
                DESCENT,
                "sensitivity = settings.clip_norm * relation_factor(budget.neighboring)",
                "sensitivity = 0.5 * settings.clip_norm * relation_factor(budget.neighboring)",
            ),
            (
                ENGINE,
                "sensitivity = clip_norm * relation_factor(self.neighboring)",
                "sensitivity = 0.5 * clip_norm * relation_factor(self.neighboring)",
            ),
        ],
        NEIGHBOURS,
        "DPLogisticRegression-gram",
    ),
    Bug(
        "factor of the other relation",
        [("plan.py", 'return 2.0 if kind == "signed"', 'return 1.0 if kind == "signed"')],
        NEIGHBOURS,
        "replace and DPLogisticRegression-plain",
    ),
    Bug(
        "gradients not clipped",
        [
            (
                ENGINE,
                "        integers = residual * places\n",
                "        return np.rint(residual * places)\n",
            )
        ],
        NEIGHBOURS,
        "DPRidge-declared",
    ),
    Bug(
        "gradients of one loss not clipped",
        [
            (
                ENGINE,
                "integers = self._residual_integers(residual, part, clip_norm)",
                'far = 9.0 if loss.rule == "absolute" else 1.0\n'
                "            integers = self._residual_integers(residual, part, far * clip_norm)",
            )
        ],
        NEIGHBOURS,
        "DPQuantileRegressor-high",
    ),
    Bug(
        "clip missing in the compiled passes",
        [("_kernels.py", "out[i] = max(min(value, bound), -bound)", "out[i] = value")],
        "tests/test_exactness.py::test_a_seeded_fit_does_not_depend_on_how_the_work_is_done",
        "DPRidge-declared",
    ),
    Bug(
        "clip of second moments missing for sparse rows",
        [("_sparse_rows.py", "            clip_integers(clipped, limit)\n", "")],
        "tests/test_exactness.py::test_sparse_and_dense_rows_give_bitwise_the_same_fit",
        "DPLogisticRegression-gram",
    ),
    Bug(
        "second moments of long rows not clipped to the unit",
        [("_dense_rows.py", "                clip_integers(clipped, limit)\n", "")],
        NEIGHBOURS,
        "DPLogisticRegression-gram",
    ),
    Bug(
        "clip missing for rows in single precision",
        [
            (
                "_lattice.py",
                "        return integers, clip_integers(integers, limit), raw_squares\n",
                "        if raw.dtype == np.float32:\n"
                "            return integers, _squared_norms(integers), raw_squares\n"
                "        return integers, clip_integers(integers, limit), raw_squares\n",
            )
        ],
        "tests/test_lattice.py tests/test_exactness.py",
        "rounded_rows_never or every_size or (how_the_work and DPRidge-declared)",
    ),
    Bug(
        "the intercept's column left out of the norm",
        [(ENGINE, "                squares += constant**2\n", "")],
        NEIGHBOURS,
        "DPLogisticRegression-plain",
    ),
    Bug(
        "clipped rows rounded to nearest",
        [
            (
                "_lattice.py",
                "clipped = np.trunc(integers[over] * factor[:, None])",
                "clipped = np.rint(integers[over] * factor[:, None])",
            )
        ],
        "tests/test_lattice.py::test_clipped_integers_are_within_their_limits",
        "",
    ),
    Bug(
        "one row that is not a number poisons the sum",
        [
            (
                ENGINE,
                "            residual = np.where(np.isnan(residual), 0.0, residual)\n",
                "            pass\n",
            )
        ],
        "tests/test_lattice.py::test_every_records_gradient_is_within_the_clip",
        "",
    ),
    Bug(
        "weights not clipped to their bound",
        [
            (
                "_lattice.py",
                "np.clip(weights, 0.0, bound, dtype=np.float64)",
                "np.clip(weights, 0.0, None, dtype=np.float64)",
            )
        ],
        NEIGHBOURS,
        "DPLogisticRegression-exposure",
    ),
    Bug(
        "sum of the weights used without noise",
        [
            (
                "linear_model/_sample_weight.py",
                "released: Any = noise.release(bounded)\n",
                "noise.release(bounded)\n    released: Any = total.to_float(2.0**-WEIGHT_BITS)\n",
            )
        ],
        NOTHING_ELSE,
        "DPPoissonRegressor-exposure or DPHuberRegressor-exposure",
    ),
    Bug(
        "the number of records with a weight kept on the model",
        [
            (
                "linear_model/_classifier.py",
                "        self.coef_ = np.atleast_2d(coef)\n",
                "        self.coef_ = np.atleast_2d(coef)\n"
                "        self.n_weighted_ = int(np.count_nonzero(rows.weights))\n",
            )
        ],
        NOTHING_ELSE,
        "DPLogisticRegression-exposure",
    ),
    Bug(
        "the last step taken along a gradient without noise",
        [
            (
                DESCENT,
                "            if loss.zero_sum:\n",
                "            if iteration == settings.max_iter - 1:\n"
                "                exact = rows.gradient_sum(\n"
                '                    "gradient", theta, loss, targets, settings.clip_norm\n'
                "                )\n"
                "                gradient = exact.total.to_float(exact.unit)\n"
                "            if loss.zero_sum:\n",
            )
        ],
        NOTHING_ELSE,
        "DPRidge-declared",
    ),
    Bug(
        "each step takes twice its share",
        [(DESCENT, "parts[0].mu, steps)", "parts[0].mu * 2.0**0.5, steps)")],
        SPENT,
        "DPRidge-declared",
    ),
    Bug(
        "noise from one fixed stream",
        [("noise.py", "source = system_source()", 'source = keyed_source(b"noise")')],
        FRESH,
        "DPRidge-declared or DPMinMaxScaler-declared",
    ),
    Bug(
        "the noise core kept on the fitted model",
        [
            (
                "base.py",
                "        self.releases_ = noise.finish()\n",
                "        self.releases_ = noise.finish()\n        self.noise_ = noise\n",
            )
        ],
        FRESH,
        "DPStandardScaler-declared",
    ),
    Bug(
        "seeded noise that does not depend on the data",
        [
            (
                "noise.py",
                "(repr(k).encode() for k in keys), bounded.total.tobytes())",
                "(repr(k).encode() for k in keys))",
            )
        ],
        f"{CONTRACT}::test_seeded_noise_is_keyed_by_the_values_and_flagged",
        "DPRidge-declared",
    ),
    Bug(
        "seeded noise that two budgets share",
        [("noise.py", "bounded.name, sigma.hex(), float", "bounded.name, float")],
        f"{CONTRACT}::test_one_seed_gives_unrelated_noise_to_budgets_steps_and_grids_on_the_same_values",
        "",
    ),
    Bug(
        "floating-point noise added to the sum",
        [
            (
                "noise.py",
                "    total = bounded.total.copy()\n",
                "    draws = np.random.default_rng().normal(0.0, sigma, shape)\n"
                "    return bounded.total.to_float(bounded.unit) + draws\n"
                "    total = bounded.total.copy()\n",
            )
        ],
        "tests/test_float_leak.py",
        "",
    ),
    Bug(
        "noise five percent too small",
        [("noise.py", "units = sigma / bounded.unit", "units = 0.95 * sigma / bounded.unit")],
        "tests/test_mechanism.py::test_the_scale_of_the_noise_is_right_to_a_percent",
        "",
    ),
    Bug(
        "a cipher that is shared by forks",
        [("_entropy.py", "if self._owner != owner:", "if self._cipher is None:")],
        "tests/test_sampler.py tests/test_machine_faults.py",
        "fork",
    ),
    Bug(
        "missing bytes of entropy passed over",
        [("_entropy.py", "if len(found) != size:", "if not found:")],
        "tests/test_machine_faults.py::test_without_entropy_nothing_is_released",
        "",
    ),
    Bug(
        "histograms of d columns charged as one",
        [("_histograms.py", "nextafter(sqrt(n_columns), inf)", "nextafter(1.0, inf)")],
        NEIGHBOURS,
        "DPQuantileTransformer-declared",
    ),
    Bug(
        "threshold of a histogram one too low",
        [
            (
                "_level_sums.py",
                "    return tau\n\n\ndef _totals",
                "    return tau - 1.0\n\n\ndef _totals",
            ),
        ],
        "tests/test_level_sums.py",
        "",
    ),
    Bug(
        "delta0 of a thresholded histogram not in the plan's cost",
        [("plan.py", "            delta0=total.delta0,\n", "")],
        "tests/test_encoders.py::test_the_threshold_is_for_the_delta0_that_is_planned_and_charged",
        "",
    ),
    Bug(
        "threshold for ten times the delta0 that is charged",
        [
            (
                "preprocessing/_encoder.py",
                "            delta0=planned.delta0,\n",
                "            delta0=10.0 * planned.delta0,\n",
            )
        ],
        "tests/test_encoders.py::test_the_threshold_is_for_the_delta0_that_is_planned_and_charged",
        "",
    ),
    Bug(
        "KFold charged for k - 2 training sets",
        [("cost/_search.py", "return cv.n_splits - 1, ()", "return cv.n_splits - 2, ()")],
        "tests/test_cost.py::test_training_sets_are_counted_by_index",
        "",
    ),
    Bug(
        "the refit of a search not charged",
        [
            ("cost/_search.py", "    if best is not None:\n", "    if best is None and fitted:\n"),
            ("cost/_search.py", "    elif search.refit and not fitted:\n", "    elif False:\n"),
        ],
        "tests/test_cost.py",
        "test_composition or refit or fitted_costs",
    ),
    Bug(
        "costs that compose to their largest part",
        [("accounting.py", "root_of_squares(mus) if math.inf", "max(mus) if math.inf")],
        "tests/test_accounting.py tests/test_cost.py",
        "compos",
    ),
    Bug(
        "a ledger that adds floats",
        [
            (
                "ledger/_caps.py",
                "math.ceil(share * share * UNITS)",
                "int(round(float(cost.gaussian_mu / self.mu) ** 2 * 64) * (UNITS // 64))",
            )
        ],
        "tests/test_ledger.py",
        "shares or charged or spent",
    ),
    Bug(
        "a ledger that reserves after the fit",
        [
            (
                "ledger/_ledger.py",
                "        number = self._cashier.reserve(model, cost, accept)\n        try:\n",
                "        try:\n",
            ),
            (
                "ledger/_ledger.py",
                "            self._cashier.fail(number, model, cost)\n            raise\n",
                "            raise\n        number = self._cashier.reserve(model, cost, accept)\n",
            ),
        ],
        "tests/test_ledger.py",
        "before_the_data or stays_charged",
    ),
    Bug(
        "a fit that breaks off late is not charged",
        [
            (
                "base.py",
                "            on_first_release=lambda: self._charge(plan),\n",
                "",
            )
        ],
        "tests/test_faults.py tests/test_machine_faults.py",
        "charged",
    ),
    Bug(
        "a mechanism that gives more releases than were planned",
        [("mechanism.py", "            self.releases.append(release)\n", "")],
        "tests/test_faults.py",
        "mechanism or threads",
    ),
    Bug(
        "a label quoted in an error",
        [
            (
                "_validation.py",
                "are not among `classes`",
                "are, as {labels[~known][0]!r}, not among `classes`",
            )
        ],
        "tests/test_bad_input.py::test_labels_that_are_not_declared_are_refused_without_being_shown",
        "",
    ),
]


def copy_of_the_package(folder, changes=()):
    target = folder / "skdp"
    shutil.copytree(ROOT / "skdp", target, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in changes:
        path = target / name
        text = path.read_text("utf-8")
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
        path.write_text(text.replace(old, new), "utf-8")
    return folder


def run_tests(folder, tests, named):
    """Run tests on a copy of the package."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "--tb=line"]
    command += [str(ROOT / test) for test in tests.split()] + (["-k", named] if named else [])
    # Compiled code is kept beside its source: that of the copy goes with the copy.
    environment = {**os.environ, "PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.mutation
@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=[bug.what.replace(" ", "-") for bug in BUGS])
def test_the_bug_is_caught(bug, tmp_path):
    code, said = run_tests(copy_of_the_package(tmp_path, bug.changes), bug.tests, bug.named)
    assert code == 1 and "FAILED" in said, said[-2000:]
    print("caught by", re.search(r"FAILED \S*?::(\w+)", said).group(1))


@pytest.mark.mutation
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_an_unchanged_copy_passes(part, tmp_path):
    folder = copy_of_the_package(tmp_path)
    for bug in BUGS[part::4]:
        code, said = run_tests(folder, bug.tests, bug.named)
        assert code == 0 and "passed" in said, (bug.what, said[-2000:])


def test_there_are_twenty_bugs_and_the_page_lists_them_with_tests_that_run():
    assert len(BUGS) >= 20
    listed = re.findall(
        r"^   \* - (.+)\n     - ``(test_\w+)", PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert [what for what, _ in listed] == [bug.what for bug in BUGS]
    for bug, (_, name) in zip(BUGS, listed, strict=True):
        chosen = [test.partition("::") for test in bug.tests.split()]
        sources = [(ROOT / file).read_text("utf-8") for file, _, one in chosen if one in ("", name)]
        assert any(f"\ndef {name}(" in source for source in sources), bug.what


@pytest.mark.parametrize("bug", BUGS, ids=[bug.what.replace(" ", "-") for bug in BUGS])
def test_the_bug_has_its_place(bug):
    for name, old, new in bug.changes:
        assert (ROOT / "skdp" / name).read_text("utf-8").count(old) == 1, (name, old)
        assert old != new
