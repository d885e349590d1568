"""Runs: results, callbacks, exceptions in them, resuming, Ctrl-C."""

import json
import pathlib
import signal
import sys
import time

import numpy
import pytest
from conftest import ROOT
from programs import finished, started

import tandem_train as tt

SHORT = {"epochs": 1, "eval.every": "20 steps", "log.every": "10 steps", "optimizer.schedule": {"kind": "constant"}}


class Watch(tt.Callback):
    def __init__(self):
        self.steps, self.evaluations, self.messages = [], [], []

    def on_step(self, progress):
        self.steps.append(progress)

    def on_evaluation(self, progress):
        self.evaluations.append(progress)

    def on_message(self, text):
        self.messages.append(text)


def test_a_run_returns_its_result(digits):
    watch = Watch()
    trainer = tt.Trainer(digits / "train.toml", SHORT, callbacks=[watch])
    assert "parameters" in trainer.summary
    result = trainer.run()
    assert pathlib.Path(result.run_dir).is_dir() and result.steps == 45 and not result.interrupted
    assert result.loss < 2 and 0.3 < result.evaluation["accuracy"] <= 1
    assert result.best.metric == "accuracy" and result.best.step in (20, 40, 45)
    assert 10 in [p.step for p in watch.steps] and 20 in [p.step for p in watch.evaluations]
    assert all(not p.evaluation and p.loss > 0 and p.steps == 45 for p in watch.steps)
    assert all(p.evaluation and p.values["accuracy"] >= 0 for p in watch.evaluations)
    lines = (pathlib.Path(result.run_dir) / "metrics.jsonl").read_text().splitlines()
    logged = {line["step"]: line["loss"] for line in map(json.loads, lines) if line.get("step") == 10 and "loss" in line}
    assert next(p.loss for p in watch.steps if p.step == 10) == pytest.approx(logged[10], rel=1e-6)
    with pytest.raises(tt.Error):
        trainer.run()


def test_train_takes_a_model_with_its_data(digits):
    data = str(digits / "digits_train.npz")
    result = tt.train(digits / "model.onnx", data=data, steps=5, **{"optimizer.lr": 1e-3})
    assert result.steps == 5
    assert tt.train(digits / "train.toml", settings={**SHORT, "steps": 3}, run_dir=digits / "here").steps == 3
    assert (digits / "here").is_dir()
    with pytest.raises(tt.Error, match="twice"):
        tt.train(digits / "train.toml", settings={"steps": 3}, steps=4)


def test_a_policy_places_a_run(digits):
    place = [{"at": "**", "on": "gpu"}, '{ at = "**", after = "MaxPool", on = "cpu" }']
    devices = ["gpu=emulated:0,memory=64MiB"]
    placed = tt.train(digits / "train.toml", settings={**SHORT, "steps": 4}, place=place, devices=devices)
    plain = tt.train(digits / "train.toml", settings={**SHORT, "steps": 4})
    assert placed.loss == pytest.approx(plain.loss, rel=1e-4)


def test_mistakes_come_together(digits):
    with pytest.raises(tt.Error) as error:
        tt.Trainer(digits / "train.toml", {"nope": 1, "optimizer.kind": "adamv", "epochs": -1})
    assert len(error.value.diagnostics) >= 3
    with pytest.raises(tt.Error, match="absent.toml"):
        tt.Trainer(digits / "absent.toml")
    with pytest.raises(tt.Error, match="no callback"):
        tt.Trainer(digits / "train.toml", callbacks=[print])
    with pytest.raises(tt.Error, match="list"):
        tt.Trainer(digits / "train.toml", devices="gpu=emulated:0")
    with pytest.raises(tt.Error, match="list"):
        tt.Trainer(digits / "train.toml", place={"at": "**", "on": "cpu"})


class Failing(Watch):
    def __init__(self, method, at_step=0):
        super().__init__()
        self.method, self.at_step = method, at_step

    def fail(self, method, step):
        if self.method == method and step >= self.at_step:
            raise LookupError(f"from {method}")

    def on_step(self, progress):
        super().on_step(progress)
        self.fail("on_step", progress.step)

    def on_evaluation(self, progress):
        self.fail("on_evaluation", progress.step)

    def on_message(self, text):
        self.fail("on_message", 0)


@pytest.mark.parametrize("method", ["on_step", "on_evaluation"])
def test_an_exception_in_a_callback_saves_the_run_and_is_raised(digits, method):
    failing, run_dir = Failing(method, 20), digits / "run"
    trainer = tt.Trainer(digits / "train.toml", SHORT, callbacks=[failing], run_dir=run_dir)
    with pytest.raises(LookupError, match=f"from {method}"):
        trainer.run()
    assert list((run_dir / "checkpoints").iterdir())
    assert failing.steps[-1].step <= 30
    resumed = tt.Trainer(digits / "train.toml", run_dir=run_dir, resume=True).run()
    assert resumed.steps == 45
    whole = tt.train(digits / "train.toml", settings=SHORT)
    assert resumed.loss == whole.loss  # bit for bit


def test_an_exception_while_the_trainer_is_made_is_raised(digits, tmp_path):
    messages = Watch()
    table = tmp_path / "rows.csv"
    table.write_text("a,b\n" + "1,2\n" * 10)
    try:
        tt.Trainer(digits / "model.onnx", {"data": str(digits / "digits_train.npz")}, callbacks=[messages], dry_run=True)
    except tt.Error:
        pass
    if messages.messages:  # the text is the library's; that there is one decides
        with pytest.raises(LookupError):
            failing = Failing("on_message")
            tt.Trainer(digits / "model.onnx", {"data": str(digits / "digits_train.npz")}, callbacks=[failing], dry_run=True)


def test_stop_saves_and_returns(digits):
    class Stop(tt.Callback):
        def on_step(self, progress):
            trainer.stop()

    trainer = tt.Trainer(digits / "train.toml", SHORT, callbacks=[Stop()])
    result = trainer.run()
    assert result.interrupted and 0 < result.steps < 45
    assert tt.train(digits / "train.toml", resume=True, run_dir=result.run_dir).steps == 45


def test_a_trainer_of_a_dropped_callback_is_collected(digits):
    import gc
    import weakref

    watch = Watch()
    trainer = tt.Trainer(digits / "train.toml", SHORT, callbacks=[watch], dry_run=True)
    watch.trainer = trainer  # a cycle
    seen = weakref.ref(watch)
    del watch, trainer
    gc.collect()
    assert seen() is None


LONG = """
class Say(tt.Callback):
    def on_step(self, progress):
        print("step", progress.step, flush=True)
trainer = tt.Trainer(sys.argv[1], {"epochs": 10000, "log.every": "5 steps", "eval.every": "1000 epochs",
                                   "optimizer.schedule": {"kind": "constant"}, "checkpoint.every": "10000 epochs"},
                     callbacks=[Say()], run_dir=sys.argv[2])
"""


def until_a_step(process):
    for line in process.stdout:
        if line.startswith("step"):
            return
    raise AssertionError("the run ended")


def test_ctrl_c_saves_and_raises(digits):
    run_dir = digits / "run"
    process = started(
        LONG
        + """
try:
    trainer.run()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
        print("no handler")
    except KeyboardInterrupt:
        print("handler is back")
""",
        digits / "train.toml",
        run_dir,
    )
    until_a_step(process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "interrupted" in output and "handler is back" in output, output
    assert list((run_dir / "checkpoints").iterdir())


def test_ctrl_c_ends_a_program_as_python_does(digits):
    process = started(LONG + "trainer.run()", digits / "train.toml", digits / "run")
    until_a_step(process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in output and process.returncode == -signal.SIGINT, output
    assert list((digits / "run" / "checkpoints").iterdir())


def test_the_interpreter_ends_during_a_run_in_a_thread(digits):
    process = started(
        LONG + "threading.Thread(target=trainer.run, daemon=True).start(); time.sleep(1)",
        digits / "train.toml",
        digits / "run",
    )
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "step" in output, output
    assert list((digits / "run" / "checkpoints").iterdir())  # it was saved
