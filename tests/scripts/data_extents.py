"""Writes tests/data/data_extents.json: models in which data decides extents, and what they compute; and tests/data/data_extents/*.onnx, those
of them that the tool's tests open as files.

    python tests/scripts/data_extents.py

Each case: the model in ONNX's text form, what it is fed in each of several runs, and the outputs that onnxruntime gives. The numbers that are
fed come from one seeded generator, rounded to three digits.
"""

import json
import pathlib

import numpy as np
import onnx.checker
import onnx.parser
import onnxruntime

data = pathlib.Path(__file__).resolve().parents[1] / "data"
random = np.random.default_rng(31)
cases = []


def numbers(*shape):
    return np.round(random.uniform(-1, 1, shape), 3).astype(np.float32)


def integers(most, *shape):
    return random.integers(0, most, shape)


def entry(name, value):
    value = np.asarray(value)
    return {"name": name, "type": str(value.dtype), "shape": list(value.shape), "values": value.ravel().tolist()}


def add(name, text, feeds, functions="", domain="", file=False):
    """`feeds`: what each run is fed. `file`: it becomes an .onnx file, too."""
    head = f'<ir_version: 10, opset_import: ["": 20{domain}]>\n'
    model = onnx.parser.parse_model(head + text.strip() + "\n" + functions)
    onnx.checker.check_model(model)
    runs = []
    for fed in feeds:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        results = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, fed)
        names = [output.name for output in model.graph.output]
        runs.append({"inputs": [entry(*item) for item in fed.items()], "outputs": [entry(*item) for item in zip(names, results)]})
    cases.append({"name": name, "model": head + text.strip() + "\n" + functions, "runs": runs})
    if file:
        (data / "data_extents").mkdir(exist_ok=True)
        (data / "data_extents" / f"{name}.onnx").write_bytes(model.SerializeToString())


# Rows that a mask chooses go through a product and come back to their places.
add("rows_of_a_mask", """
rows (float[N,3] x, float[N] score) => (float[N,3] y, float[K,3] chosen, float total)
<float zero = {0}, float[3,3] weight = {0.5,-1,2,0.25,1,-0.5,1.5,0.75,-2}>
{
  mask = Greater (score, zero)
  places = NonZero (mask)
  flat = Transpose <perm = [1, 0]> (places)
  axes = Constant <value = int64[1] {1}> ()
  index = Squeeze (flat, axes)
  chosen = Gather (x, index)
  product = MatMul (chosen, weight)
  made = Tanh (product)
  y = ScatterND (x, flat, made)
  total = ReduceSum <keepdims = 0> (made)
}""", [{"x": numbers(5, 3), "score": np.float32([0.5, -1, 0.25, -0.5, 1])}, {"x": numbers(5, 3), "score": np.float32([-1, 2, 3, 4, 5])},
       {"x": numbers(5, 3), "score": -np.ones(5, np.float32)}, {"x": numbers(2, 3), "score": np.float32([1, 1])}], file=True)

add("compressed", """
compress (float[N,4] x, bool[4] keep, float[N] z) => (float[N,K] y, float[L] some)
<float zero = {0}>
{
  y = Compress <axis = 1> (x, keep)
  positive = Greater (z, zero)
  some = Compress <axis = 0> (z, positive)
}""", [{"x": numbers(3, 4), "keep": np.array([True, False, True, True]), "z": numbers(3)},
       {"x": numbers(4, 4), "keep": np.array([False, False, True, False]), "z": numbers(4)}])

add("unique_values", """
unique (int64[N,4] ids) => (int64[N] most, int64[K] values, int64[K] first, int64[M] inverse, int64[K] counts)
{
  values, first, inverse, counts = Unique <sorted = 0> (ids)
  largest = ReduceMax <keepdims = 1> (counts)
  shape = Shape <start = 0, end = 1> (ids)
  most = Expand (largest, shape)
}""", [{"ids": integers(5, 3, 4)}, {"ids": integers(3, 2, 4)}], file=True)

add("unique_rows", """
unique (float[N,2] x) => (float[K,2] values, int64[N] inverse)
{
  values, first, inverse = Unique <axis = 0, sorted = 1> (x)
}""", [{"x": np.float32([[1, 2], [0, 5], [1, 2], [0, 4]])}, {"x": np.float32([[3, 3], [3, 3]])}])

# The second choice is among what the first one has chosen.
add("nested", """
nested (float[N,3] x) => (float[N] best, float[K] large)
<float zero = {0}>
{
  positive = Greater (x, zero)
  places = NonZero (positive)
  tuples = Transpose <perm = [1, 0]> (places)
  found = GatherND (x, tuples)
  mean = ReduceMean <keepdims = 0> (found)
  above = Greater (found, mean)
  again = NonZero (above)
  axes = Constant <value = int64[1] {0}> ()
  index = Squeeze (again, axes)
  large = Gather (found, index)
  largest = ReduceMax <keepdims = 1> (large)
  shape = Shape <start = 0, end = 1> (x)
  best = Expand (largest, shape)
}""", [{"x": numbers(4, 3)}, {"x": numbers(4, 3)}, {"x": numbers(2, 3)}], file=True)

add("trips_of_data", """
trips (float[N,2] x, int64[N] steps) => (float[N,2] y, float[T,N,2] all)
<float[2,2] weight = {0.5,-0.25,1,0.75}>
{
  most = ReduceMax <keepdims = 0> (steps)
  y, all = Loop (most, , x) <body = step (int64 i, bool go, float[N,2] h) => (bool on, float[N,2] next, float[N,2] row) {
    on = Identity (go)
    product = MatMul (h, weight)
    next = Tanh (product)
    row = Identity (next)
  }>
}""", [{"x": numbers(3, 2), "steps": np.array([1, 3, 2])}, {"x": numbers(3, 2), "steps": np.array([1, 1, 0])},
       {"x": numbers(2, 2), "steps": np.array([4, 2])}], file=True)

# Without weights in the body, and without a trip count.
add("until_it_is_small", """
halved (float[N,2] x) => (float[N,2] y, int64 count)
<bool yes = {1}, float half = {0.5}, float bound = {0.2}, int64 none = {0}, int64 one = {1}>
{
  y, count = Loop (, yes, x, none) <body = step (int64 i, bool go, float[N,2] h, int64 n) => (bool on, float[N,2] next, int64 more) {
    next = Mul (h, half)
    size = Abs (next)
    largest = ReduceMax <keepdims = 0> (size)
    on = Greater (largest, bound)
    more = Add (n, one)
  }>
}""", [{"x": numbers(3, 2)}, {"x": 10 * numbers(2, 2)}], file=True)

# With many numbers in the body, iteration by iteration.
add("until_it_settles", """
settles (float[N,2] x) => (float[N,2] y, float[T] sizes)
<bool yes = {1}, float bound = {0.1}, float[2,2] weight = {0.5,-0.25,0.3,0.4}, int64[2] many = {1, 400000}>
{
  sum = ReduceSum <keepdims = 1> (x)
  wide = Expand (sum, many)
  y, sizes = Loop (, yes, x) <body = step (int64 i, bool go, float[N,2] h) => (bool on, float[N,2] next, float largest) {
    next = MatMul (h, weight)
    size = Abs (next)
    largest = ReduceMax <keepdims = 0> (size)
    level = ReduceMax <keepdims = 0> (wide)
    part = Sigmoid (level)
    least = Mul (part, bound)
    on = Greater (largest, least)
  }>
}""", [{"x": numbers(3, 2)}, {"x": 4 * numbers(3, 2)}])

add("branches_of_other_shapes", """
branches (float[N,3] x) => (float[R,3] y)
<float zero = {0}, int64 first = {0}>
{
  sum = ReduceSum <keepdims = 0> (x)
  positive = Greater (sum, zero)
  y = If (positive) <then_branch = yes () => (float[R,3] p) {
    p = Concat <axis = 0> (x, x)
  }, else_branch = no () => (float[R,3] q) {
    q = Neg (x)
  }>
}""", [{"x": np.abs(numbers(2, 3))}, {"x": -np.abs(numbers(2, 3))}])

# Extents and places as arithmetic on data.
add("extents_of_data", """
extents (float[N,6] x, int64[N] n) => (float[A,B] folded, float[C,6] repeated, float[D,6] part, int64[E] counted, float[F] zeros)
<int64[1] minus_one = {-1}, int64[1] zero = {0}, int64 start = {0}, int64 one = {1}, int64[1] six = {6}>
{
  most = ReduceMax <keepdims = 1> (n)
  target = Concat <axis = 0> (most, minus_one)
  folded = Reshape (x, target)
  row = Slice (x, zero, counts, zero)
  counts = Constant <value = int64[1] {1}> ()
  shape = Concat <axis = 0> (most, six)
  repeated = Expand (row, shape)
  part = Slice (x, zero, most, zero)
  limit = ReduceMax <keepdims = 0> (n)
  counted = Range (start, limit, one)
  zeros = ConstantOfShape (most)
}""".replace("  row = Slice (x, zero, counts, zero)\n  counts = Constant <value = int64[1] {1}> ()\n",
             "  counts = Constant <value = int64[1] {1}> ()\n  row = Slice (x, zero, counts, zero)\n"),
    [{"x": numbers(4, 6), "n": np.array([1, 2, 0, 2])}, {"x": numbers(4, 6), "n": np.array([3, 1, 0, 1])}])

add("boxes", """
detect (float[1,6,4] corners, float[1,2,6] scores) => (int64[K,3] chosen, float[K] best)
<int64 most = {2}, float overlap = {0.5}, float least = {0.1}>
{
  bent = Sigmoid (scores)
  chosen = NonMaxSuppression (corners, bent, most, overlap, least)
  best = GatherND (bent, chosen)
}""", [{"corners": np.float32([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]]),
        "scores": 3 * numbers(1, 2, 6)} for _ in range(2)])

# Two calls of a function: what each of them chooses is its own.
add("functions", """
calls (float[N] x) => (float[A] above, float[B] below)
{
  above = own.positive (x)
  minus = Neg (x)
  below = own.positive (minus)
}""", [{"x": numbers(5)}, {"x": numbers(4)}], functions="""
<domain: "own", opset_import: ["": 20]>
positive (v) => (w)
{
  zero = Constant <value = float {0}> ()
  mask = Greater (v, zero)
  w = Compress <axis = 0> (v, mask)
}""", domain=', "own": 1')

# A loop without an end, and one that asks for more memory than there is: for what is refused.
endless = """
endless (float[N,2] x) => (float[N,2] y)
<bool yes = {1}, float one = {1}, float zero = {0}>
{
  y = Loop (, yes, x) <body = step (int64 i, bool go, float[N,2] h) => (bool on, float[N,2] next) {
    next = Abs (h)
    largest = ReduceMax <keepdims = 0> (next)
    on = GreaterOrEqual (largest, zero)
  }>
}"""
huge = """
huge (float[N,2] x, int64[N] n) => (float[N] y)
<float zero = {0}>
{
  most = ReduceMax <keepdims = 1> (n)
  shape = Concat <axis = 0> (most, most)
  many = Expand (zero, shape)
  axes = Constant <value = int64[1] {1}> ()
  sum = ReduceSum <keepdims = 1> (x, axes)
  all = ReduceSum <keepdims = 0> (many)
  y0 = Add (sum, all)
  y = Squeeze (y0, axes)
}"""


def main():
    for name, text in (("endless", endless), ("huge", huge)):
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]>\n{text}')
        onnx.checker.check_model(model)
        (data / "data_extents" / f"{name}.onnx").write_bytes(model.SerializeToString())
    lines = ",\n".join(json.dumps(case) for case in cases)
    to = data / "data_extents.json"
    to.write_text(f"[\n{lines}\n]\n")
    print(f"{len(cases)} cases, {to.stat().st_size} bytes")


if __name__ == "__main__":
    main()
