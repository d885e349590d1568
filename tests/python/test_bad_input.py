"""What a caller gives and nothing can take: always a tt.Error with diagnostics, and nothing is lost."""

import pathlib
import pickle

import dense
import numpy
import pytest
from programs import finished

import tandem_train as tt

MODEL = pathlib.Path(__file__).resolve().parents[2] / "models" / "digits" / "model.onnx"
TOML = MODEL.with_name("train.toml")
RUN = "no run"

CALLS = {
    "Session.settings": lambda: tt.Session(MODEL, 8, settings=3),
    "Session.model": lambda: tt.Session(None, 8),
    "Session.batch_size": lambda: tt.Session(MODEL, None),
    "Session.unknown": lambda: tt.Session(MODEL, 8, nope=1),
    "Session.None": lambda: tt.Session(MODEL, 8, optimizer=None, settings=dense.LOSS),
    "Session.policy": lambda: tt.Session(MODEL, 8, policy=[3], settings=dense.SETTINGS),
    "Session.metrics": lambda: tt.Session(MODEL, 8, metrics="accuracy", settings=dense.SETTINGS),
    "Trainer.overrides": lambda: tt.Trainer(TOML, 3),
    "Trainer.callbacks": lambda: tt.Trainer(TOML, callbacks=None),
    "Trainer.callback": lambda: tt.Trainer(TOML, callbacks=tt.Callback()),
    "Trainer.place": lambda: tt.Trainer(TOML, place=None),
    "Trainer.rule": lambda: tt.Trainer(TOML, place=[3]),
    "Trainer.devices": lambda: tt.Trainer(TOML, devices=[3]),
    "Trainer.run_dir": lambda: tt.Trainer(TOML, run_dir=None),
    "Trainer.config": lambda: tt.Trainer(3),
    "train.data": lambda: tt.train(MODEL, data=3),
    "train.unknown": lambda: tt.train(TOML, nope=1),
    "inspect.bind": lambda: tt.inspect(MODEL, bind=[1]),
    "inspect.stage": lambda: tt.inspect(MODEL, stage=3),
    "inspect.unknown": lambda: tt.inspect(MODEL, nope=1),
    "evaluate.data": lambda: tt.evaluate(RUN, data=None),
    "evaluate.weights": lambda: tt.evaluate(RUN, weights=3),
    "evaluate.overrides": lambda: tt.evaluate(RUN, overrides=3),
    "evaluate.unknown": lambda: tt.evaluate(RUN, nope=3),
    "predict.data": lambda: tt.predict(RUN, pathlib.Path("rows.npz")),
    "predict.outputs": lambda: tt.predict(RUN, [], outputs=None),
    "predict.as_": lambda: tt.predict(RUN, [], as_=None),
    "predict.batch": lambda: tt.predict(RUN, [], batch="8"),
    "predict.ids": lambda: tt.predict(RUN, [], ids=[3]),
    "export.weights": lambda: tt.export(RUN, "x.onnx", weights=3),
    "export.unknown": lambda: tt.export(RUN, "x.onnx", nope=3),
    "plan.ranks": lambda: tt.plan(TOML, ranks="2"),
    "plan.network": lambda: tt.plan(TOML, network=3),
    "plan.devices": lambda: tt.plan(TOML, devices=None),
    "explain.name": lambda: tt.explain(TOML, 3),
    "explain.phase": lambda: tt.explain(TOML, "fc1", phase=3),
    "auto.budgets": lambda: tt.auto(TOML, budgets=3),
    "auto.most_plans": lambda: tt.auto(TOML, most_plans=-1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_wrong_objects_are_named(call):
    with pytest.raises(tt.Error) as error:
        call()
    assert error.value.diagnostics and all(d.message for d in error.value.diagnostics)


STEPS = {
    "predict None": lambda s: s.predict(x=None),
    "predict nothing": lambda s: s.predict({}),
    "predict no sample": lambda s: s.predict(x=numpy.zeros((0, 4), numpy.float32)),
    "evaluate no sample": lambda s: s.evaluate({name: array[:0] for name, array in dense.batch(0).items()}),
    "evaluate other samples": lambda s: s.evaluate(x=dense.batch(0)["x"], t=dense.batch(0, 3)["t"]),
    "evaluate without labels": lambda s: s.evaluate(x=dense.batch(0)["x"]),
    "evaluate object": lambda s: s.evaluate([1]),
    "step no sample": lambda s: s.step({name: array[:0] for name, array in dense.batch(0).items()}),
    "step masked": lambda s: s.step({**dense.batch(0), "x": numpy.ma.masked_array(dense.batch(0)["x"], True)}),
    "rate": lambda s: s.set_learning_rate("fast"),
    "rate object": lambda s: s.set_learning_rate(numpy.ones(2)),
    "parameter": lambda s: s.parameters.update({"w1": None}),
    "parameter name": lambda s: s.parameters.update({3: None}),
    "state": lambda s: s.load_state_dict(None),
    "state of None": lambda s: s.load_state_dict({"w1": None}, strict=False),
    "path": lambda s: s.save_state(None),
    "no state": lambda s: s.restore_state(MODEL),
    "ending": lambda s: s.save("model.bin"),
    "folder": lambda s: s.save("/no/such/folder/model.onnx"),
    "pickle": lambda s: pickle.dumps(s.parameters),
}


@pytest.mark.parametrize("call", STEPS.values(), ids=STEPS.keys())
def test_a_session_goes_on_after_an_error(dense_model, session, call):
    session.step(dense.batch(0))
    with pytest.raises(tt.Error) as error:
        call(session)
    assert error.value.diagnostics and all(d.message for d in error.value.diagnostics)
    other = tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS)
    other.step(dense.batch(0))
    assert session.steps == 1 and session.step(dense.batch(1)) == other.step(dense.batch(1))


def test_objects_that_lie_about_their_memory_are_refused(session):
    class Lying:
        def __init__(self, device, capsule):
            self.device, self.capsule = device, capsule

        def __dlpack_device__(self):
            return self.device

        def __dlpack__(self, **options):
            return self.capsule

    for device in ("cpu", (), (1,), ("cpu", 0), None, (1, 0)):
        with pytest.raises(tt.Error) as error:
            session.predict(x=Lying(device, b"no capsule"))
        assert error.value.diagnostics[0].path == "x"
    assert session.predict(x=dense.batch(0)["x"])["y"].shape == (8, 3)


def test_calls_while_the_interpreter_ends_are_refused(dense_model):
    output = finished(
        """
        import atexit
        def late():
            try:
                session.step(dense.batch(0))
            except tt.Error as error:
                print(error.kind, error)
        atexit.unregister(tt._tandem.end)
        atexit.register(late)  # the last one
        atexit.register(tt._tandem.end)
        session = open_session(sys.argv[1])
        session.step(dense.batch(0))
        """,
        dense_model,
    )
    assert "runtime the interpreter ends" in output
