"""Writes the ONNX file of a small dense network, byte by byte: the tests need no package for it."""

import numpy


def dense_network(path, weights, hidden="h"):
    """x [batch, inputs] -> Gemm -> Relu -> Gemm -> y. Weights w1 [hidden, inputs], b1, w2 [outputs, hidden], b2."""
    nodes = [
        _node("Gemm", ["x", "w1", "b1"], hidden, transB=1),
        _node("Relu", [hidden], "r"),
        _node("Gemm", ["r", "w2", "b2"], "y", transB=1),
    ]
    graph = b"".join(_bytes(1, node) for node in nodes) + _bytes(2, b"dense")
    graph += b"".join(_bytes(5, _tensor(name, value)) for name, value in weights.items())
    graph += _bytes(11, _port("x", weights["w1"].shape[1])) + _bytes(12, _port("y", weights["w2"].shape[0]))
    path.write_bytes(_number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 17)))
    return path


def _varint(value):
    result = b""
    while value >= 128:
        result += bytes([value % 128 + 128])
        value //= 128
    return result + bytes([value])


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, content):
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field, text):
    return _bytes(field, text.encode())


def _node(op, inputs, output, **integers):
    node = b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(3, output + "_node") + _text(4, op)
    return node + b"".join(_bytes(5, _text(1, name) + _number(3, v) + _number(20, 2)) for name, v in integers.items())


def _tensor(name, value):
    dims = b"".join(_number(1, extent) for extent in value.shape)
    return dims + _number(2, 1) + _text(8, name) + _bytes(9, value.astype(numpy.float32).tobytes())


def _port(name, extent):
    shape = _bytes(1, _text(2, "batch")) + _bytes(1, _number(1, extent))
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, 1) + _bytes(2, shape)))
