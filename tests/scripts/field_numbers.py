#!/usr/bin/env python3
"""Computes functions of fields in Python's float64, rounded once to float32.

    python tests/scripts/field_numbers.py > tests/data/field_numbers.json

`dates` are read by Python's datetime; without a zone they are UTC, and the parts are those of the clock that they
were written by.
`cells` are numbers as a table has them. `functions` are applied in order in float64; float32 among them rounds
nothing, the result does.
"""
import datetime
import json
import math
import struct


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def scale(by):
    return lambda x: x * by


def normalize(mean, std):
    return lambda x: (x - mean) / std


def log1p(x):
    return math.log1p(max(x, 0.0))


def same(x):
    return x


TIMES = ["1700000000", "1700000001", "1699999871.5", "1731628800"]
CASES = [
    # (functions as a configuration has them, the same in Python, cells)
    (["normalize(16777216, 1)"], [normalize(16777216, 1)], ["16777216", "16777217", "16777219", "-1"]),
    (["float32", "normalize(1.7e9, 86400)"], [same, normalize(1.7e9, 86400)], TIMES),
    (["normalize(1.7e9, 86400)", "scale(0.1)"], [normalize(1.7e9, 86400), scale(0.1)], TIMES),
    (["scale(1/3)", "normalize(0.1, 0.3)"], [scale(1 / 3), normalize(0.1, 0.3)], ["0.1", "0.3", "0.30000000000000004", "7"]),
    (["log1p", "normalize(2.5, 1e-7)"], [log1p, normalize(2.5, 1e-7)], ["11.182493960703473", "11.1824940", "0", "-3"]),
    (["scale(1e-300)", "scale(1e300)"], [scale(1e-300), scale(1e300)], ["3", "1e10", "0.1", "-2.5"]),
    (["scale(1e-3)"], [scale(1e-3)], ["9007199254740993", "123456789", "0.7", "33"]),
    (["normalize(0.1307, 0.3081)", "float32", "scale(3)"], [normalize(0.1307, 0.3081), same, scale(3)], ["0.1", "0.2", "0.6", "0.7"]),
]


def value(functions, cell):
    x = float(cell)
    for function in functions:
        x = function(x)
    return x


DATES = [
    "1970-01-01", "2024-02-29", "1969-12-31T23:59:59Z", "2024-03-01T00:30:00+02:00", "2024-12-31 23:59:59.25-03:30",
    "2000-01-01T12:00", "1900-03-01", "2023-01-01", "2024-12-30",
]


def date(cell):
    time = datetime.datetime.fromisoformat(cell.replace("Z", "+00:00"))
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.timezone.utc)
    names = {"yearday": time.timetuple().tm_yday, "weekday": time.weekday(), "unix_time": time.timestamp()}
    names |= {name: getattr(time, name) for name in ("year", "month", "day", "hour", "minute")}
    return {"cell": cell, "parts": names}


def main():
    cases = []
    for texts, functions, cells in CASES:
        values = [value(functions, cell) for cell in cells]
        cases.append({"functions": texts, "cells": cells, "values": [float32(x) for x in values]})
    # A float64 field keeps all of it.
    texts, functions, cells = CASES[3]
    cases.append({"functions": texts + ["float64"], "cells": cells, "values": [value(functions, cell) for cell in cells]})
    pixels = [float32((byte * (1 / 255) - 0.485) / 0.229) for byte in range(256)]
    print(json.dumps({"cases": cases, "pixels": pixels, "dates": [date(cell) for cell in DATES]}, indent=1))


if __name__ == "__main__":
    main()
