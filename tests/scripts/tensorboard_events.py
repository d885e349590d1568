"""Writes tests/data/tensorboard/expected.json: TensorBoard's events as Protocol Buffers write them, and histograms as NumPy counts them.

    python tests/scripts/tensorboard_events.py

`events`: NAME -> the bytes of a message Event, in hexadecimal. The messages are declared here with the names and numbers that
tensorflow/core/util/event.proto, summary.proto, graph.proto, node_def.proto, attr_value.proto and tensor_shape.proto give their fields.
`histograms`: values, and the buckets that numpy.histogram counts between ±1e-12 · 1.1^k, joined as TensorFlow's Histogram::EncodeToProto does.
`rfc3720`: the examples of RFC 3720, appendix B.4, which check the checksum below, and masked checksums of some texts.
"""

import json
import pathlib
import sys

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FILE = pathlib.Path(__file__).resolve().parent.parent / "data" / "tensorboard" / "expected.json"
Field = descriptor_pb2.FieldDescriptorProto
TYPES = {"double": Field.TYPE_DOUBLE, "float": Field.TYPE_FLOAT, "int64": Field.TYPE_INT64, "string": Field.TYPE_STRING, "bytes": Field.TYPE_BYTES,
         "int32": Field.TYPE_INT32}
MESSAGES = {
    "Event": ["wall_time double 1", "step int64 2", "file_version string 3 what", "graph_def bytes 4 what", "summary Summary 5 what",
              "session_log SessionLog 7 what"],
    "SessionLog": ["status int32 1"],  # an enum in the original; the same bytes
    "Summary": ["value Value 1 *"],
    "Value": ["tag string 1", "simple_value float 2 value", "histo HistogramProto 5 value"],
    "HistogramProto": ["min double 1", "max double 2", "num double 3", "sum double 4", "sum_squares double 5", "bucket_limit double 6 *",
                       "bucket double 7 *"],
    "GraphDef": ["node NodeDef 1 *", "versions VersionDef 4"],
    "VersionDef": ["producer int32 1"],
    "NodeDef": ["name string 1", "op string 2", "input string 3 *", "attr Entry 5 *"],
    "Entry": ["key string 1", "value AttrValue 2"],  # an entry of the map `attr`
    "AttrValue": ["list ListValue 1"],
    "ListValue": ["shape TensorShapeProto 7 *"],
    "TensorShapeProto": ["dim Dim 2 *"],
    "Dim": ["size int64 1"],
}


def classes():
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields:
            field_name, kind, number, *more = text.split()
            field = message.field.add(name=field_name, number=int(number), label=Field.LABEL_REPEATED if more == ["*"] else Field.LABEL_OPTIONAL)
            if kind in TYPES:
                field.type = TYPES[kind]
            else:
                field.type, field.type_name = Field.TYPE_MESSAGE, f".t.{kind}"
            if more and more != ["*"]:  # a field of a oneof
                if not message.oneof_decl:
                    message.oneof_decl.add(name=more[0])
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"t.{name}")) for name in MESSAGES}


def limits():
    above, limit = [], 1e-12
    while limit < 1e20:
        above.append(limit)
        limit *= 1.1
    above.append(sys.float_info.max)
    return np.array([-x for x in reversed(above)] + [0.0] + above)


def histogram(values):
    edges = limits()
    counts = np.histogram(np.array(values), bins=np.concatenate(([-np.inf], edges)))[0]
    buckets = []
    i = 0
    while i < len(edges):  # TensorFlow: of empty buckets that stand together the last one alone
        limit, count = edges[i], counts[i]
        i += 1
        if count <= 0:
            while i < len(edges) and counts[i] <= 0:
                limit = edges[i]
                i += 1
        buckets.append([float(limit), float(count)])
    if len(buckets) > 1 and buckets[-1][1] == 0:
        buckets.pop()
    return {"values": values, "least": min(values), "greatest": max(values), "sum": float(np.sum(values)),
            "sum_of_squares": float(np.sum(np.square(values))), "buckets": buckets}


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def masked(data):
    value = crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def rfc3720():
    read_10 = bytes.fromhex("01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018 28000000 00000000 02000000 00000000")
    examples = {bytes(32): "aa36918a", b"\xff" * 32: "43aba862", bytes(range(32)): "4e79dd46", bytes(reversed(range(32))): "5cdb3f11",
                read_10: "563a96d9"}
    rows = []
    for data, sent in examples.items():
        value = int.from_bytes(bytes.fromhex(sent), "little")  # the RFC lists the bytes as they are sent
        assert crc32c(data) == value
        rows.append({"bytes": data.hex(), "crc": value, "masked": masked(data)})
    return rows


def main():
    c = classes()

    def shapes(*all_shapes):
        shape_list = c["ListValue"](shape=[c["TensorShapeProto"](dim=[c["Dim"](size=n) for n in shape]) for shape in all_shapes])
        return [c["Entry"](key="_output_shapes", value=c["AttrValue"](list=shape_list))]

    def node(name, op, inputs, shape):
        return c["NodeDef"](name=name, op=op, input=inputs, attr=shapes(shape))

    graph = c["GraphDef"](
        node=[
            node("x", "Placeholder", [], [2, 3]),
            node("blocks/0/fc/weight", "Parameter", [], [3, 4]),
            node("blocks/0/fc/MatMul", "MatMul", ["x", "blocks/0/fc/weight"], [2, 4]),
            node("blocks/0/act/Relu", "Relu", ["blocks/0/fc/MatMul"], [2, 4]),
            node("blocks/0/act/Relu_1", "Relu", ["blocks/0/act/Relu"], [2, 4]),
        ],
        versions=c["VersionDef"](producer=1))
    numbers = [-2.5, -0.125, 0.0, 1e-13, 0.5, 0.5, 3.0, 1e21]
    found = histogram(numbers)
    proto = c["HistogramProto"](min=found["least"], max=found["greatest"], num=len(numbers), sum=found["sum"], sum_squares=found["sum_of_squares"],
                                bucket_limit=[b[0] for b in found["buckets"]], bucket=[b[1] for b in found["buckets"]])
    wall = 1760000000.25

    def event(**fields):
        return c["Event"](wall_time=wall, **fields).SerializeToString(deterministic=True).hex()

    values = [c["Value"](tag="train/loss", simple_value=0.75), c["Value"](tag="train/lr", simple_value=0.001)]
    expected = {
        "wall": wall,
        "events": {
            "version": event(file_version="brain.Event:2"),
            "start": event(step=301, session_log=c["SessionLog"](status=1)),
            "scalars": event(step=300, summary=c["Summary"](value=values)),
            "histogram": event(step=7, summary=c["Summary"](value=[c["Value"](tag="weights/fc1:weight", histo=proto)])),
            "graph": event(graph_def=graph.SerializeToString(deterministic=True)),
        },
        "graph": graph.SerializeToString(deterministic=True).hex(),
        "histograms": [found, histogram([0.25]), histogram([-1.0, -1.0, -3.0]), histogram([1.5 * k - 20 for k in range(40)])],
        "rfc3720": rfc3720(),
    }
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(expected, indent=1) + "\n")


main()
