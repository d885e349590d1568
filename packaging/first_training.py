"""Trains the recipe in ./digits with the Python package, then uses its program: python first_training.py"""
import subprocess
import sys

import numpy
import tandem_train as tt

result = tt.train("digits/train.toml", policy="digits/policy.toml", run_dir="run")
program = lambda *arguments: subprocess.run(["tandem", *arguments], check=True, capture_output=True, text=True).stdout
evaluation = program("eval", "run")
program("export", "run", "--to", "trained.onnx")
with numpy.load("digits/digits_test.npz") as data:
    images, labels = data["images"], data["labels"]
loss = tt.loss.softmax_cross_entropy("logits", labels="labels")
session = tt.Session("trained.onnx", 1, loss=loss, optimizer=tt.optim.Adam(lr=1e-3))
right = session.predict(image=images[:100].astype("float32") / 16)["logits"].argmax(1) == labels[:100]
assert right.mean() > 0.9, right
print(f"loss {result.loss:.4f}, {right.sum()} of 100 right, Python {sys.version.split()[0]}; {evaluation.splitlines()[-1]}")
