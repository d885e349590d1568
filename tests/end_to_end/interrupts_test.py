"""Ctrl-C is heard within a second, whatever is under way: before the first step a training ends, in a long step it says that it saves behind it.

    python3 tests/end_to_end/interrupts_test.py build/tandem

Each case takes many seconds without the signal, and has eight to answer it, since machines that run tests are busy.
"""

import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 8.0  # seconds

TOML = """model = "gpt.dynamo.onnx"
batch_size = 2
steps = 2
threads = 1
loss.terms = [{ kind = "softmax_cross_entropy", logits = "linear_8", labels = "targets" }]
optimizer = { kind = "sgd", lr = 0.01 }
data.length = 6
data.fields = { x = "tokens", targets = "targets" }
"""
DATA = {"text": 'data.kind = "text"\ndata.tokenizer = "tokenizer.json"\ndata.train.files = ["text.txt"]\n',
        "tokens": 'data.kind = "tokens"\ndata.stride = 1\ndata.train.files = ["tokens.bin"]\n'}


def write_project(folder):
    for path in (ROOT / "tests" / "data" / "exports").glob("gpt.dynamo.onnx*"):
        shutil.copy(path, folder)
    vocabulary = {letter: place for place, letter in enumerate("abcdefgh ")} | {"ab": 9, "cd": 10, "[UNK]": 11}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
                 "post_processor": None, "decoder": None, "model": {"type": "BPE", "vocab": vocabulary, "merges": ["a b", "c d"], "unk_token": "[UNK]"}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "text.txt").write_text("abcdefgh abab cdef " * 6_000_000)  # one document: one word without a pre-tokenizer
    (folder / "tokens.bin").write_bytes(bytes(byte for place in range(600_000) for byte in (place * 7 % 12, 0)))
    for name, data in DATA.items():
        (folder / f"{name}.toml").write_text(TOML + data)


class Program:
    """A running command, whose two streams are read as they come."""

    def __init__(self, program, folder, *words):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen([program, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        self.text = ""

    def read_until(self, words, seconds):
        """Whether it has said them within that many seconds."""
        end = time.monotonic() + seconds
        while words not in self.text:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return False
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return words in self.text
            self.text += more.decode(errors="replace")
        return True

    def ends(self, seconds):
        """Its exit code, or None where it goes on."""
        try:
            self.text += self.process.communicate(timeout=seconds)[0].decode(errors="replace")
            return self.process.returncode
        except subprocess.TimeoutExpired:
            return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def check_before_the_first_step(program, folder):
    """Tokens of one long document are made in one go, which checks for no interrupt."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with Program(program, folder, "train", "text.toml", "--run-dir", "early") as training:
            assert training.ends(1.5) is None, f"it has ended before the signal: {training.text}"
            training.process.send_signal(number)
            code = training.ends(PATIENCE)
            assert code == 128 + number, f"{number}: {code}, {training.text}"
            assert "interrupted" in training.text, training.text


def check_in_a_long_step(program, folder):
    with Program(program, folder, "train", "tokens.toml", "batch_size=500000", "micro_batch=2", "steps=1", "--run-dir", "late") as training:
        assert training.read_until("training ", 60), training.text
        time.sleep(0.5)
        training.process.send_signal(signal.SIGINT)
        assert training.read_until("interrupted: the current work is finished first", PATIENCE), training.text
        training.process.send_signal(signal.SIGINT)
        assert training.ends(PATIENCE) == -signal.SIGINT, training.text
    assert not list((folder / "late" / "checkpoints").glob("step-*"))


def check_after_a_step(program, folder):
    """A step of a second is finished and saved."""
    with Program(program, folder, "train", "tokens.toml", "batch_size=40000", "micro_batch=2", "steps=100", "--run-dir", "saved") as training:
        assert training.read_until("training ", 60), training.text
        training.process.send_signal(signal.SIGINT)
        assert training.ends(60) == 128 + signal.SIGINT, training.text
    assert list((folder / "saved" / "checkpoints").glob("step-*")), training.text


def main(program):
    failures = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_project(folder)
        for test in (check_before_the_first_step, check_in_a_long_step, check_after_a_step):
            try:
                test(program, folder)
                print(f"passed: {test.__name__}", flush=True)
            except AssertionError as failure:
                failures += 1
                print(f"FAILED: {test.__name__}: {failure}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve())))
