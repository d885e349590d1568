#!/usr/bin/env python3
"""Measures what Python adds to the steps of a Session, and whether they take memory.

PYTHONPATH=build/python python3 bench/python_steps.py [--steps 100000] [--rounds 5] [--loop PROGRAM]

Prints how resident memory changes from a tenth of the steps to all of them; microseconds of processor time a step in
Python and, with --loop, in a C++ program that takes the same steps (bench/session_steps.cpp), alternating, with the
least and the greatest of all rounds.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import time

import numpy

import tandem_train as tt

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ROOT / "models" / "digits" / "model.onnx"
BATCH = 4
SETTINGS = {
    "loss": tt.loss.softmax_cross_entropy("logits", labels="labels"),
    "optimizer": tt.optim.SGD(lr=1e-3),
}


def small_session(threads):
    random = numpy.random.default_rng(0)
    feeds = {"image": random.normal(size=(BATCH, 1, 8, 8)).astype(numpy.float32)}
    feeds["labels"] = random.integers(0, 10, BATCH)
    session = tt.Session(MODEL, BATCH, threads=threads, **SETTINGS)
    session.step(feeds)
    return session, feeds


def resident_kib():
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


def seconds_of(step, count, clock=time.perf_counter):
    begun = clock()
    for _ in range(count):
        step()
    return clock() - begun


def spread(values, digits=1):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def memory(steps):
    session, feeds = small_session(1)
    seconds_of(lambda: session.step(feeds), steps // 10)
    before = resident_kib()
    seconds_of(lambda: session.step(feeds), steps - steps // 10)
    print(f"memory     {steps} steps: {resident_kib() - before:+d} KiB after the first {steps // 10}, of {before} KiB")


def overhead(rounds, loop, steps=4000):
    session, feeds = small_session(1)
    image, labels = feeds["image"], feeds["labels"]
    mine, theirs = [], []
    for _ in range(rounds):
        seconds = seconds_of(lambda: session.step(image=image, labels=labels), steps, time.process_time)
        mine.append(1e6 * seconds / steps)
        if loop:
            command = [loop, str(MODEL), str(BATCH), str(steps)]
            theirs.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    print(f"python     {spread(mine)} us a step, the loop included")
    if loop:
        print(f"c++        {spread(theirs)} us a step")
        print(f"difference {spread([a - b for a, b in zip(mine, theirs)])} us a step")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loop")
    chosen = parser.parse_args()
    print(f"load       {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    memory(chosen.steps)
    overhead(chosen.rounds, chosen.loop)
    print(f"load       {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
