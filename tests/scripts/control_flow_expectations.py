"""Writes tests/data/control_flow.json: models with branches, loops and sequences, and what they compute.

    python tests/scripts/control_flow_expectations.py

Each case: the model in ONNX's text form, what it is fed, and the outputs that onnxruntime gives. They are in double, so that the
test can differentiate them numerically. The numbers that are fed come from one seeded generator, rounded to three digits.
"""

import json
import pathlib

import numpy as np
import onnx.parser
import onnxruntime

random = np.random.default_rng(25)
cases = []


def numbers(*shape):
    return np.asarray(np.round(random.uniform(-1, 1, shape), 3))


def entry(name, value):
    value = np.asarray(value)
    return {"name": name, "type": str(value.dtype), "shape": list(value.shape), "values": value.ravel().tolist()}


def add(name, text, feeds=None, opset=20):
    """`feeds`: what one run is fed, or a list of several."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]>\n{text}')
    onnx.checker.check_model(model)
    runs = []
    for fed in feeds if isinstance(feeds, list) else [feeds or {}]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        results = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, fed)
        names = [output.name for output in model.graph.output]
        runs.append({"inputs": [entry(*item) for item in fed.items()], "outputs": [entry(*item) for item in zip(names, results)]})
    cases.append({"name": name, "opset": opset, "model": text.strip(), "runs": runs})


# h is carried, w is captured and read in each iteration, all h are stacked.
add("loop_of_a_cell", """
cell (double[2,3] x, double[3,3] w) => (double[2,3] last, double[4,2,3] all)
<int64 trips = {4}, bool yes = {1}>
{
  last, all = Loop (trips, yes, x) <body = step (int64 i, bool go, double[2,3] h) => (bool on, double[2,3] next, double[2,3] row) {
    on = Identity (go)
    product = MatMul (h, w)
    next = Tanh (product)
    row = Identity (next)
  }>
}""", {"x": numbers(2, 3), "w": numbers(3, 3)})

# The iteration's number picks the row; nothing but the sum is carried.
add("loop_over_rows", """
rows (double[3,2] x) => (double[2] total, double[3,2] partial)
<int64 trips = {3}, double[2] zero = {0, 0}>
{
  total, partial = Loop (trips, , zero) <body = step (int64 i, bool go, double[2] sum) => (bool go_on, double[2] next, double[2] row) {
    go_on = Identity (go)
    one = Gather <axis = 0> (x, i)
    square = Mul (one, one)
    next = Add (sum, square)
    row = Identity (next)
  }>
}""", {"x": numbers(3, 2)})

# The number of iterations follows from a counter: 0, 2, 4.
add("loop_while", """
count (double[2] x) => (double[2] y, int64 counted)
<bool yes = {1}, int64 zero = {0}>
{
  y, counted = Loop (, yes, x, zero) <body = step (int64 i, bool go, double[2] v, int64 c) => (bool on, double[2] w, int64 d) {
    two = Constant <value = int64 {2}> ()
    limit = Constant <value = int64 {6}> ()
    d = Add (c, two)
    on = Less (d, limit)
    factor = Cast <to = 11> (d)
    scaled = Mul (v, factor)
    w = Sin (scaled)
  }>
}""", {"x": numbers(2)})

add("loop_without_iterations", """
none (double[2] x) => (double[2] y, double[z,2] rows)
<int64 trips = {0}>
{
  y, rows = Loop (trips, , x) <body = step (int64 i, bool go, double[2] v) => (bool on, double[2] w, double[2] row) {
    on = Identity (go)
    w = Exp (v)
    row = Identity (w)
  }>
}""", {"x": numbers(2)})

# The inner loop runs as often as the outer one has run, and captures what that one carries.
add("loops_in_loops", """
nested (double[2] x) => (double[2] y, double[3,2] rows)
<int64 trips = {3}, bool yes = {1}>
{
  y, rows = Loop (trips, yes, x) <body = outer (int64 i, bool go, double[2] v) => (bool on, double[2] w, double[2] row) {
    on = Identity (go)
    w = Loop (i, go, v) <body = inner (int64 j, bool inner_go, double[2] u) => (bool inner_on, double[2] t) {
      inner_on = Identity (inner_go)
      both = Mul (u, v)
      t = Add (both, x)
    }>
    row = Mul (w, x)
  }>
}""", {"x": numbers(2)})

# A weight of the body itself.
add("loop_with_a_weight", """
own (double[2,3] x) => (double[2,3] y)
<int64 trips = {3}>
{
  y = Loop (trips, , x) <body = step (int64 i, bool go, double[2,3] h) => (bool on, double[2,3] next)
  <double[3,3] w = {0.5, -0.25, 0.125, 0.75, 0.5, -0.5, 0.25, 0.375, -0.625}>
  {
    on = Identity (go)
    product = MatMul (h, w)
    next = Tanh (product)
  }>
}""", {"x": numbers(2, 3)})

# What torch.jit exports write: a sequence grows, and is stacked behind the loop.
add("loop_with_a_sequence", """
grows (double[2,3] x) => (double[4,2,3] stack, double[2,12] wide)
<int64 trips = {4}, bool yes = {1}>
{
  empty = SequenceEmpty <dtype = 11> ()
  last, parts = Loop (trips, yes, x, empty) <body = step (int64 i, bool go, double[2,3] h, seq(double[2,3]) s) => (bool on, double[2,3] next, seq(double[2,3]) t) {
    on = Identity (go)
    next = Tanh (h)
    t = SequenceInsert (s, next)
  }>
  stack = ConcatFromSequence <axis = 0, new_axis = 1> (parts)
  wide = ConcatFromSequence <axis = 1> (parts)
}""", {"x": numbers(2, 3)})

# Data ends it: v is halved while its first element is at least 1. The iteration's number goes on, v does not.
add("loop_until_small", """
halves (double[2] x) => (double[2] y)
<int64 trips = {5}, int64 first = {0}, double one = {1}, double half = {0.5}>
{
  head = Gather (x, first)
  at_first = GreaterOrEqual (head, one)
  y = Loop (trips, at_first, x) <body = step (int64 i, bool go, double[2] v) => (bool on, double[2] w) {
    w = Mul (v, half)
    element = Gather (w, first)
    on = GreaterOrEqual (element, one)
  }>
}""", [{"x": np.array([first, 0.7])} for first in (0.5, 1.25, 3.0, 100.0)])

# Behind its end the body would take logarithms and roots of numbers below 0.
add("loop_that_leaves_its_domain", """
domain (double[2] x, double w) => (double[2] y)
<int64 trips = {6}, double zero = {0}>
{
  y = Loop (trips, , x) <body = step (int64 i, bool go, double[2] v) => (bool on, double[2] next) {
    scaled = Mul (v, w)
    logarithm = Log (scaled)
    root = Sqrt (scaled)
    next = Mul (logarithm, root)
    least = ReduceMin <keepdims = 0> (next)
    on = Greater (least, zero)
  }>
}""", [{"x": np.array(x), "w": np.array(1.5)} for x in ([3.0, 2.5], [1.1, 4.0], [40.0, 30.0])])

add("if_of_two_layers", """
choice (double[2,3] x, double[3,2] a, double[3,2] b) => (double[2,2] y)
<double zero = {0}>
{
  sum = ReduceSum <keepdims = 0> (x)
  positive = Greater (sum, zero)
  y = If (positive) <then_branch = yes () => (double[2,2] p) {
    u = MatMul (x, a)
    p = Relu (u)
  }, else_branch = no () => (double[2,2] q) {
    v = MatMul (x, b)
    q = Tanh (v)
  }>
}""", [{"x": sign * np.abs(numbers(2, 3)), "a": numbers(3, 2), "b": numbers(3, 2)} for sign in (1, -1)])

# Each branch is right where it is taken alone: log and sqrt of x, of -x.
add("if_outside_of_a_domain", """
domain (double x, double w) => (double y, double z)
<double zero = {0}>
{
  positive = Greater (x, zero)
  y, z = If (positive) <then_branch = yes () => (double p, double r) {
    u = Mul (x, w)
    p = Log (u)
    r = Sqrt (x)
  }, else_branch = no () => (double q, double s) {
    minus = Neg (x)
    v = Mul (minus, w)
    q = Log (v)
    s = Identity (w)
  }>
}""", [{"x": np.array(x), "w": np.array(0.75)} for x in (2.0, -3.0)])

# The branch that is not taken would look up a row that is not there.
add("if_outside_of_a_table", """
lookup (double[3,2] table, int64 row) => (double[2] y)
<int64 count = {3}, double[2] none = {0.5, 0.25}>
{
  inside = Less (row, count)
  y = If (inside) <then_branch = yes () => (double[2] p) {
    p = Gather (table, row)
  }, else_branch = no () => (double[2] q) {
    q = Identity (none)
  }>
}""", [{"table": numbers(3, 2), "row": np.array(row)} for row in (2, 3, 1000)])

# In each iteration data decides, by a nested choice.
add("if_in_a_loop", """
steps (double[4] x) => (double y, double[4] all)
<int64 trips = {4}, double start = {0.25}, double zero = {0}>
{
  y, all = Loop (trips, , start) <body = step (int64 i, bool go, double v) => (bool on, double w, double row) {
    on = Identity (go)
    one = Gather (x, i)
    positive = Greater (one, zero)
    w = If (positive) <then_branch = yes () => (double p) {
      p = Mul (v, one)
    }, else_branch = no () => (double q) {
      large = Greater (v, zero)
      q = If (large) <then_branch = inner_yes () => (double r) {
        r = Sub (one, v)
      }, else_branch = inner_no () => (double s) {
        s = Exp (one)
      }>
    }>
    row = Identity (w)
  }>
}""", [{"x": np.array(x)} for x in ([0.5, -0.25, 0.75, -1.0], [-0.5, -0.25, -0.75, 0.5])])

# Two states, two scanned tensors along different axes and in different directions; rows from the end, and columns.
add("scan_of_two", """
two (double[2] h, double c, double[3,2] x, double[2,3] z, double[2,2] w) => (double[2] h_last, double c_last, double[3,2] hs, double[2,3] zs)
{
  h_last, c_last, hs, zs = Scan <num_scan_inputs = 2, scan_input_axes = [0, -1], scan_input_directions = [0, 1], scan_output_axes = [0, 1], scan_output_directions = [1, 0],
    body = step (double[2] v, double d, double[2] one, double[2] other) => (double[2] v_next, double d_next, double[2] row, double[2] column) {
    product = MatMul (v, w)
    sum = Add (product, one)
    v_next = Tanh (sum)
    both = Mul (v_next, other)
    more = ReduceSum <keepdims = 0> (both)
    d_next = Add (d, more)
    row = Identity (v_next)
    column = Mul (other, d_next)
  }> (h, c, x, z)
}""", {"h": numbers(2), "c": numbers(), "x": numbers(3, 2), "z": numbers(2, 3), "w": numbers(2, 2)})

# Until version 8 each sample of a batch was scanned on its own, along axis 1.
add("scan_of_samples", """
samples (double[2,3] h, double[2,4,3] x) => (double[2,3] last, double[2,4,3] all)
{
  last, all = Scan <num_scan_inputs = 1, directions = [1], body = step (double[3] v, double[3] one) => (double[3] next, double[3] row) {
    sum = Add (v, one)
    next = Tanh (sum)
    row = Mul (next, one)
  }> (, h, x)
}""", {"h": numbers(2, 3), "x": numbers(2, 4, 3)}, opset=8)

add("sequences", """
parts (double[4,2] x) => (double[5,2] all, double[2] last, int64 length)
<int64 two = {2}, int64 minus_one = {-1}, int64 zero = {0}>
{
  parts = SplitToSequence <axis = 0, keepdims = 0> (x)
  doubled = Mul (x, x)
  row = Gather (doubled, two)
  longer = SequenceInsert (parts, row, minus_one)
  front = SequenceInsert (longer, row, zero)
  shorter = SequenceErase (front, two)
  less = SequenceErase (shorter)
  more = SequenceInsert (less, row)
  length = SequenceLength (more)
  last = SequenceAt (more, minus_one)
  all = ConcatFromSequence <axis = 0, new_axis = 1> (more)
}""", {"x": numbers(4, 2)})

add("sequence_map", """
map (double[5,2] x, double[2] w) => (double[5,2] y, double[3] sums)
<int64 two = {2}>
{
  parts = SplitToSequence <axis = 0> (x, two)
  ys, ss = SequenceMap (parts, w) <body = each (double[n,2] part, double[2] v) => (double[n,2] made, double[1] sum) {
    product = Mul (part, v)
    made = Mul (product, w)
    all = ReduceSum <keepdims = 0> (made)
    axes = Constant <value = int64[1] {0}> ()
    sum = Unsqueeze (all, axes)
  }>
  y = ConcatFromSequence <axis = 0> (ys)
  sums = ConcatFromSequence <axis = 0> (ss)
}""", {"x": numbers(5, 2), "w": numbers(2)})

add("optionals", """
maybe (double[2] x) => (double[2] y, bool has, bool has_not)
{
  full = Optional (x)
  has = OptionalHasElement (full)
  empty = Optional <type = double[2]> ()
  has_not = OptionalHasElement (empty)
  y = If (has) <then_branch = yes () => (double[2] p) {
    value = OptionalGetElement (full)
    p = Exp (value)
  }, else_branch = no () => (double[2] q) {
    q = Neg (x)
  }>
}""", {"x": numbers(2)}, opset=18)


def main():
    to = pathlib.Path(__file__).resolve().parents[1] / "data" / "control_flow.json"
    lines = ",\n".join(json.dumps(case) for case in cases)
    to.write_text(f"[\n{lines}\n]\n")
    print(f"{len(cases)} cases, {to.stat().st_size} bytes")


if __name__ == "__main__":
    main()
