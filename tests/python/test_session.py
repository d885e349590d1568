"""Steps of a Session are those of numpy; its parameters and states are read, set, saved."""

import dense
import numpy
import pytest

import tandem_train as tt


def train(session, first, last):
    return [session.step(dense.batch(step)) for step in range(first, last)]


def test_five_steps_of_sgd_are_those_of_numpy(session):
    w = {name: value.astype(float) for name, value in dense.weights().items()}
    for step in range(5):
        expected = dense.sgd_step(w, dense.batch(step), 0.1)
        assert session.step(**dense.batch(step)) == pytest.approx(expected, rel=1e-5)
    for name, value in session.parameters.items():
        numpy.testing.assert_allclose(value, w[name], atol=1e-5)
    x = dense.batch(9)["x"]
    numpy.testing.assert_allclose(session.predict(x=x)["y"], dense.outputs(w, x), atol=1e-5)


def test_a_smaller_batch_is_a_mean_over_what_is_there(session):
    w = {name: value.astype(float) for name, value in dense.weights().items()}
    feeds = dense.batch(0, 3)
    assert session.step(feeds) == pytest.approx(dense.sgd_step(w, feeds, 0.1), rel=1e-5)


def test_predict_takes_any_number_of_samples(session):
    for size in (1, 5, 31):
        x = dense.batch(0, size)["x"]
        numpy.testing.assert_allclose(session.predict({"x": x})["y"], dense.outputs(dense.weights(), x), atol=1e-5)


def test_parameters_are_copies_that_can_be_set(session):
    values = session.parameters
    assert set(values) == {"w1", "b1", "w2", "b2"} and len(values) == 4 and "w1" in values and "nope" not in values
    copy = values["b2"]
    copy[:] = 7
    numpy.testing.assert_array_equal(values["b2"], dense.weights()["b2"])
    values["b2"] = copy
    numpy.testing.assert_array_equal(session.parameters["b2"], [7, 7, 7])
    values.update({"w1": numpy.zeros((5, 4), numpy.float32), "b1": numpy.zeros(5, numpy.float32)})
    x = dense.batch(0)["x"]
    numpy.testing.assert_array_equal(session.predict(x=x)["y"], numpy.full((8, 3), 7, numpy.float32))
    assert values.copy()["w1"].dtype == numpy.float32
    with pytest.raises(KeyError):
        values["nope"]
    with pytest.raises(tt.Error, match="no such parameter"):
        values["nope"] = copy
    with pytest.raises(tt.Error, match="float32.5.*float32.3"):
        values["b1"] = copy
    with pytest.raises(tt.Error, match="cannot be removed"):
        del values["b1"]


def test_the_learning_rate_is_set(session):
    w = {name: value.astype(float) for name, value in dense.weights().items()}
    for step, lr in enumerate((0.1, 0.02, 0)):
        if step > 0:
            session.learning_rate = numpy.float32(lr) if lr else 0
        dense.sgd_step(w, dense.batch(step), lr)
        session.step(dense.batch(step))
    numpy.testing.assert_allclose(session.parameters["w1"], w["w1"], atol=1e-5)
    for wrong in (-1, float("nan"), "0.1", None, True):
        with pytest.raises(tt.Error, match="learning rate"):
            session.learning_rate = wrong
    assert session.learning_rate == 0 and session.steps == 3


def test_an_evaluation_is_exact_over_all_samples(dense_model):
    metrics = ["mae", tt.metric.rmse(name="root")]
    session = tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS, metrics=metrics)
    assert (session.learning_rate, session.steps) == (0.1, 0)
    w = {name: value.astype(float) for name, value in dense.weights().items()}
    for step in range(2):
        dense.sgd_step(w, dense.batch(step), 0.1)
        session.step(dense.batch(step))
    feeds = dense.batch(9, 3 * dense.BATCH + 5)
    difference = dense.outputs(w, feeds["x"].astype(float)) - feeds["t"]
    expected = {"loss": (difference**2).mean(), "mae": numpy.abs(difference).mean()}
    expected["root"] = numpy.sqrt(expected["loss"])
    for found in (session.evaluate(feeds), session.evaluate(**feeds)):
        assert found == pytest.approx(expected, rel=1e-5)
    assert session.steps == 2


def test_a_restored_state_continues_bit_by_bit(dense_model, tmp_path):
    settings = {**dense.LOSS, "optimizer": {"kind": "adamw", "lr": 0.01}}
    one, other = (tt.Session(dense_model, dense.BATCH, settings=settings) for _ in range(2))
    train(one, 0, 4)
    one.save_state(tmp_path / "state.safetensors")
    other.restore_state(tmp_path / "state.safetensors")
    assert train(one, 4, 8) == train(other, 4, 8)
    with pytest.raises(tt.Error) as error:
        other.restore_state(tmp_path / "absent.safetensors")
    assert "absent.safetensors" in str(error.value)


def test_saved_models_open(session, dense_model, tmp_path):
    train(session, 0, 3)
    x = dense.batch(9)["x"]
    for name in ("trained.onnx", "trained.npz", "trained.safetensors"):
        session.save(tmp_path / name)
    opened = tt.Session(tmp_path / "trained.onnx", 4, settings=dense.SETTINGS)
    numpy.testing.assert_allclose(opened.predict(x=x)["y"], session.predict(x=x)["y"], rtol=1e-6)
    with numpy.load(tmp_path / "trained.npz") as file:
        numpy.testing.assert_array_equal(file["w1"], session.parameters["w1"])


def test_a_state_dict_goes_from_session_to_session(session, dense_model):
    train(session, 0, 3)
    state = session.state_dict()
    assert set(state) == {"w1", "b1", "w2", "b2"}
    other = tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS)
    other.load_state_dict(state)
    for name, value in other.parameters.items():
        numpy.testing.assert_array_equal(value, state[name])


def test_a_state_dict_is_strict(session):
    before = session.state_dict()
    state = {**before, "w1": before["w1"].T, "b1": before["b1"].astype(float), "more": before["b2"]}
    del state["b2"]
    with pytest.raises(tt.Error) as error:
        session.load_state_dict(state)
    reported = {d.path: d for d in error.value.diagnostics}
    assert set(reported) == {"w1", "b1", "b2", "more"}
    assert (reported["w1"].expected, reported["w1"].got) == ("float32[5, 4]", "float32[4, 5]")
    assert reported["b1"].got == "float64[5]"
    for name, value in session.state_dict().items():
        numpy.testing.assert_array_equal(value, before[name])
    with pytest.raises(tt.Error, match="w1"):
        session.load_state_dict(state, strict=False)
    session.load_state_dict({"w2": before["w2"] + 1, "more": before["b2"]}, strict=False)
    numpy.testing.assert_array_equal(session.parameters["w2"], before["w2"] + 1)
    with pytest.raises(tt.Error, match="mapping"):
        session.load_state_dict([1])


def test_a_loss_that_is_not_finite_is_named(session):
    feeds = dense.batch(0)
    session.parameters["w2"] = numpy.full((3, 5), 3e38, numpy.float32)
    with pytest.raises(tt.Diverged, match="step 1") as error:
        session.step(feeds)
    assert error.value.kind == "diverged" and isinstance(error.value, tt.Error)
    session.parameters.update(dense.weights())
    assert session.step(feeds) > 0


def test_mistakes_in_settings_come_together(dense_model):
    with pytest.raises(tt.Error) as error:
        tt.Session(dense_model, 8, **dense.LOSS, optimizer={"kind": "adamv", "lr": "fast"}, epochs=3, nope=1)
    assert error.value.kind is tt.ErrorKind.USAGE
    text = str(error.value)
    assert "adamv" in text and "epochs" in text and "nope" in text and "optimizer.lr" in text
    assert len(error.value.diagnostics) >= 4


@pytest.mark.parametrize("size", [0, -1, 2.0, "8", True, 2**63])
def test_a_batch_size_is_a_number_of_samples(dense_model, size):
    with pytest.raises(tt.Error, match="batch_size"):
        tt.Session(dense_model, size, settings=dense.SETTINGS)


def test_missing_and_broken_models_are_refused(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    for name in ("absent.onnx", "broken.onnx"):
        with pytest.raises(tt.Error, match=name):
            tt.Session(tmp_path / name, 8, settings=dense.SETTINGS)
    with pytest.raises(tt.Error, match="no path"):
        tt.Session(3, 8)
    with pytest.raises(tt.Error, match="UTF-8"):
        tt.Session("model\udcff.onnx", 8)
