"""Writes the state of a session into a module of PyTorch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tandem_train._arrays import Array
from tandem_train._errors import Diagnostic, Error, refuse


def copy_state(state: Mapping[str, Array], module: Any, unused: Collection[str] = ()) -> None:
    """Writes a state into a module. Raises one Error with all that does not fit; nothing is written then.

    `unused`: parameters that no output of the module depends on, which the session has not; they stay as they are.
    """
    torch = imported_torch()
    if not isinstance(module, torch.nn.Module):
        refuse("this is no module of PyTorch", expected="a torch.nn.Module", got=type(module).__name__)
    if any(tensor.is_meta for tensor in module.state_dict().values()):
        refuse("this module is on the device meta, which keeps no values", fix="module.to_empty(device='cpu')")
    own = {name: tensor for name, tensor in module.state_dict().items() if tensor.is_floating_point()}
    trained = dict(module.named_parameters(remove_duplicate=False))
    written = {(own[name].data_ptr(), own[name].shape) for name in state if name in own}
    problems = [Diagnostic("the module has nothing of this name", path=name) for name in state if name not in own]
    for name, tensor in own.items():
        is_tied = (tensor.data_ptr(), tensor.shape) in written  # another name of the same tensor is there
        is_needed = name in trained or name.rpartition(".")[2] in ("running_mean", "running_var")
        if name not in state:
            if is_needed and not is_tied and name not in unused:
                problems.append(Diagnostic("the session has nothing of this name", path=name))
            continue
        value = state[name]
        if tuple(tensor.shape) != value.shape:
            mine, its = str(list(tensor.shape)), str(list(value.shape))
            problems.append(Diagnostic("the module has another shape", path=name, expected=mine, got=its))
    if problems:
        raise Error("usage", problems)
    with torch.no_grad():
        for name, value in state.items():
            own[name].copy_(torch.from_numpy(value))


def imported_torch() -> Any:
    """Raises an Error that says what to install."""
    try:
        import torch
    except ImportError:
        refuse("this needs PyTorch", fix="pip install torch onnx")
    return torch
