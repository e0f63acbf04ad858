"""The leaderboard's figures beside its aims, from the saved results."""

import numpy as np
from _tables import HOLD_OUT

# Sets, and mean gap to the non-private model at each epsilon that is aimed for.
BINARY = (
    "adult",
    "bank_marketing",
    "credit_default_taiwan",
    "spambase",
    "pima_diabetes",
    "breast_cancer",
)
REGRESSION = (
    "abalone",
    "airfoil",
    "diamonds",
    "energy_efficiency",
    "power_plant",
    "physiochemical_protein",
    "wine_quality_red",
    "wine_quality_white",
    "medical_insurance",
)
AUC = {0.1: 0.021, 0.3: 0.010, 1.0: 0.0025, 3.0: 0.0}
LOG_LOSS = {0.1: 0.085, 0.3: 0.048, 1.0: 0.018, 3.0: 0.010}
R2_MEAN = {0.3: 0.025, 1.0: 0.008, 3.0: 0.004}
R2_MEDIAN = {0.3: 0.013, 1.0: 0.005, 3.0: 0.003}
WORST = {0.3: 0.02, 1.0: 0.01, 3.0: 0.01}
DIGITS = {0.3: 0.80, 1.0: 0.91, 3.0: 0.94}
SCALE_ROWS, SCALE_LOSS = 4_000, 0.01

APART = ("naval_propulsion",)

MINE, PLAIN = "skdp", "skdp, gradient descent"
SCALED = "skdp, scale of y private"
OBJECTIVE = ("objective perturbation", "objective perturbation, clipped loss")


def group(table):
    """Which figures a set belongs to."""
    if table in (*BINARY, *REGRESSION):
        return "aims"
    if table in APART:
        return "apart"
    if any(table in sets for sets in HOLD_OUT.values()):
        return "hold-out"
    return "simulated" if table.startswith("rare_") else "further"


def pivot(results, metric, what="gap", tables=None):
    """Frame of one line per (table, epsilon) and one column per model, skdp's among them."""
    rows = results[results.metric == metric]
    if tables is not None:
        rows = rows[rows.table.isin(tables)]
    frame = rows.pivot(index=["table", "epsilon"], columns="model", values=what)
    return frame if MINE in frame else frame.assign(**{MINE: np.nan})


def _at(frame, epsilon):
    """Lines of one epsilon, by table."""
    return frame[frame.index.get_level_values("epsilon") == epsilon].droplevel("epsilon")


def _line(text, value, aim, *, at_least=False):
    if np.isnan(value):  # not measured
        return
    met = value >= aim if at_least else value <= aim
    sign = ">=" if at_least else "<="
    print(f"  {text:58s} {value:8.4f}  aim {sign} {aim:<6g} {'met' if met else 'MISSED'}")


def _short(value):
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.0e}"


def leaderboard(results, metric, tables, title):
    """Mean, median and worst gap of every model on the sets that all of them ran on."""
    gaps = pivot(results, metric, tables=tables)
    gaps = gaps.drop(columns="non-private", errors="ignore")
    epsilons = sorted(e for e in gaps.index.unique("epsilon") if np.isfinite(e))
    present = sorted(gaps.index.unique("table"))
    print(f"\n{title}: gap in {metric}, mean / median / worst of {len(present)} sets")
    print(f"{'':38s}" + "".join(f"{f'epsilon {e:g}':>24s}" for e in epsilons))
    for model in gaps:
        cells = []
        for epsilon in epsilons:
            found = _at(gaps[model], epsilon).dropna()
            cells.append(
                "/".join(map(_short, (found.mean(), found.median(), found.max())))
                if len(found) == len(present)
                else f"({len(found)} sets)"
            )
        print(f"{model:38s}" + "".join(f"{cell:>24s}" for cell in cells))


def per_table(results, metric, tables, epsilon):
    """Gap of every model on every set at one epsilon, the worst set of skdp first."""
    gaps = _at(pivot(results, metric, tables=tables), epsilon)
    gaps = gaps.sort_values(MINE, ascending=False).dropna(axis=1, how="all")
    print(f"\ngap in {metric} at epsilon {epsilon:g}")
    print(gaps.to_string(float_format=lambda v: f"{v:.4f}", na_rep="-"))


def report(results):
    """Print all that the results allow."""
    for metric, task in [("auc", "binary"), ("log_loss", "binary"), ("r2", "regression")]:
        rows = results[results.task == task]
        if rows.empty:
            continue
        stated = BINARY if task == "binary" else REGRESSION
        further = [t for t in rows.table.unique() if group(t) == "further"]
        held_out = [t for t in rows.table.unique() if group(t) == "hold-out"]
        leaderboard(rows, metric, stated, f"{task}, the sets of the aims")
        if further:
            leaderboard(rows, metric, further, f"{task}, further sets")
        if held_out:
            leaderboard(rows, metric, held_out, f"{task}, sets that nothing was tuned on")
        if metric != "log_loss":
            per_table(rows, metric, [*stated, *further], 1.0)
    for task, metric in [("classes", "accuracy"), ("counts", "deviance_explained")]:
        rows = results[results.task == task]
        if not rows.empty:
            print(f"\n{task}: {metric}")
            print(pivot(rows, metric, "mean").round(4).to_string(na_rep="-"))
    print("\nAims")
    _gaps(results)
    _worst(results)
    _rare(results)
    _others(results)


def _gaps(results):
    for metric, aims in [("auc", AUC), ("log_loss", LOG_LOSS)]:
        gaps = pivot(results, metric, tables=BINARY)
        for epsilon, aim in aims.items():
            found = _at(gaps, epsilon)
            if found[MINE].count() == len(BINARY):
                _line(f"binary, mean gap in {metric} at {epsilon:g}", found[MINE].mean(), aim)
    gaps = pivot(results, "r2", tables=REGRESSION)
    for epsilon, aim in R2_MEAN.items():
        found = _at(gaps, epsilon)
        if found[MINE].count() == len(REGRESSION):
            _line(f"regression, mean gap in R2 at {epsilon:g}", found[MINE].mean(), aim)
            median = R2_MEDIAN[epsilon]
            _line(f"regression, median gap in R2 at {epsilon:g}", found[MINE].median(), median)


def _worst(results):
    tables = results[results.task == "binary"].table.unique()
    gaps = pivot(results, "auc", tables=tables)
    rivals = [name for name in (PLAIN, *OBJECTIVE) if name in gaps]
    for epsilon, aim in WORST.items():
        found = _at(gaps, epsilon).dropna(subset=[MINE, *rivals])
        if not found.empty:
            behind = found[MINE] - found[rivals].min(axis=1)
            text = f"behind the better of {len(rivals)} on {behind.idxmax()} at {epsilon:g}"
            _line(f"worst set, {text}", behind.max(), aim)


def _rare(results):
    rows = results[results.table.str.startswith("rare_") & (results.epsilon == 1.0)]
    for table in rows.table.unique():
        found = rows[(rows.table == table) & (rows.model == MINE)].set_index("metric")
        if found.empty:
            continue
        _line(f"{table}, gap in auc at 1", found.gap["auc"], 0.03)
        off = abs(found["mean"]["level"] - 1.0)
        _line(f"{table}, mean probability / rate, off 1, at 1", off, 0.2)


def _others(results):
    digits = pivot(results, "accuracy", "mean", ["digits"])
    for epsilon, aim in DIGITS.items():
        found = _at(digits, epsilon)
        if len(found):
            _line(f"digits, accuracy at {epsilon:g}", found[MINE].iloc[0], aim, at_least=True)
    naval = pivot(results, "r2", "mean", ["naval_propulsion"])
    for epsilon in R2_MEAN:
        found = _at(naval, epsilon).drop(columns="non-private", errors="ignore")
        if found.empty:
            continue
        line = found.iloc[0].dropna().drop(SCALED, errors="ignore")
        if MINE in line and len(line) > 1:
            text = f"naval_propulsion, R2 at {epsilon:g} (best other: {line.drop(MINE).idxmax()})"
            _line(text, line[MINE], round(line.drop(MINE).max(), 4), at_least=True)
    large = results[(results.task == "regression") & (results["rows"] * 0.75 >= SCALE_ROWS)]
    gaps = pivot(large, "r2")
    if SCALED in gaps:
        extra = (gaps[SCALED] - gaps[MINE]).dropna().unstack("epsilon")
        for epsilon in extra.columns.intersection(list(R2_MEAN)):
            worst = extra[epsilon].idxmax()
            text = f"private scale of y, further gap at {epsilon:g}: worst, {worst}"
            _line(text, extra[epsilon].max(), SCALE_LOSS)
    counts = results[(results.task == "counts") & (results.metric == "deviance_explained")]
    if counts.empty:
        return
    explained = pivot(counts, "deviance_explained", "mean")
    best = explained["non-private"].dropna().droplevel("epsilon")
    for table, epsilon, share in [
        ("bike_sharing_hourly", 1.0, 0.95),
        ("fremtpl_mini", 3.0, 0.5),
    ]:
        if (table, epsilon) in explained.index:
            got = explained.loc[(table, epsilon), MINE] / best[table]
            text = f"{table}, share of the deviance explained at {epsilon:g}"
            _line(text, got, share, at_least=True)
