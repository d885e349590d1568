"""Writes tests/data/onnx_gradients.json: ONNX operators with PyTorch's results and gradients in double.

    python tests/scripts/onnx_gradients.py

Each case: operator, operator set, attributes, inputs (float64 ones get a gradient, others are settings or indices), PyTorch's
result, a fixed dy, and d sum(dy y) / d input for each float64 input. Numbers come from one seeded generator, rounded to three digits.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

torch.manual_seed(20)
torch.set_default_dtype(torch.float64)
cases = []


def numbers(*shape, low=-1.0, high=1.0):
    return (torch.rand(shape) * (high - low) + low).mul(1000).round().div(1000)


def integers(values):
    return torch.tensor(values, dtype=torch.int64)


def case(name, op, opset, attributes, inputs, function):
    """`function` gets the tensors of `inputs` (None: absent) and gives PyTorch's result."""
    own = [None if x is None else x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    y = function(*own)
    dy = numbers(*y.shape)
    wanted = [x for x in own if x is not None and x.requires_grad]
    gradients = iter(torch.autograd.grad((y * dy).sum(), wanted, allow_unused=True))
    entries = []
    for x in own:
        if x is None:
            entries.append(None)
            continue
        entry = {"shape": list(x.shape), "type": str(x.dtype).removeprefix("torch."), "values": x.detach().flatten().tolist()}
        if x.requires_grad:
            dx = next(gradients)
            entry["gradient"] = (torch.zeros_like(x) if dx is None else dx).flatten().tolist()
        entries.append(entry)
    cases.append(
        {
            "name": name,
            "op": op,
            "opset": opset,
            "attributes": attributes,
            "inputs": entries,
            "shape": list(y.shape),
            "y": y.detach().flatten().tolist(),
            "dy": dy.flatten().tolist(),
        }
    )


def normalizations():
    x, scale, bias = numbers(2, 4, 3, 2), numbers(4), numbers(4)
    case("instance", "InstanceNormalization", 20, {"epsilon": 0.125}, [x, scale, bias],
         lambda x, s, b: F.instance_norm(x, weight=s, bias=b, eps=0.125))
    case("group", "GroupNormalization", 21, {"epsilon": 0.125, "num_groups": 2}, [x, scale, bias],
         lambda x, s, b: F.group_norm(x, 2, s, b, eps=0.125))
    # ONNX's default epsilon; the deviation itself is 1e-9 larger.
    case("mean and variance", "MeanVarianceNormalization", 13, {}, [x],
         lambda x: (x - x.mean((0, 2, 3), True)) / (x.var((0, 2, 3), correction=0, keepdim=True).sqrt() + 1e-9))
    case("neighbours", "LRN", 13, {"size": 3, "alpha": 0.75, "beta": 0.5, "bias": 2.0}, [x],
         lambda x: F.local_response_norm(x, 3, alpha=0.75, beta=0.5, k=2.0))
    for p in (1, 2):
        case(f"norm {p}", "LpNormalization", 20, {"axis": 1, "p": p}, [x], lambda x: F.normalize(x, p, 1, eps=0))


def reductions():
    x = numbers(3, 4, 2)
    over = {"axes": [1], "keepdims": 0}
    with_zeros = x.clone()
    with_zeros[0, 1, 0] = with_zeros[1, 0, 1] = with_zeros[1, 2, 1] = 0
    silent = x.clone()
    silent[1, :, 0] = 0
    case("l1", "ReduceL1", 13, over, [x], lambda x: x.abs().sum(1))
    case("l2", "ReduceL2", 13, over, [silent], lambda x: torch.linalg.vector_norm(x, 2, 1))
    case("squares", "ReduceSumSquare", 13, over, [x], lambda x: x.square().sum(1))
    case("log of sum", "ReduceLogSum", 13, over, [x.abs() + 0.1], lambda x: x.sum(1).log())
    case("log of exponentials", "ReduceLogSumExp", 13, over, [x * 1500], lambda x: x.logsumexp(1))
    case("product", "ReduceProd", 13, {"axes": [1]}, [with_zeros], lambda x: x.prod(1, keepdim=True))
    case("smallest", "ReduceMin", 13, over, [x.round(decimals=1)], lambda x: x.amin(1))
    case("largest", "ReduceMax", 13, over, [x.round(decimals=1)], lambda x: x.amax(1))


def indexing():
    x = numbers(3, 4, 2)
    pairs = integers([[0, 1], [2, -1], [0, 1], [-1, 0]])
    case("rows by pairs", "GatherND", 13, {}, [x, pairs], lambda x, i: x[i[:, 0], i[:, 1]])
    batches = integers([[1], [-1], [3]])
    case("a row of each batch", "GatherND", 13, {"batch_dims": 1}, [x, batches],
         lambda x, i: x[torch.arange(3), i[:, 0]])
    places = integers([[[0, 3], [2, 2]], [[1, 0], [1, 3]]])
    case("elements", "GatherElements", 13, {"axis": 1}, [x, places], lambda x, i: x.gather(1, i))
    updates = numbers(4, 2)
    distinct = integers([[0, 1], [2, -1], [1, 1], [-1, 0]])
    case("rows put", "ScatterND", 18, {}, [x, distinct, updates],
         lambda x, i, u: x.index_put((i[:, 0], i[:, 1]), u))
    case("rows added", "ScatterND", 18, {"reduction": "add"}, [x, pairs, updates],
         lambda x, i, u: x.index_put((i[:, 0], i[:, 1]), u, accumulate=True))
    own = numbers(2, 2, 2)
    once = integers([[[0, 3], [2, 1]], [[1, 0], [3, 2]]])
    case("elements put", "ScatterElements", 18, {"axis": 1}, [x, once, own], lambda x, i, u: x.scatter(1, i, u))
    zeros = x.clone()
    zeros[0, 1, 0] = zeros[1, 2, 0] = 0
    few = numbers(2, 3, 2)
    few[1, 0, 0] = few[0, 0, 0] = 0
    again = integers([[[0, 3], [2, 2], [2, 2]], [[2, 0], [1, 3], [2, 0]]])
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    for reduction, name in names.items():
        case(f"elements {reduction}", "ScatterElements", 18, {"axis": 1, "reduction": reduction}, [zeros, again, few],
             lambda x, i, u, name=name: x.scatter_reduce(1, i, u, name))
    axis = integers(1)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            def running(x, _, exclusive=exclusive, reverse=reverse):
                turned = x.flip(1) if reverse else x
                y = turned.cumsum(1) - (turned if exclusive else 0)
                return y.flip(1) if reverse else y
            case(f"running sum {exclusive}{reverse}", "CumSum", 14, {"exclusive": exclusive, "reverse": reverse}, [x, axis], running)
    for largest in (0, 1):
        case(f"top {largest}", "TopK", 11, {"axis": 1, "largest": largest}, [x, integers([3])],
             lambda x, k, largest=largest: x.topk(3, 1, bool(largest))[0])
    classes, depth = integers([1, 0, -1]), integers([4])
    case("one hot", "OneHot", 11, {}, [classes, depth, numbers(2)],
         lambda i, d, v: torch.where(F.one_hot(i % 4, 4).bool(), v[1], v[0]))
    case("depth to space", "DepthToSpace", 13, {"blocksize": 2, "mode": "CRD"}, [numbers(2, 8, 2, 3)],
         lambda x: F.pixel_shuffle(x, 2))
    case("space to depth", "SpaceToDepth", 13, {"blocksize": 2}, [numbers(1, 2, 4, 2)],
         lambda x: F.pixel_unshuffle(x, 2).reshape(1, 2, 4, 2, 1).transpose(1, 2).reshape(1, 8, 2, 1))


def resizes():
    x = numbers(1, 2, 5, 6)

    def add(name, size, attributes, **options):
        sizes = integers([1, 2, *size])
        case(name, "Resize", 19, attributes, [x, None, None, sizes],
             lambda x, *_: F.interpolate(x, size=size, **options))

    half, corners = "half_pixel", "align_corners"
    for size in ((9, 4), (10, 12)):
        for mode, name in (("linear", "bilinear"), ("cubic", "bicubic")):
            add(f"{mode} {size}", size, {"mode": mode, "coordinate_transformation_mode": half}, mode=name)
            add(f"{mode} corners {size}", size, {"mode": mode, "coordinate_transformation_mode": corners}, mode=name,
                align_corners=True)
        add(f"nearest {size}", size,
            {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, mode="nearest")
    for mode, name in (("linear", "bilinear"), ("cubic", "bicubic")):
        add(f"{mode} antialias", (3, 4), {"mode": mode, "antialias": 1, "exclude_outside": 1, "cubic_coeff_a": -0.5},
            mode=name, antialias=True)


def samples():
    names = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
    for mode, padding, corners, reach in (("linear", "zeros", 0, 1.4), ("linear", "border", 1, 1.4), ("linear", "reflection", 0, 1.4),
                                          ("linear", "reflection", 1, 2.6), ("nearest", "zeros", 0, 1.4), ("cubic", "zeros", 0, 1.4),
                                          ("cubic", "border", 0, 1.4), ("cubic", "reflection", 1, 0.9)):
        x, grid = numbers(2, 2, 3, 4), numbers(2, 3, 2, 2, low=-reach, high=reach)
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        case(f"{mode} {padding} {corners}", "GridSample", 20, attributes, [x, grid],
             lambda x, g: F.grid_sample(x, g, names[mode], padding, bool(corners)))
    case("volume", "GridSample", 20, {}, [numbers(1, 2, 2, 3, 2), numbers(1, 2, 1, 2, 3)],
         lambda x, g: F.grid_sample(x, g, align_corners=False))


def products():
    def convolution(name, x, w, bias, **options):
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[x.dim() - 3]
        n = x.dim() - 2
        attributes = {"group": options.get("groups", 1)}
        for torch_name, onnx_name in (("stride", "strides"), ("padding", "pads"), ("dilation", "dilations"),
                                      ("output_padding", "output_padding")):
            if torch_name in options:
                value = options[torch_name]
                value = list(value) if isinstance(value, tuple) else [value] * n
                attributes[onnx_name] = value + value if onnx_name == "pads" else value
        case(name, "ConvTranspose", 11, attributes, [x, w, bias], lambda x, w, b: function(x, w, b, **options))

    convolution("line", numbers(2, 3, 4), numbers(3, 2, 3), numbers(2), stride=2, padding=1, output_padding=1)
    convolution("plane", numbers(1, 4, 3, 2), numbers(4, 2, 2, 3), numbers(4), stride=(2, 1), groups=2, dilation=(1, 2))
    convolution("volume", numbers(1, 2, 2, 3, 2), numbers(2, 1, 2, 2, 1), numbers(1), stride=(1, 2, 2), padding=(1, 0, 0))
    for equation, shapes in (
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
        ("bhid,bhjd->bhij", [(2, 2, 3, 2), (2, 2, 4, 2)]),
        ("bhwc,hkc->bhwk", [(1, 3, 2, 4), (3, 5, 4)]),
        ("...ij,jk->...ik", [(2, 1, 2, 3), (3, 2)]),
        ("i,j,ij->", [(3,), (4,), (3, 4)]),
        ("ijk->ki", [(2, 3, 2)]),
        ("bii,bi->b", [(2, 3, 3), (2, 3)]),
        ("ab,cb,db->acd", [(2, 3), (2, 3), (4, 3)]),
    ):
        case(equation, "Einsum", 12, {"equation": equation}, [numbers(*s) for s in shapes],
             lambda *xs, equation=equation: torch.einsum(equation, *xs))


def main():
    for part in (normalizations, reductions, indexing, resizes, products, samples):
        part()
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "onnx_gradients.json"
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    path.write_text('{"cases":[\n' + lines + "\n]}\n")
    print(len(cases), "cases,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
