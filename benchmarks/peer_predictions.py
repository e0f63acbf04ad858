"""Predictions of DP-EBM or diffprivlib, in an interpreter that has it.

`utility.py` runs ``python peer_predictions.py {dp-ebm,diffprivlib} job.npz answer.npz``: the job
holds splits of standardised, clipped data, the answer a prediction for every split and epsilon.
"""

import argparse
import warnings

import numpy as np


def dp_ebm(job, split, epsilon):
    """Explainable boosting machine of `interpret`; categories are given as such."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    nominal = job["nominal"]
    bound = float(job["bound"])
    settings = {
        "epsilon": epsilon,
        "delta": float(job["delta"]),
        "feature_types": ["nominal" if flag else "continuous" for flag in nominal],
        "privacy_bounds": {j: (-bound, bound) for j, flag in enumerate(nominal) if not flag},
        "random_state": None,
        "n_jobs": 1,
    }
    train, test = job[f"tree_train{split}"], job[f"tree_test{split}"]
    y = job[f"y{split}"]
    if job["task"] == "regression":
        model = DPExplainableBoostingRegressor(
            privacy_target_min=-3.0, privacy_target_max=3.0, **settings
        )
        return model.fit(train, np.clip(y, -3.0, 3.0)).predict(test)
    return DPExplainableBoostingClassifier(**settings).fit(train, y).predict_proba(test)[:, 1]


def diffprivlib(job, split, epsilon):
    """Models of diffprivlib (pure epsilon), with the bounds that skdp is given."""
    from diffprivlib.models import LinearRegression, LogisticRegression

    train, test = job[f"train{split}"], job[f"test{split}"]
    y = job[f"y{split}"]
    bound = float(job["bound"])
    d = train.shape[1]
    if job["task"] == "regression":
        box = (np.full(d, -bound), np.full(d, bound))
        return (
            LinearRegression(epsilon=epsilon, bounds_X=box, bounds_y=(-3.0, 3.0))
            .fit(train, np.clip(y, -3.0, 3.0))
            .predict(test)
        )
    model = LogisticRegression(epsilon=epsilon, data_norm=np.sqrt(d))
    found = model.fit(train, y).predict_proba(test)
    return found[:, 1] if job["task"] == "binary" else found


def main():
    """Read the job, write the answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=["dp-ebm", "diffprivlib"])
    parser.add_argument("job")
    parser.add_argument("answer")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    predict = dp_ebm if options.library == "dp-ebm" else diffprivlib
    answer = {}
    with np.load(options.job) as job:
        for split in range(int(job["splits"])):
            for k, epsilon in enumerate(job["epsilons"]):
                answer[f"{split}_{k}"] = predict(job, split, float(epsilon))
    np.savez(options.answer, **answer)


if __name__ == "__main__":
    main()
