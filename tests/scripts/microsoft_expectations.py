"""Writes tests/data/microsoft_operators.json: operators of com.microsoft with onnxruntime's results.

    python tests/scripts/microsoft_expectations.py

Each case: operator, domain, operator set of ai.onnx, attributes, inputs and outputs (null: absent). onnxruntime computes in float32, without
optimising the one node (node_cases.py). Numbers come from one seeded generator.
"""

import numpy as np
from node_cases import NodeCases

random = np.random.default_rng(7)
cases = NodeCases("com.microsoft", 1)
case = cases.add


def numbers(*shape):
    return random.uniform(-1, 1, shape).round(3).astype(np.float32)


def integers(values, kind=np.int32):
    return np.array(values, kind)


def elementwise():
    x, bias = 3 * numbers(2, 3, 4), numbers(4)
    case("plain", "Gelu", [x])
    case("bias", "BiasGelu", [x, bias])
    case("plain", "FastGelu", [x])
    case("bias", "FastGelu", [x, bias])
    skip = numbers(2, 3, 4)
    case("sum", "BiasAdd", [x, bias, skip], result=x + bias + skip)
    case("default", "QuickGelu", [x])
    case("alpha", "QuickGelu", [x], {"alpha": 0.5})


def products():
    case("alpha", "FusedMatMul", [numbers(3, 2, 4), numbers(4, 5)], {"alpha": 0.25})
    case("transposed", "FusedMatMul", [numbers(3, 4, 2), numbers(3, 5, 4)], {"transA": 1, "transB": 1})
    case("batch behind", "FusedMatMul", [numbers(2, 3, 4), numbers(3, 4, 5)], {"transBatchA": 1})
    case("batch behind, transposed", "FusedMatMul", [numbers(4, 2, 3, 2), numbers(5, 2, 3, 4)],
         {"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1, "alpha": 2.0})
    case("transposed", "TransposeMatMul", [numbers(2, 4), numbers(4, 5)], {"transB": 0})
    a, b, c = numbers(2, 4), numbers(3, 4), numbers(3)
    for activation, extra in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_alpha": 0.25})):
        case(activation, "FusedGemm", [a, b, c], {"transB": 1, "alpha": 0.5, "activation": activation, **extra})
    x, w, bias = numbers(1, 4, 5, 5), numbers(4, 2, 3, 3), numbers(4)
    common = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "group": 2}
    for activation, extra in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_params": [0.25]}),
                              ("Clip", {"activation_params": [-0.5, 0.75]}), ("HardSigmoid", {"activation_params": [0.3, 0.4]})):
        case(activation, "FusedConv", [x, w, bias], {**common, "activation": activation, **extra})
    case("sum", "FusedConv", [x, w, bias, numbers(1, 4, 5, 5)], {**common, "activation": "Relu"})


def normalizations():
    x, skip, scale, shift, bias = numbers(2, 3, 4), numbers(2, 3, 4), numbers(4), numbers(4), numbers(4)
    case("before 17", "LayerNormalization", [x, scale, shift], {"axis": -1, "epsilon": 1e-3}, 1, "", 14)
    case("root mean square", "SimplifiedLayerNormalization", [x, scale], {"axis": -1, "epsilon": 1e-3, "stash_type": 1}, 1, "", 14)
    case("all", "SkipLayerNormalization", [x, skip, scale, shift, bias], {"epsilon": 1e-3}, [True, False, False, True])
    case("few", "SkipLayerNormalization", [x, skip, scale])
    case("broadcast", "SkipLayerNormalization", [x, skip[:1], scale, shift], {"epsilon": 1e-3})
    case("all", "SkipSimplifiedLayerNormalization", [x, skip, scale, bias], {"epsilon": 1e-3}, [True, False, False, True])
    case("few", "SkipSimplifiedLayerNormalization", [x, skip, scale])
    ids, segments = integers([[1, 4, 0], [2, 2, 3]]), integers([[0, 0, 1], [1, 0, 0]])
    words, places, kinds = numbers(5, 4), numbers(3, 4), numbers(2, 4)
    mask = integers([[1, 1, 0], [1, 1, 1]])
    case("all", "EmbedLayerNormalization", [ids, segments, words, places, kinds, scale, shift, mask], {"epsilon": 1e-3}, 3)
    case("positions", "EmbedLayerNormalization", [ids, None, words, places, None, scale, shift, None, integers([[2, 0, 1], [0, 1, 2]])],
         {"epsilon": 1e-3}, [True, True])


def attentions():
    x, w, b = numbers(2, 3, 4), numbers(4, 12), numbers(12)
    heads = {"num_heads": 2}
    case("plain", "Attention", [x, w, b], heads)
    case("mask of keys", "Attention", [x, w, b, integers([[1, 1, 0], [1, 1, 1]])], {**heads, "mask_filter_value": -1000.0})
    case("mask of scores", "Attention", [x, w, b, integers([[[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1, 1, 0], [0, 1, 0], [0, 1, 1]]])], heads)
    case("lengths", "Attention", [x, w, b, integers([2, 3])], heads)
    case("causal", "Attention", [x, w, b], {**heads, "unidirectional": 1, "scale": 0.3})
    case("added scores", "Attention", [x, w, b, None, None, numbers(1, 2, 3, 3)], heads)
    case("sizes", "Attention", [x, numbers(4, 14), numbers(14)], {**heads, "qkv_hidden_sizes": [4, 4, 6]})
    case("earlier keys", "Attention", [x, w, b, None, numbers(2, 2, 2, 1, 2)], {**heads, "unidirectional": 1}, 2)
    q, k, v = numbers(2, 3, 4), numbers(2, 5, 4), numbers(2, 5, 6)
    case("plain", "MultiHeadAttention", [q, k, v], heads)
    case("bias and mask", "MultiHeadAttention", [q, k, v, numbers(14), integers([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]])], heads)
    case("added scores", "MultiHeadAttention", [q, k, v, None, None, numbers(2, 2, 3, 5)], {**heads, "scale": 0.4})
    case("causal", "MultiHeadAttention", [q, k[:, :3], v[:, :3]], {**heads, "unidirectional": 1})
    case("keys with heads", "MultiHeadAttention", [q, numbers(2, 2, 5, 2), numbers(2, 2, 5, 2)], heads)
    case("earlier keys", "MultiHeadAttention", [q, k[:, :3], v[:, :3, :4], None, None, None, numbers(2, 2, 2, 2), numbers(2, 2, 2, 2)], heads, 3)
    q, k, v = numbers(2, 3, 64), numbers(2, 3, 32), numbers(2, 3, 32)
    groups = {"num_heads": 4, "kv_num_heads": 2}
    ends = [integers([2, 2]), integers(3)]
    table = [numbers(4, 8), numbers(4, 8)]
    case("plain", "GroupQueryAttention", [q, k, v, None, None, *ends], groups, 3)
    case("packed", "GroupQueryAttention", [np.concatenate((q, k, v), 2), None, None, None, None, *ends], {**groups, "scale": 0.2}, 3)
    case("rotary", "GroupQueryAttention", [q, k, v, None, None, *ends, *table], {**groups, "do_rotary": 1}, 3)
    case("rotary interleaved, window", "GroupQueryAttention", [q, k, v, None, None, *ends, *table],
         {**groups, "do_rotary": 1, "rotary_interleaved": 1, "local_window_size": 2}, 3)
    case("softcap", "GroupQueryAttention", [q, k, v, None, None, *ends], {**groups, "softcap": 0.5}, 3)
    case("added scores", "GroupQueryAttention", [q, k, v, None, None, *ends, None, None, None, numbers(1, 4, 3, 3)], groups, 3)
    x = numbers(2, 3, 16)
    case("first position", "RotaryEmbedding", [x, integers([1], np.int64), numbers(5, 4), numbers(5, 4)])
    case("positions", "RotaryEmbedding", [numbers(2, 2, 3, 8), integers([[0, 1, 2], [4, 3, 2]], np.int64), numbers(5, 4), numbers(5, 4)],
         {"interleaved": 1})
    case("part of a head", "RotaryEmbedding", [x, integers([0], np.int64), numbers(5, 2), numbers(5, 2)],
         {"num_heads": 2, "rotary_embedding_dim": 4})


def packed():
    def codes(*shape):
        return random.integers(0, 256, shape).astype(np.uint8)

    def scales(*shape):
        return random.uniform(0.01, 0.1, shape).round(4).astype(np.float32)

    n, k, block = 2, 32, 16
    shape = {"N": n, "K": k, "block_size": block}
    x, bias = numbers(1, k), numbers(n)
    case("4 bits", "MatMulNBits", [x, codes(n, 2, 8), scales(n, 2)], {**shape, "bits": 4})
    case("4 bits, zero points and bias", "MatMulNBits", [x, codes(n, 2, 8), scales(n, 2), codes(n, 1), None, bias], {**shape, "bits": 4})
    case("4 bits, zero points as floats", "MatMulNBits", [x, codes(n, 2, 8), scales(n, 2), numbers(n, 2) + 8], {**shape, "bits": 4})
    case("8 bits, zero points", "MatMulNBits", [x, codes(n, 2, 16), scales(n, 2), codes(n, 2)], {**shape, "bits": 8})
    case("2 bits", "MatMulNBits", [x, codes(n, 2, 4), scales(n, 2)], {**shape, "bits": 2})
    case("a short last block", "MatMulNBits", [numbers(1, 40), codes(n, 3, 8), scales(n, 3)], {**shape, "K": 40, "bits": 4})
    for name, kind in (("fp4", 0), ("nf4", 1)):
        case(name, "MatMulBnb4", [x, codes(n * k // 2), scales(n * 2)], {**shape, "quant_type": kind})
    ids = integers([[2, 0]], np.int64)
    case("4 bits", "GatherBlockQuantized", [codes(3, 16), ids, scales(3, 2)], {"bits": 4, "block_size": 16})
    case("4 bits, zero points", "GatherBlockQuantized", [codes(3, 16), ids, scales(3, 2), codes(3, 1)], {"bits": 4, "block_size": 16})
    case("8 bits", "GatherBlockQuantized", [codes(3, 32), ids, scales(3, 2)], {"bits": 8, "block_size": 16})


def main():
    for part in (elementwise, products, normalizations, attentions, packed):
        part()
    cases.write("microsoft_operators.json")


if __name__ == "__main__":
    main()
