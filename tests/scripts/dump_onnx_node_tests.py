"""Writes the node tests of the installed onnx package as files: FOLDER/CASE/{model.onnx, test_data_set_0/{input,output}_i.pb}.

    python tests/scripts/dump_onnx_node_tests.py FOLDER [--operators Add,Conv,…]

Without --operators every case is written (1,884 cases with onnx 1.23.2, 9 MB).
"""

import argparse
import pathlib
import warnings

import numpy as np
import onnx
from onnx import numpy_helper


def to_proto(value, info):
    """The protobuf of one input or output, by the type that the model declares."""
    if isinstance(value, onnx.TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    if kind == "tensor_type":
        return numpy_helper.from_array(np.asarray(value), info.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    return numpy_helper.from_optional(value, info.name)


def cases():
    """All node cases; collecting evaluates them, so numpy's warnings are silenced."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return collect_testcases("")


def case_files(case):
    """Yields (path inside the case's folder, bytes)."""
    yield "model.onnx", case.model.SerializeToString()
    for s, (inputs, outputs) in enumerate(case.data_sets):
        for kind, values, infos in (
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ):
            for i, value in enumerate(values):
                yield f"test_data_set_{s}/{kind}_{i}.pb", to_proto(
                    value, infos[i]
                ).SerializeToString()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument(
        "--operators", default="", help="only cases whose graphs hold nothing but these operators"
    )
    options = parser.parse_args()
    wanted = set(filter(None, options.operators.split(",")))
    written = size = 0
    for case in cases():
        if wanted and not {n.op_type for n in case.model.graph.node} <= wanted:
            continue
        for name, data in case_files(case):
            path = options.folder / case.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            size += len(data)
        written += 1
    print(f"onnx {onnx.__version__}: {written} cases, {size} bytes in {options.folder}")


if __name__ == "__main__":
    main()
