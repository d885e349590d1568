"""Puts trained weights back into a model of Hugging Face's transformers.

    tandem export RUN --to weights.safetensors
    python models/hugging_face/load.py MODEL --task TASK --weights weights.safetensors --to FOLDER [--classes N]

MODEL, TASK and --classes as export.py had them. FOLDER gets what save_pretrained writes.
"""

import argparse
import pathlib

from export import TASKS, Logits, load


def complete_state(module, tensors):
    """The file's tensors under every name that the module has for them: tied weights are stored once."""
    names = {}
    for name, value in module.state_dict(keep_vars=True).items():
        names.setdefault(id(value), []).append(name)
    state = dict(tensors)
    for same in names.values():
        stored = next((n for n in same if n in tensors), None)
        state.update({n: tensors[stored] for n in same if stored is not None})
    return state


def put_back(module, path):
    """Into the module that was exported, or one of the same class; strict: a name too many or too few is an error."""
    import safetensors.torch

    module.load_state_dict(complete_state(module, safetensors.torch.load_file(str(path))), strict=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--weights", type=pathlib.Path, required=True)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--classes", type=int)
    options = parser.parse_args()
    model = load(options.model, options.task, options.classes)
    put_back(Logits(model, TASKS[options.task].inputs), options.weights)
    model.save_pretrained(options.to)


if __name__ == "__main__":
    main()
