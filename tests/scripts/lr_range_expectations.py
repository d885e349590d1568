#!/usr/bin/env python3
"""Computes in NumPy what a learning-rate range test finds if its losses are a formula.

    python tests/scripts/lr_range_expectations.py > tests/data/lr_range.json

The mean is pandas' ewm(adjust=True) with alpha = 0.1, written out: the weights of older losses fall by 0.9 and
add up to 1. The steepest rate is the least central difference over two points to either side, from the sixth
point on; the sweep has diverged where the mean is above 4 times its least so far, after the fifth point.
"""
import json

import numpy

STEPS = 100


def means(losses):
    result = []
    for count in range(1, len(losses) + 1):
        weights = 0.9 ** numpy.arange(count - 1, -1, -1.0)
        result.append(float(numpy.dot(weights, losses[:count]) / weights.sum()))
    return numpy.array(result)


def case(name, rates, losses):
    smoothed = means(losses)
    end = len(losses)
    for i in range(5, len(losses)):
        if smoothed[i] > 4 * smoothed[: i + 1].min():
            end = i + 1
            break
    slopes = [(smoothed[i + 2] - smoothed[i - 2]) / numpy.log(rates[i + 2] / rates[i - 2]) for i in range(5, end - 2)]
    least = int(numpy.argmin(slopes))
    return {
        "name": name,
        "rates": rates.tolist(),
        "losses": losses.tolist(),
        "points": end,
        "last_mean": smoothed[end - 1],
        "steepest": float(rates[5 + least]) if slopes[least] < 0 else None,
        "diverged": float(rates[end - 1]) if end < len(losses) or smoothed[end - 1] > 4 * smoothed[:end].min() else None,
    }


def main():
    rates = numpy.geomspace(1e-5, 10, STEPS)
    log = numpy.log10(rates)
    valley = 2.3 - 2 / (1 + numpy.exp(-3 * (log + 2))) + numpy.exp(5 * (log - 0.3))
    noise = 0.02 * numpy.sin(37 * numpy.arange(STEPS))
    cases = [
        case("valley", rates, valley),
        case("noisy valley", rates, valley + noise),
        case("falls to the end", rates, 2.3 - 2 / (1 + numpy.exp(-3 * (log + 2)))),
        case("only rises", rates, 1 + 0.01 * numpy.arange(STEPS)),
    ]
    print(json.dumps(cases, indent=1))


main()
