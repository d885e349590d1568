"""Writes tests/data/torch_weights/: files of torch.save, and in expected.json what torch.load reads from them.

    python tests/scripts/torch_weights.py

Each file of expected.json: NAME -> dtype, shape, values (row-major). `views` has tensors that share storages, with strides and offsets; `nested`,
`halves`: the tensors are in dicts of a dict; `protocol4`: the newer pickles; `no_sums`: without checksums. Files to refuse: `legacy` (not a zip),
`script` (TorchScript), `module` (a pickled class), `hostile` (calls os.system when it is unpickled in Python: never do), `empty` (no tensors).
"""

import json
import os
import pathlib

import torch

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "torch_weights"
expected = {}


def values_of(tensor):
    return [float(x) for x in tensor.detach().to(torch.float64).reshape(-1).tolist()]


def save(name, what, tensors, **options):
    torch.save(what, FOLDER / f"{name}.pt", **options)
    loaded = torch.load(FOLDER / f"{name}.pt", weights_only=False)
    assert type(loaded) is type(what)
    expected[name] = {
        key: {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape), "values": values_of(t)} for key, t in tensors.items()
    }


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)
        self.norm = torch.nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(self.fc(x))


class Hostile:
    def __reduce__(self):
        return os.system, ("echo this must never run",)


def views():
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    table = torch.randn(5, 4)
    return {
        "base": base,
        "transposed": base.t(),
        "corner": base[1:3, 2:5],
        "column": base[:, 3],
        "every_other": base.reshape(2, 3, 4)[:, ::2, 1::2],
        "expanded": base[0, :3].expand(2, 3),
        "last": base[3, 5],
        "tied": table,
        "tied_too": table,
        "parameter": torch.nn.Parameter(torch.randn(2, 3)),
        "parameter_view": torch.nn.Parameter(torch.randn(3, 2).t()),
        "empty": torch.zeros(0, 3),
        "half": torch.randn(5).half(),
        "bfloat": torch.randn(7, 2).bfloat16(),
        "bfloat_column": torch.randn(4, 3).bfloat16()[:, 1],
        "double": torch.randn(3, dtype=torch.float64),
        "long": torch.tensor([-1, 2**40, 7]),
        "int": torch.tensor([-5, 6], dtype=torch.int32),
        "short": torch.tensor([-300, 300], dtype=torch.int16),
        "char": torch.tensor([-128, 127], dtype=torch.int8),
        "byte": torch.tensor([0, 255], dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "unsigned": torch.tensor([1, 65535], dtype=torch.uint16),
        "rotations": torch.randn(2, dtype=torch.complex64),
        "eighth": torch.tensor([0.3, -448.0, 2.0]).to(torch.float8_e4m3fn),
        "other_eighth": torch.tensor([[1.0, 2.0], [3.0, 1e-9]]).to(torch.float8_e5m2).t(),
        "note": "not a tensor",
    }


def main():
    FOLDER.mkdir(exist_ok=True)
    torch.manual_seed(3)
    model = Small()
    model.train()(torch.randn(4, 3))
    state = model.state_dict()
    save("plain", state, state)
    all_views = views()
    save("views", all_views, {k: t for k, t in all_views.items() if k not in ("rotations", "note")})
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    state = {k: t.clone() for k, t in model.state_dict().items()}
    save("nested", {"epoch": 3, "best": 0.5, "state_dict": state, "optimizer": optimizer.state_dict(), "seed": 2**70}, state)
    save("halves", {"encoder": {"w": torch.ones(2)}, "decoder": {"w": torch.zeros(3)}, "names": ["a", "b"], "step": None},
         {"encoder.w": torch.ones(2), "decoder.w": torch.zeros(3)})
    save("protocol4", state, state, pickle_protocol=4)
    torch.serialization.set_crc32_options(False)
    save("no_sums", state, state)
    torch.serialization.set_crc32_options(True)

    torch.save(state, FOLDER / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.script(torch.nn.ReLU()), FOLDER / "script.pt")
    torch.save(model, FOLDER / "module.pt")
    torch.save({"weight": torch.ones(2), "extra": Hostile()}, FOLDER / "hostile.pt")
    torch.save({"epoch": 3, "names": ["a"]}, FOLDER / "empty.pt")
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
