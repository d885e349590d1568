"""What the make_model.py scripts share: loading a network's script and both of PyTorch's ONNX exporters."""

import contextlib
import importlib.util
import io
import logging
import pathlib
import warnings

MODELS = pathlib.Path(__file__).resolve().parent
EXPORTERS = ("torchscript", "dynamo")
OPSET = 20


def load(name):
    """The module models/NAME/make_model.py."""
    spec = importlib.util.spec_from_file_location(f"model_{name}", MODELS / name / "make_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _quiet():
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _strip_metadata(proto):
    """Drops stack traces (they hold paths of the exporting machine); module scopes stay."""
    drop = (
        "pkg.torch.onnx.stack_trace",
        "pkg.torch.export.graph_signature",
        "pkg.onnxscript.rewriter.rule_name",
    )
    graphs = [proto.graph]
    while graphs:
        graph = graphs.pop()
        for item in list(graph.node) + list(graph.value_info) + [graph]:
            kept = [p for p in item.metadata_props if p.key not in drop]
            del item.metadata_props[:]
            item.metadata_props.extend(kept)
        for node in graph.node:
            graphs += [a.g for a in node.attribute if a.HasField("g")]


def export(
    model,
    inputs,
    path,
    exporter,
    input_names=("x",),
    output_names=("logits",),
    dynamic=True,
    inline=False,
):
    """Exports `model` (left in train mode, its state unchanged) for training.

    model: torch.nn.Module.
    inputs: tuple of example tensors, batch at axis 0.
    path: the file to write; dynamo puts tensors above 256 bytes into `path`.data unless `inline`.
    exporter: "torchscript" or "dynamo".
    dynamic: True leaves axis 0 of each input free; False fixes it to the example's.
    inline: True writes one file without external data.
    """
    import onnx
    import torch

    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    model.train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    names = dict(
        input_names=list(input_names), output_names=list(output_names), opset_version=OPSET
    )
    with _quiet():
        if exporter == "torchscript":
            scalar = {o for o in output_names if o == "loss"}
            axes = {n: {0: "batch"} for n in (*input_names, *output_names) if n not in scalar}
            torch.onnx.export(
                model,
                inputs,
                str(path),
                dynamo=False,
                training=torch.onnx.TrainingMode.TRAINING,
                do_constant_folding=False,
                dynamic_axes=axes if dynamic else None,
                **names,
            )
        elif exporter == "dynamo":
            shapes = tuple({0: torch.export.Dim("batch")} for _ in inputs) if dynamic else None
            torch.onnx.export(
                model,
                inputs,
                str(path),
                dynamo=True,
                optimize=False,
                dynamic_shapes=shapes,
                external_data=not inline,
                **names,
            )
        else:
            raise ValueError(f"unknown exporter: {exporter}")
    model.load_state_dict(before)
    model.train()
    proto = onnx.load(str(path), load_external_data=inline)
    _strip_metadata(proto)
    path.write_bytes(proto.SerializeToString())
    onnx.checker.check_model(str(path), full_check=True)
    return path


def export_both(name, folder, **kwargs):
    """Writes FOLDER/NAME/torchscript.onnx and dynamo.onnx of models/NAME at full size."""
    import torch

    module = load(name)
    for exporter in EXPORTERS:
        torch.manual_seed(0)
        model, inputs = module.build(), module.example()
        export(
            model,
            inputs,
            pathlib.Path(folder) / name / f"{exporter}.onnx",
            exporter,
            input_names=module.INPUTS,
            output_names=module.OUTPUTS,
            **kwargs,
        )
