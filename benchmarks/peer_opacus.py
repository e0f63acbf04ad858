"""One epoch of DP-SGD logistic regression with opacus; prints a line of JSON.

`fit.py` runs it in an environment that has opacus: ``python benchmarks/peer_opacus.py``.
"""

import argparse
import json
import warnings
from time import perf_counter

import torch
from _data import standardised
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset


def epoch(X, labels, batch):
    """Seconds of one epoch, and the accuracy afterwards."""
    features = torch.as_tensor(X, dtype=torch.float32)
    classes = torch.as_tensor(labels, dtype=torch.float32)
    model = torch.nn.Linear(X.shape[1], 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loader = DataLoader(TensorDataset(features, classes), batch_size=batch)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    loss = torch.nn.BCEWithLogitsLoss()
    start = perf_counter()
    for rows, target in loader:
        optimizer.zero_grad()
        loss(model(rows)[:, 0], target).backward()
        optimizer.step()
    seconds = perf_counter() - start
    with torch.no_grad():
        hits = (model(features)[:, 0] > 0) == (classes > 0.5)
    return seconds, hits.float().mean().item()


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--batches", type=int, nargs="+", default=[256])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, labels, _ = standardised(options.rows, options.columns)
    figures = {}
    for batch in options.batches:
        epoch(X[: 4 * batch], labels[: 4 * batch], batch)  # warm
        runs = [epoch(X, labels, batch) for _ in range(options.repeats)]
        figures[batch] = {"seconds": min(r[0] for r in runs), "accuracy": runs[-1][1]}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
