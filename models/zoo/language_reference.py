"""Computes the losses that PyTorch with PEFT gives to a language model over the weights that its file holds."""

import numpy as np
import onnx
import onnxruntime
import peft
import torch
from safetensors.torch import load_file

from language_shapes import POSITIONS

IGNORED = -100


def samples(tokenizer, conversations):
    """The ids, labels and masks of the conversations, [count, POSITIONS], as transformers' own template marks answers."""
    shape = len(conversations), POSITIONS
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    labels = np.full(shape, IGNORED, np.int64)
    for row, conversation in enumerate(conversations):
        made = tokenizer.apply_chat_template(
            conversation["messages"], tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        count = min(len(made["input_ids"]), POSITIONS)
        ids[row, :count] = made["input_ids"][:count]
        mask[row, :count] = 1
        learned = np.array(made["assistant_masks"][:count], bool)
        labels[row, :count][learned] = ids[row, :count][learned]
    return torch.from_numpy(ids), torch.from_numpy(mask), torch.from_numpy(labels)


def module_of(node_name):
    """"model.layers.0.self_attn.q_proj" of the node "/model/layers.0/self_attn/q_proj/MatMul_Q4"."""
    name = ".".join(node_name.strip("/").split("/")[:-1])
    return name.replace(".attn.", ".self_attn.") if name.startswith("model.layers") else name  # as onnxruntime-genai calls it


def nbits_weight(node, model):
    """The matrix [in, out] of a MatMulNBits, which onnxruntime multiplies by the unit matrix."""
    tensors = {t.name: t for t in model.graph.initializer}
    size = next(a.i for a in node.attribute if a.name == "K")
    value = lambda name, rows: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, rows)
    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    alone.input[0], alone.output[0] = "x", "y"
    graph = onnx.helper.make_graph(
        [alone], "one", [value("x", [size, size])], [value("y", None)], [tensors[n] for n in node.input[1:] if n]
    )
    domains = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    made = onnx.helper.make_model(graph, opset_imports=domains, ir_version=9)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.eye(size, dtype=np.float32)})[0]


def dequantized(codes, scale, zero_point):
    return (codes.astype(np.float32) - zero_point.astype(np.float32)) * scale


def quantized_weights(path):
    """What the packed weights of a file stand for, by module: matrices [in, out] of products, tables [rows, width]."""
    model = onnx.load(path)
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    found = {}
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            found[module_of(node.name)] = nbits_weight(node, model)
        elif node.op_type == "MatMulInteger" and node.input[1] in arrays:
            name = node.input[1].removesuffix("_quantized")
            found[module_of(node.name)] = dequantized(arrays[node.input[1]], arrays[name + "_scale"], arrays[name + "_zero_point"])
        elif node.op_type == "Gather" and node.input[0].endswith("_quantized"):
            name = node.input[0].removesuffix("_quantized")
            table = dequantized(arrays[node.input[0]], arrays[name + "_scale"], arrays[name + "_zero_point"])
            found[name.removesuffix(".weight")] = table
    return found


def joined(weights, modules):
    """onnxruntime-genai splits the joined projections of Phi-3, whose modules have their columns side by side."""
    for whole, parts in {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}.items():
        for name in [name for name in weights if name not in modules and name.endswith(parts[0])]:
            names = [name.removesuffix(parts[0]) + part for part in parts]
            weights[name.removesuffix(parts[0]) + whole] = np.concatenate([weights.pop(one) for one in names], 1)
    return weights


def set_weights(model, form, path):
    """Rounds the weights as the form of the file does."""
    with torch.no_grad():
        if form == "fp16":
            for weight in model.parameters():
                weight.copy_(weight.half().float())
        if "int" not in form:
            return
        named = dict(model.named_modules())
        found = joined(quantized_weights(path), named)
        for name, matrix in found.items():
            module, matrix = named[name], torch.from_numpy(np.ascontiguousarray(matrix))
            as_it_is = isinstance(module, torch.nn.Embedding) or "Conv1D" in str(type(module))
            # A parameter of its own: tied weights were rounded one by one.
            module.weight = torch.nn.Parameter(matrix if as_it_is else matrix.T.contiguous())
        if model.config.tie_word_embeddings and "lm_head" not in found:
            model.lm_head.weight = model.get_input_embeddings().weight


def with_adapters(model, start):
    """The model with the adapters of a folder for PEFT, or of a file with the names of onnxruntime-genai."""
    if start.is_dir():
        return peft.PeftModel.from_pretrained(model, start, is_trainable=True)
    tensors = {name: tensor for name, tensor in load_file(start).items() if "/lora_" in name}
    module = lambda name: name.split(".MatMul")[0].replace(".attn.", ".self_attn.")
    rank = min(next(iter(tensors.values())).shape)
    config = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=sorted({module(name) for name in tensors}))
    tuned = peft.get_peft_model(model, config)
    with torch.no_grad():
        for name, tensor in tensors.items():
            adapted = tuned.base_model.model.get_submodule(module(name))
            part = adapted.lora_A if name.endswith("lora_a") else adapted.lora_B
            weight = part["default"].weight
            weight.copy_(tensor if tensor.shape == weight.shape else tensor.T)
    return tuned


def losses(model, start, data, batch, steps, rate):
    """The losses of steps over batches in order, from the adapters of `start`, by the optimizer that init writes."""
    tuned = with_adapters(model, start).eval()
    trained = [weight for weight in tuned.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate, weight_decay=0.01)
    found = []
    for step in range(steps):
        ids, mask, labels = (part[step * batch : (step + 1) * batch] for part in data)
        logits = tuned(input_ids=ids, attention_mask=mask).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        found.append(loss.item())
    return found
