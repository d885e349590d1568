"""Single nodes with onnxruntime's results, for the scripts that write such cases of one domain."""

import json
import pathlib

import onnx
import onnxruntime
from onnx import helper


class NodeCases:
    """The cases of `domain` in its operator set of that version.

    Each case: operator, domain, operator set of ai.onnx, attributes, inputs and outputs (null: absent).
    """

    def __init__(self, domain, version):
        self.domain, self.version, self.cases = domain, version, []

    def add(self, name, op, inputs, attributes=None, outputs=1, domain=None, opset=17, result=None):
        """`outputs`: how many, or a list of those that are asked for. `result`: for an operator that onnxruntime has only for GPUs."""
        domain = self.domain if domain is None else domain
        attributes = attributes or {}
        wanted = [True] * outputs if isinstance(outputs, int) else outputs
        names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
        results = [f"y{i}" if w else "" for i, w in enumerate(wanted)]
        node = helper.make_node(op, names, results, domain=domain, **attributes)
        feeds = {n: x for n, x in zip(names, inputs) if x is not None}
        graph = helper.make_graph(
            [node], "g",
            [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()],
            [onnx.ValueInfoProto(name=r) for r in results if r])
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(self.domain, self.version)])
        if result is not None:
            self._keep(name, op, domain, opset, attributes, inputs, [result])
            return
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        values = iter(session.run([r for r in results if r], feeds))
        self._keep(name, op, domain, opset, attributes, inputs, [next(values) if w else None for w in wanted])

    def _keep(self, name, op, domain, opset, attributes, inputs, outputs):
        def number(x, v):
            return float(str(v)) if x.dtype.kind == "f" else int(v)

        def entry(x):
            if x is not None and x.dtype.kind in "OU":
                return "text"
            return None if x is None else {"shape": list(x.shape), "type": str(x.dtype), "values": [number(x, v) for v in x.flatten()]}

        self.cases.append({"name": name, "op": op, "domain": domain, "opset": opset, "attributes": attributes,
                           "inputs": [entry(x) for x in inputs], "outputs": [entry(y) for y in outputs]})

    def write(self, file):
        path = pathlib.Path(__file__).resolve().parents[1] / "data" / file
        lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in self.cases)
        path.write_text('{"cases":[\n' + lines + "\n]}\n")
        print(len(self.cases), "cases,", path.stat().st_size, "bytes")
