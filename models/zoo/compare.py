"""Measures how far trained parameters are from each other."""

import numpy as np

ROUNDING = 5e-7  # part of a parameter's largest element: what float32 makes of five steps


def weight_difference(before, wanted, got):
    """The largest difference of a parameter relative to its largest change, beyond rounding, and its name.

    before, wanted, got: numpy arrays by name; only those with one name in all three are compared.
    """
    changes = [np.abs(v - before[n]).max() for n, v in wanted.items() if n in before and v.size]
    least = max([1e-3 * c for c in changes] + [1e-12])  # a bias before a normalization has no slope
    worst, worst_name = 0.0, ""
    for name, value in wanted.items():
        if (
            name not in before
            or name not in got
            or got[name].shape != value.shape
            or not value.size
        ):
            continue
        change = max(np.abs(value - before[name]).max(), least)
        beyond = np.abs(got[name] - value).max() - ROUNDING * np.abs(value).max()
        if beyond / change > worst:
            worst, worst_name = float(beyond / change), name
    return worst, worst_name
