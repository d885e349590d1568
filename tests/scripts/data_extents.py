"""Writes models whose data decides extents, and what they compute.

tests/data/data_extents.json has the models, tests/data/data_extents/*.onnx those that the tool's tests open as files.
tests/data/chosen_rows.json has models in double that can be trained, because masks select what data chooses.

    python tests/scripts/data_extents.py

Each case: the model in ONNX's text form, what it is fed in each of several runs, and the outputs that onnxruntime gives. The numbers that are
fed come from one seeded generator, rounded to three digits.
"""

import json
import pathlib

import numpy as np
import onnx.checker
import onnx.numpy_helper
import onnx.parser
import onnxruntime

data = pathlib.Path(__file__).resolve().parents[1] / "data"
random = np.random.default_rng(31)
cases = []
trained = []


def numbers(*shape):
    return np.round(random.uniform(-1, 1, shape), 3).astype(np.float32)


def integers(most, *shape):
    return random.integers(0, most, shape)


def entry(name, value):
    value = np.asarray(value)
    return {"name": name, "type": str(value.dtype), "shape": list(value.shape), "values": value.ravel().tolist()}


def add(name, text, feeds, functions="", domain="", file=False, to=cases):
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
    to.append({"name": name, "model": head + text.strip() + "\n" + functions, "runs": runs})
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


# Nothing is left to compute once it is known what was chosen.
add("places_alone", """
places (float[N,3] x) => (int64[2,K] place)
{
  place = NonZero (x)
}""", [{"x": np.round(numbers(3, 3))}, {"x": np.round(numbers(3, 3))}], file=True)


def doubles(*shape):
    return numbers(*shape).astype(np.float64)


def add_trained(name, text, feeds):
    add(name, text, feeds, to=trained)


# A mixture of experts: the rows of each are added back by ScatterND, and by ScatterElements over a shape as index_add is exported.
experts = {"w0": doubles(4, 5), "v0": doubles(5, 4), "w1": doubles(4, 5), "v1": doubles(5, 4)}
add_trained("mixture_of_experts", """
moe (double[6,4] x, int64[6] expert, double[6] gate, double[4,5] w0, double[5,4] v0, double[4,5] w1, double[5,4] v1) => (double[6,4] y)
<int64 zero = {0}, int64 one = {1}, int64[1] column = {1}>
{
  shape = Shape (x)
  base = ConstantOfShape <value = double[1] {0}> (shape)
  mask0 = Equal (expert, zero)
  place0 = NonZero (mask0)
  tuple0 = Transpose <perm = [1, 0]> (place0)
  index0 = Squeeze (tuple0, column)
  rows0 = Gather (x, index0)
  wide0 = MatMul (rows0, w0)
  bent0 = Tanh (wide0)
  made0 = MatMul (bent0, v0)
  gate0 = Gather (gate, index0)
  factor0 = Unsqueeze (gate0, column)
  part0 = Mul (made0, factor0)
  sum0 = ScatterND <reduction = "add"> (base, tuple0, part0)
  mask1 = Equal (expert, one)
  place1 = NonZero (mask1)
  tuple1 = Transpose <perm = [1, 0]> (place1)
  index1 = Squeeze (tuple1, column)
  rows1 = Gather (x, index1)
  wide1 = MatMul (rows1, w1)
  bent1 = Tanh (wide1)
  made1 = MatMul (bent1, v1)
  gate1 = Gather (gate, index1)
  factor1 = Unsqueeze (gate1, column)
  part1 = Mul (made1, factor1)
  shape1 = Shape (part1)
  index1c = Unsqueeze (index1, column)
  all1 = Expand (index1c, shape1)
  sum1 = ScatterElements <axis = 0> (base, all1, part1)
  y = Add (sum0, sum1)
}""", [{"x": doubles(6, 4), "expert": np.array(which), "gate": doubles(6), **experts}
       for which in ([0, 1, 1, 0, 1, 0], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1], [2, 1, 2, 0, 2, 2])])

# Chosen rows are read along their axis as well: what was not chosen counts nowhere.
add_trained("sums_of_rows", """
sums (double[5,3] x, bool[5] keep) => (double[3] sum, double[1,3] mean, double[3] largest, double least, double squares, double[3] weighted)
<int64[1] rows = {0}, int64[1] column = {1}>
{
  place = NonZero (keep)
  index = Squeeze (place, rows)
  chosen = Gather (x, index)
  bent = Sigmoid (chosen)
  sum = ReduceSum <keepdims = 0> (bent, rows)
  mean = ReduceMean <keepdims = 1> (bent, rows)
  largest = ReduceMax <keepdims = 0> (bent, rows)
  least = ReduceMin <keepdims = 0> (bent)
  squares = ReduceSumSquare <keepdims = 0> (bent)
  share = Softmax <axis = 0> (bent)
  parts = Mul (share, chosen)
  weighted = ReduceSum <keepdims = 0> (parts, rows)
}""", [{"x": doubles(5, 3), "keep": np.array(keep)} for keep in
       ([True, False, True, True, False], [False, False, True, False, False], [True] * 5)])

add_trained("rows_of_a_condition", """
compress (double[2,5] x, bool[4] keep, double[3,5] z, bool[3] more) => (double[2] sums, double total)
<int64[1] last = {1}>
{
  chosen = Compress <axis = 1> (x, keep)
  turned = Transpose <perm = [1, 0]> (chosen)
  bent = Exp (turned)
  back = Transpose <perm = [1, 0]> (bent)
  sums = ReduceSum <keepdims = 0> (back, last)
  others = Compress <axis = 0> (z, more)
  large = Tanh (others)
  flat = Flatten <axis = 2> (large)
  all = Transpose <perm = [1, 0]> (flat)
  total = ReduceSum <keepdims = 0> (all)
}""", [{"x": doubles(2, 5), "keep": np.array([True, False, False, True]), "z": doubles(3, 5), "more": np.array([False, True, True])},
       {"x": doubles(2, 5), "keep": np.array([False, False, True, False]), "z": doubles(3, 5), "more": np.array([True, False, False])}])

# Elements that a mask of two axes chooses, normalised rows, and the sum of two choices side by side.
add_trained("elements_and_norms", """
elements (double[3,4] x, bool[3,4] mask, bool[3] keep, double[4] scale) => (double[3,4] y, double[4] all)
<int64[1] rows = {0}>
{
  place = NonZero (mask)
  tuple = Transpose <perm = [1, 0]> (place)
  found = GatherND (x, tuple)
  cube = Mul (found, found)
  y = ScatterND (x, tuple, cube)
  kept = Compress <axis = 0> (x, keep)
  norm = LayerNormalization <axis = -1> (kept, scale)
  dropped = Not (keep)
  others = Compress <axis = 0> (x, dropped)
  both = Concat <axis = 0> (norm, others)
  bent = Tanh (both)
  all = ReduceSum <keepdims = 0> (bent, rows)
}""", [{"x": doubles(3, 4), "mask": random.random((3, 4)) < 0.5, "keep": np.array(keep), "scale": doubles(4)}
       for keep in ([True, False, True], [False, False, False])])

# Ids that data chooses, of a table: those that it does not choose name no row.
add_trained("rows_of_a_table", """
lookup (int64[5] ids, bool[5] keep, double[3] scale) => (double[3] sum)
<double[4,3] "bag.weight" = {0.5,-1,2,0.25,1,-0.5,1.5,0.75,-2,0.1,0.2,0.3}, int64[1] first = {0}>
{
  place = NonZero (keep)
  index = Squeeze (place, first)
  some = Gather (ids, index)
  rows = Gather ("bag.weight", some)
  bent = Tanh (rows)
  parts = Mul (bent, scale)
  sum = ReduceSum <keepdims = 0> (parts, first)
}""", [{"ids": integers(4, 5), "keep": np.array(keep), "scale": doubles(3)}
       for keep in ([True, False, True, True, False], [False] * 5)])

# A file that says how many data chooses: all of them, or the first ones.
add_trained("as_many_as_the_file_says", """
split (double[2,3] x, bool[2] both, bool[4] one, double[4,3] z) => (double[3] first, double[3] second, double[3] only)
<int64[2] sizes = {1, 1}, int64[1] single = {1}, int64[1] rows = {0}>
{
  place = NonZero (both)
  a, b = Split <axis = 1> (place, sizes)
  ia = Squeeze (a)
  ib = Squeeze (b)
  ra = Gather (x, ia)
  rb = Gather (x, ib)
  first = Exp (ra)
  second = Neg (rb)
  places = NonZero (one)
  c = Split <axis = 1> (places, single)
  ic = Squeeze (c)
  rc = Gather (z, ic)
  only = Tanh (rc)
}""", [{"x": doubles(2, 3), "both": np.array([True, True]), "one": np.array(one), "z": doubles(4, 3)}
       for one in ([False, False, True, False], [True, False, False, False])])

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




def mixture(dispatch):
    """Two experts between a router and the rows that it sends to each, by `dispatch`: the lines of expert e."""
    lines = "\n".join(dispatch(e) for e in range(2))
    text = f"""
mixture (float[batch,4] x) => (float[batch,2] y)
<int64[1] column = {{1}}>
{{
  scores = MatMul (x, router)
  shares = Softmax <axis = 1> (scores)
  gate = ReduceMax <keepdims = 1> (shares, column)
  expert = ArgMax <axis = 1, keepdims = 0> (scores)
  shape = Shape (x)
  zeros = ConstantOfShape (shape)
{lines}
  sum = Add (sum0, sum1)
  all = Add (x, sum)
  y = MatMul (all, head)
}}"""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]>\n{text}')
    weights = np.random.default_rng(7)
    for name, shape in (("router", (4, 2)), ("wide0", (4, 6)), ("narrow0", (6, 4)), ("wide1", (4, 6)), ("narrow1", (6, 4)), ("head", (4, 2))):
        values = weights.normal(0, 0.6, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.checker.check_model(model)
    return model


def by_rows(e):
    return f"""  number{e} = Constant <value = int64 {{{e}}}> ()
  mask{e} = Equal (expert, number{e})
  place{e} = NonZero (mask{e})
  tuple{e} = Transpose <perm = [1, 0]> (place{e})
  index{e} = Squeeze (tuple{e}, column)
  rows{e} = Gather (x, index{e})
  a{e} = MatMul (rows{e}, wide{e})
  b{e} = Relu (a{e})
  c{e} = MatMul (b{e}, narrow{e})
  own{e} = Gather (gate, index{e})
  part{e} = Mul (c{e}, own{e})
  sum{e} = ScatterND <reduction = "add"> (zeros, tuple{e}, part{e})"""


def by_masks(e):
    return f"""  number{e} = Constant <value = int64 {{{e}}}> ()
  mask{e} = Equal (expert, number{e})
  real{e} = Cast <to = 1> (mask{e})
  factor{e} = Unsqueeze (real{e}, column)
  a{e} = MatMul (x, wide{e})
  b{e} = Relu (a{e})
  c{e} = MatMul (b{e}, narrow{e})
  own{e} = Mul (gate, factor{e})
  sum{e} = Mul (c{e}, own{e})"""


def main():
    for name, dispatch in (("mixture_by_rows", by_rows), ("mixture_by_masks", by_masks)):
        (data / "data_extents" / f"{name}.onnx").write_bytes(mixture(dispatch).SerializeToString())
    for name, text in (("endless", endless), ("huge", huge)):
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]>\n{text}')
        onnx.checker.check_model(model)
        (data / "data_extents" / f"{name}.onnx").write_bytes(model.SerializeToString())
    for name, all in (("data_extents", cases), ("chosen_rows", trained)):
        lines = ",\n".join(json.dumps(case) for case in all)
        to = data / f"{name}.json"
        to.write_text(f"[\n{lines}\n]\n")
        print(f"{name}: {len(all)} cases, {to.stat().st_size} bytes")


if __name__ == "__main__":
    main()
