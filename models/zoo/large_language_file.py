"""Writes a decoder of any size with random weights, as onnxruntime-genai's builder does, without ever holding all of it.

    python models/zoo/large_language_file.py FOLDER --size 7b [--bits 4|32] [--block 32] [--layers N]

FOLDER gets model.onnx and model.onnx.data. Weights of products are MatMulNBits of 4 bits with float16-sized blocks, or MatMul of float32; the rest is
float32. Random codes of 4 bits, and scales that give the weights a standard deviation of 0.02.
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper

# hidden, intermediate, layers, heads, heads of keys, vocabulary
SIZES = {
    "7b": (4096, 11008, 32, 32, 32, 32000),
    "1b": (2048, 5632, 22, 32, 4, 32000),
    "small": (256, 512, 2, 4, 2, 1000),
}
ALIGNMENT = 4096
POSITIONS = 2048


class Writer:
    def __init__(self, folder, bits, block):
        self.file = open(folder / "model.onnx.data", "wb")
        self.bits, self.block = bits, block
        self.random = np.random.default_rng(1)
        self.initializers, self.nodes = [], []

    def tensor(self, name, array):
        """Puts the array behind the file's end."""
        self.file.write(b"\0" * (-self.file.tell() % ALIGNMENT))
        tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(array.dtype), dims=array.shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "model.onnx.data"), ("offset", self.file.tell()), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        array.tofile(self.file)
        self.initializers.append(tensor)
        return name

    def normal(self, name, *shape):
        return self.tensor(name, (0.02 * self.random.standard_normal(shape, np.float32)).astype(np.float32))

    def ones(self, name, size):
        return self.tensor(name, np.ones(size, np.float32))

    def node(self, op, name, inputs, outputs, domain="com.microsoft", **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, name, domain=domain, **attributes))
        return outputs[0]

    def product(self, module, x, size, width):
        name, y = module.replace("/", ".").strip("."), module + "/MatMul/output_0"
        if self.bits == 32:
            return self.node("MatMul", module + "/MatMul", [x, self.normal(name + ".MatMul.weight", size, width)], [y], "")
        blocks = size // self.block
        codes = self.random.integers(0, 256, (width, blocks, self.block // 2), np.uint8)
        deviation = np.sqrt((16**2 - 1) / 12)  # that codes of 4 bits have
        scales = np.full((width, blocks), 0.02 / deviation, np.float32)
        inputs = [x, self.tensor(name + ".MatMul.weight_Q4", codes), self.tensor(name + ".MatMul.weight_scales", scales)]
        return self.node("MatMulNBits", module + "/MatMul_Q4", inputs, [y], K=size, N=width, bits=4, block_size=self.block)


def write(folder, size, bits, block, layers):
    hidden, wide, count, heads, groups, vocabulary = SIZES[size]
    head = hidden // heads
    folder.mkdir(parents=True, exist_ok=True)
    to = Writer(folder, bits, block)
    angle = np.outer(np.arange(POSITIONS), 10000.0 ** (-np.arange(0, head, 2) / head))
    tables = [to.tensor(name, f(angle).astype(np.float32)) for name, f in (("cos_cache", np.cos), ("sin_cache", np.sin))]
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    to.initializers.append(one)
    last = helper.make_tensor("last", TensorProto.INT64, [], [1])
    to.initializers.append(last)
    to.node("ReduceSum", "/mask/sum", ["attention_mask", "one"], ["sums"], "", keepdims=0)
    to.node("Sub", "/mask/less", ["sums", "one"], ["sums_less"], "")
    to.node("Cast", "/mask/ends", ["sums_less"], ["ends"], "", to=TensorProto.INT32)
    to.node("Shape", "/mask/shape", ["attention_mask"], ["mask_shape"], "")
    to.node("Gather", "/mask/total", ["mask_shape", "last"], ["total_long"], "", axis=0)
    to.node("Cast", "/mask/total_short", ["total_long"], ["total"], "", to=TensorProto.INT32)
    x = to.node("Gather", "/model/embed_tokens/Gather", [to.normal("model.embed_tokens.weight", vocabulary, hidden), "input_ids"], ["embedded"], "")
    skip = ""
    for layer in range(layers or count):
        module = f"/model/layers.{layer}"
        norm = to.ones(f"model.layers.{layer}.input_layernorm.weight", hidden)
        if layer == 0:
            y = to.node("SimplifiedLayerNormalization", module + "/input_layernorm", [x, norm], [module + "/n0"], "", epsilon=1e-5, axis=-1, stash_type=1)
        else:
            y = to.node("SkipSimplifiedLayerNormalization", module + "/input_layernorm", [x, skip, norm], [module + "/n0", "", "", module + "/s0"], epsilon=1e-5)
            x = module + "/s0"
        parts = [to.product(f"{module}/attn/{name}_proj", y, hidden, n * head) for name, n in (("q", heads), ("k", groups), ("v", groups))]
        y = to.node("GroupQueryAttention", module + "/attn/GroupQueryAttention", [*parts, "", "", "ends", "total", *tables], [module + "/a"],
                    num_heads=heads, kv_num_heads=groups, do_rotary=1)
        y = to.product(module + "/attn/o_proj", y, hidden, hidden)
        norm = to.ones(f"model.layers.{layer}.post_attention_layernorm.weight", hidden)
        y = to.node("SkipSimplifiedLayerNormalization", module + "/post_attention_layernorm", [x, y, norm], [module + "/n1", "", "", module + "/s1"], epsilon=1e-5)
        x = module + "/s1"
        gate, up = (to.product(f"{module}/mlp/{name}_proj", y, hidden, wide) for name in ("gate", "up"))
        to.node("Sigmoid", module + "/mlp/act_fn/Sigmoid", [gate], [module + "/sigmoid"], "")
        to.node("Mul", module + "/mlp/act_fn/Mul", [gate, module + "/sigmoid"], [module + "/swish"], "")
        y = to.node("Mul", module + "/mlp/Mul", [module + "/swish", up], [module + "/gated"], "")
        skip = to.product(module + "/mlp/down_proj", y, wide, hidden)
    norm = to.ones("model.norm.weight", hidden)
    y = to.node("SkipSimplifiedLayerNormalization", "/model/norm", [x, skip, norm], ["normed"], epsilon=1e-5)
    to.node("Identity", "/logits", [to.product("/lm_head", y, hidden, vocabulary)], ["logits"], "")
    to.file.close()
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        to.nodes, size,
        [value(n, TensorProto.INT64, ["batch_size", "sequence_length"]) for n in ("input_ids", "attention_mask")],
        [value("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", vocabulary])], to.initializers)
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=sets, producer_name="large_language_file"), folder / "model.onnx")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--size", choices=SIZES, default="7b")
    parser.add_argument("--bits", type=int, choices=(4, 32), default=4)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--layers", type=int, help="default: those of the size")
    options = parser.parse_args()
    write(options.folder, options.size, options.bits, options.block, options.layers)


if __name__ == "__main__":
    main()
