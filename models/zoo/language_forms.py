"""Writes a language model as the tools of the hub do: by optimum-onnx, by onnxruntime's converters, by the builder of onnxruntime-genai."""

import subprocess
import sys

import onnx
from optimum.exporters.onnx import export, onnx_export_from_model
from optimum.exporters.tasks import TasksManager
from optimum.onnx import merge_decoders

OPSET = 18


def fp32(model, folder):
    """`optimum-cli export onnx --task text-generation`."""
    onnx_export_from_model(model, folder, task="text-generation", opset=OPSET, do_validation=False)


def with_past(model, folder):
    """`optimum-cli export onnx --task text-generation-with-past`: reads and writes a cache."""
    onnx_export_from_model(model, folder, task="text-generation-with-past", opset=OPSET, do_validation=False)


def merged(model, folder):
    """decoder_model_merged.onnx: an If over a file without a cache and one with it, as transformers.js reads."""
    make = TasksManager.get_exporter_config_constructor(
        "onnx", model, task="text-generation", library_name="transformers"
    )
    halves = folder / "decoder.onnx", folder / "with_past.onnx"
    for path, reads in zip(halves, (False, True)):
        export(model, make(model.config, use_past=True, use_past_in_inputs=reads), path, opset=OPSET)
    merge_decoders(*halves, save_path=folder / "model.onnx")
    for path in halves:
        path.unlink()


def converted(convert):
    """A form that is made of the file of `fp32`."""

    def write(model, folder):
        fp32(model, folder)
        convert(folder / "model.onnx")

    return write


def to_fp16(path):
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(path), keep_io_types=True), path)


def to_int8(path):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(path, path, weight_type=QuantType.QInt8)


def to_int4(path):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    made = MatMulNBitsQuantizer(onnx.load(path), block_size=32, is_symmetric=False)
    made.process()
    if not any(node.op_type == "MatMulNBits" for node in made.model.model.graph.node):
        raise RuntimeError("MatMulNBitsQuantizer leaves the file as it is: its weights are those of Gemm")
    onnx.save(made.model.model, path)


def genai(precision):
    """`python -m onnxruntime_genai.models.builder`, which reads the folder that `save_pretrained` writes.

    Without its option it joins the projections of queries, keys and values, which PEFT cannot adapt together.
    """

    def write(model, folder):
        source = folder / "source"
        model.save_pretrained(source)
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            (source / name).write_bytes((folder / name).read_bytes())
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder"]
        command += ["-m", "", "-i", source, "-o", folder, "-p", precision, "-e", "cpu", "-c", folder / "cache"]
        command += ["--extra_options", "disable_qkv_fusion=true"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])

    return write


FORMS = {
    "fp32": fp32,
    "fp16": converted(to_fp16),
    "with past": with_past,
    "merged": merged,
    "int8": converted(to_int8),
    "int4": converted(to_int4),
    "genai fp32": genai("fp32"),
    "genai int4": genai("int4"),
}
