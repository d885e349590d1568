"""The names of onnxruntime.training: its walk-through with one import changed, against losses of PyTorch.

tests/scripts/ort_expectations.py has written the losses, and has the same network and batches.
"""

import functools
import json
import weakref

import numpy
import pytest
from conftest import ROOT
from small_model import dense_network

import tandem_train as tt
from tandem_train.ort import artifacts
from tandem_train.ort._lazy import LazyArray
from tandem_train.ort.api import CheckpointState, LinearLRScheduler, Module, Optimizer

EXPECTED = json.loads((ROOT / "tests" / "data" / "ort_losses.json").read_text())
BATCH, STEPS = EXPECTED["batch"], EXPECTED["steps"]
LOSSES = {
    None: artifacts.LossType.CrossEntropyLoss,
    "mse": artifacts.LossType.MSELoss,
    "l1": artifacts.LossType.L1Loss,
    "binary": artifacts.LossType.BCEWithLogitsLoss,
}
ALL = ["w1", "b1", "w2", "b2"]


def start_weights():
    random = numpy.random.default_rng(11)
    shapes = {"w1": (32, 64), "b1": (32,), "w2": (10, 32), "b2": (10,)}
    return {name: random.normal(0, 0.1, shape).astype(numpy.float32) for name, shape in shapes.items()}


def samples(name="train"):
    with numpy.load(ROOT / "models" / "digits" / f"digits_{name}.npz") as file:
        return (file["images"].reshape(-1, 64) / 16).astype(numpy.float32), file["labels"]


IMAGES, LABELS = samples()


def batch(call, loss=None):
    part = slice(call % (len(IMAGES) // BATCH) * BATCH, (call % (len(IMAGES) // BATCH) + 1) * BATCH)
    target = numpy.eye(10, dtype=numpy.float32)[LABELS[part]] if loss else LABELS[part]
    return IMAGES[part], target


def made(folder, optimizer="AdamW", loss=None, frozen=(), **options):
    model = dense_network(folder / "network.onnx", start_weights())
    artifacts.generate_artifacts(
        str(model),
        requires_grad=[name for name in ALL if name not in frozen],
        frozen_params=list(frozen),
        loss=LOSSES[loss],
        optimizer=artifacts.OptimType[optimizer],
        artifact_directory=folder,
        **options,
    )
    return folder


def opened(folder, checkpoint="checkpoint"):
    state = CheckpointState.load_checkpoint(folder / checkpoint)
    module = Module(folder / "training_model.onnx", state, folder / "eval_model.onnx")
    return state, module, Optimizer(folder / "optimizer_model.onnx", module)


def test_the_walk_through(tmp_path):
    made(tmp_path, additional_output_names=["y"])
    state = CheckpointState.load_checkpoint(str(tmp_path / "checkpoint"))
    model = Module(str(tmp_path / "training_model.onnx"), state, str(tmp_path / "eval_model.onnx"))
    optimizer = Optimizer(str(tmp_path / "optimizer_model.onnx"), model)
    optimizer.set_learning_rate(EXPECTED["lr"])
    losses = []
    for step in range(STEPS):
        model.train()
        train_loss, _ = model(*batch(step))
        optimizer.step()
        model.lazy_reset_grad()
        losses.append(train_loss)
    case = EXPECTED["cases"]["walk_through"]
    numpy.testing.assert_allclose([float(loss) for loss in losses], case["losses"], rtol=1e-4)
    assert numpy.mean(losses) == pytest.approx(numpy.mean(case["losses"]), rel=1e-4)
    assert f"{losses[0]:.3f}" == f"{case['losses'][0]:.3f}" and losses[0].dtype == numpy.float32

    model.eval()
    images, labels = samples("test")
    test_loss, logits = model(images, labels)
    shifted = logits.astype(float) - logits.max(1, keepdims=True)
    expected = (numpy.log(numpy.exp(shifted).sum(1)) - shifted[numpy.arange(len(labels)), labels]).mean()
    assert test_loss == pytest.approx(expected, rel=1e-5) and (logits.argmax(1) == labels).mean() > 0.6

    model.export_model_for_inferencing(str(tmp_path / "inference.onnx"), ["y"])
    plain = tt.Session(tmp_path / "inference.onnx", 1, loss=tt.loss.mse("y", "t"), optimizer=tt.optim.SGD())
    numpy.testing.assert_allclose(plain.predict(x=images)["y"], logits, rtol=1e-5)


@pytest.mark.parametrize("name", EXPECTED["cases"])
def test_steps_are_those_of_pytorch(tmp_path, name):
    case = EXPECTED["cases"][name]
    state, module, optimizer = opened(made(tmp_path, case["optimizer"], case.get("loss"), case.get("frozen", ())))
    optimizer.set_learning_rate(case.get("lr", EXPECTED["lr"]))
    scheduler = None
    if "warm_up" in case:
        scheduler = LinearLRScheduler(optimizer, case["warm_up"], case["total"], EXPECTED["lr"])
        assert optimizer.get_learning_rate() == 0
    losses, calls = [], case.get("calls", 1)
    for step in range(STEPS):
        losses += [module(*batch(step * calls + call, case.get("loss"))) for call in range(calls)]
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        module.lazy_reset_grad()
    numpy.testing.assert_allclose([float(loss) for loss in losses], case["losses"], rtol=2e-4)
    for weight in ("w1", "w2"):
        assert state.parameters[weight].data.sum(dtype=float) == pytest.approx(case[f"sum_of_{weight}"], abs=2e-3)
    for frozen in case.get("frozen", ()):
        numpy.testing.assert_array_equal(state.parameters[frozen].data, start_weights()[frozen])
        assert not state.parameters[frozen].requires_grad


def test_a_loss_may_be_looked_at_before_the_step(tmp_path):
    made(tmp_path)
    losses = []
    for looks in (False, True):
        _, module, optimizer = opened(tmp_path)
        for step in range(4):
            loss = module(*batch(step))
            before = float(loss) if looks else None
            optimizer.step()
            module.lazy_reset_grad()
            losses.append(before if looks else float(loss))
    numpy.testing.assert_allclose(losses[:4], losses[4:], rtol=1e-5)


def test_the_order_of_reset_and_step_is_free(tmp_path):
    _, module, optimizer = opened(made(tmp_path))
    _, other, other_optimizer = opened(tmp_path)
    for step in range(3):
        module(*batch(step)), other(*batch(step))
        optimizer.step(), other.lazy_reset_grad()
        module.lazy_reset_grad(), other_optimizer.step()
    numpy.testing.assert_array_equal(module.get_contiguous_parameters(), other.get_contiguous_parameters())


def test_a_call_whose_gradients_are_reset_changes_nothing(tmp_path):
    state, module, optimizer = opened(made(tmp_path))
    left_out = module(*batch(7))
    module.lazy_reset_grad()
    kept = module(*batch(0))
    optimizer.step()
    _, other, other_optimizer = opened(tmp_path)
    assert float(other(*batch(0))) == pytest.approx(float(kept), rel=1e-5)
    other_optimizer.step()
    numpy.testing.assert_allclose(module.get_contiguous_parameters(), other.get_contiguous_parameters(), rtol=1e-6)
    with pytest.raises(tt.Error, match="reset"):
        float(left_out)


def test_what_cannot_be_done_is_refused(tmp_path):
    state, module, optimizer = opened(made(tmp_path))
    with pytest.raises(tt.Error, match="no gradients"):
        optimizer.step()
    module(*batch(0))
    with pytest.raises(tt.Error, match="different numbers"):
        module(IMAGES[:3], LABELS[:3])
    with pytest.raises(tt.Error, match="present values"):
        state.parameters["w1"] = start_weights()["w1"]
    optimizer.step()
    with pytest.raises(tt.Error, match="no gradients"):
        optimizer.step()
    with pytest.raises(tt.Error, match="lazy_reset_grad"):
        module(*batch(0))
    with pytest.raises(tt.Error, match="not kept"):
        state.parameters["w1"].grad
    with pytest.raises(tt.Error, match="one array for each input"):
        module(IMAGES[:3])
    with pytest.raises(tt.Error, match="keeps all its outputs"):
        module.export_model_for_inferencing(tmp_path / "x.onnx", ["h"])
    with pytest.raises(tt.Error, match="another module"):
        Module(tmp_path / "training_model.onnx", state)
    with pytest.raises(tt.Error, match="an optimizer already"):
        Optimizer(tmp_path / "optimizer_model.onnx", module)
    with pytest.raises(tt.Error, match="generate_artifacts"):
        Module(tmp_path / "network.onnx", CheckpointState.load_checkpoint(tmp_path / "checkpoint"))
    with pytest.raises(tt.Error, match="no checkpoint"):
        CheckpointState.load_checkpoint(tmp_path / "network.onnx")
    module.eval()
    with pytest.raises(tt.Error, match="no class"):
        module(IMAGES[:2], numpy.array([3, 10]))


def test_objects_of_a_wrong_class_are_refused(tmp_path):
    state, module, optimizer = opened(made(tmp_path))
    again = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
    calls = [
        lambda: Module(tmp_path / "training_model.onnx", None),
        lambda: Module(None, again),
        lambda: Module(tmp_path / "training_model.onnx", again, device=3),
        lambda: Optimizer(tmp_path / "optimizer_model.onnx", None),
        lambda: LinearLRScheduler(None, 1, 2, 0.1),
        lambda: LinearLRScheduler(optimizer, "1", 2, 0.1),
        lambda: LinearLRScheduler(optimizer, 3, 2, 0.1),
        lambda: LinearLRScheduler(optimizer, 1, 2, "fast"),
        lambda: optimizer.set_learning_rate("fast"),
        lambda: CheckpointState.save_checkpoint(None, tmp_path / "other"),
        lambda: CheckpointState.load_checkpoint(None),
        lambda: module(None, None),
        lambda: module.copy_buffer_to_parameters(None),
        lambda: setattr(state.parameters["w1"], "data", None),
        lambda: module.export_model_for_inferencing(None, ["y"]),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(tt.Error) as error:
            call()
        assert error.value.diagnostics, number
    module(*batch(0))
    optimizer.step()


@pytest.mark.parametrize(
    "options, text",
    [
        ({"requires_grad": None}, "requires a gradient"),
        ({"requires_grad": ["nope"]}, "nope"),
        ({"frozen_params": ["w1"]}, "frozen and train"),
        ({"loss": "mse"}, "LossType"),
        ({"ort_format": True, "nominal_checkpoint": True}, "nominal_checkpoint"),
        ({"additional_output_names": ["h"]}, "no output"),
        ({"loss_input_names": ["a", "b"]}, "one value"),
    ],
)
def test_artifacts_that_cannot_be_made_are_refused(tmp_path, options, text):
    model = dense_network(tmp_path / "network.onnx", start_weights())
    whole = {"requires_grad": ALL, "loss": artifacts.LossType.CrossEntropyLoss, "artifact_directory": tmp_path / "made"}
    with pytest.raises(tt.Error, match=text):
        artifacts.generate_artifacts(model, **(whole | options))
    assert not (tmp_path / "made").exists()


def test_a_checkpoint_continues(tmp_path):
    state, module, optimizer = opened(made(tmp_path))
    optimizer.set_learning_rate(0.02)
    scheduler = LinearLRScheduler(optimizer, 2, 30, 0.02)

    def train(module, optimizer, scheduler, first, last):
        losses = []
        for step in range(first, last):
            losses.append(module(*batch(step)))
            optimizer.step()
            scheduler.step()
            module.lazy_reset_grad()
        return [float(loss) for loss in losses]

    train(module, optimizer, scheduler, 0, 4)
    state.properties["epoch"], state.properties["note"] = 3, "here"
    CheckpointState.save_checkpoint(state, tmp_path / "whole", include_optimizer_state=True)
    CheckpointState.save_checkpoint(state, tmp_path / "weights")
    expected = train(module, optimizer, scheduler, 4, 8)

    again, module, optimizer = opened(tmp_path, "whole")
    assert again.properties["epoch"] == 3 and "note" in again.properties and len(again.properties) == 2
    assert train(module, optimizer, LinearLRScheduler(optimizer, 2, 30, 0.02), 4, 8) == expected

    weights, module, optimizer = opened(tmp_path, "weights")
    assert float(module(*batch(4))) == pytest.approx(expected[0], rel=1e-5)
    optimizer.step()
    module.lazy_reset_grad()
    assert float(module(*batch(5))) != pytest.approx(expected[1], rel=1e-3)  # moments began anew


def test_parameters_are_read_and_set(tmp_path):
    state = CheckpointState.load_checkpoint(made(tmp_path, frozen=["b1"]) / "checkpoint")
    assert (
        {name for name, _ in state.parameters} == set(ALL) and len(state.parameters) == 4 and "w1" in state.parameters
    )
    numpy.testing.assert_array_equal(state.parameters["w1"].data, start_weights()["w1"])
    state.parameters["b2"].data = numpy.full(10, 0.5, numpy.float32)
    module = Module(tmp_path / "training_model.onnx", state)
    numpy.testing.assert_array_equal(state.parameters["b2"].data, numpy.full(10, 0.5))
    assert module.get_parameters_size() == 32 * 64 + 32 + 320 + 10
    assert module.get_parameters_size(trainable_only=True) == 32 * 64 + 320 + 10
    flat = module.get_contiguous_parameters(True)
    module.copy_buffer_to_parameters(flat * 2)
    numpy.testing.assert_array_equal(module.get_contiguous_parameters(True), flat * 2)
    numpy.testing.assert_array_equal(state.parameters["b1"].data, start_weights()["b1"])
    with pytest.raises(tt.Error, match="another size"):
        module.copy_buffer_to_parameters(flat[:5])
    with pytest.raises(tt.Error, match="another type"):
        state.parameters["b1"].data = numpy.zeros(3, numpy.float32)
    with pytest.raises(KeyError):
        state.parameters["nope"]
    with pytest.raises(tt.Error, match="int, a float"):
        state.properties["x"] = [1]
    assert module.input_names() == ["x", "labels"] and module.output_names() == ["loss"]
    module.eval()
    with pytest.raises(tt.Error, match="no model for evaluation"):
        module(*batch(0))


def test_a_session_that_was_opened_early_takes_the_steps(tmp_path):
    state, module, optimizer = opened(made(tmp_path))
    state.parameters["w1"].data  # opens a session before the first call
    losses = []
    for step in range(3):
        losses.append(module(*batch(step)))
        optimizer.step()
        module.lazy_reset_grad()
    optimizer.set_learning_rate(0)
    expected = module(*batch(3)[:1], batch(3)[1])
    optimizer.step()
    module.lazy_reset_grad()
    assert float(module(*batch(3))) == pytest.approx(float(expected), rel=1e-5)


PARITY = ROOT / "tests" / "data" / "parity"


def batch_norm_network(folder):
    """A network with BatchNormalization, and the calls that train it."""
    path = PARITY / "conv_bn_torchscript.onnx"
    names = [p["name"] for p in tt.inspect(path).data["parameters"] if p["trainable"]]
    artifacts.generate_artifacts(
        path,
        requires_grad=names,
        loss=artifacts.LossType.CrossEntropyLoss,
        optimizer=artifacts.OptimType.SGD,
        artifact_directory=folder,
        additional_output_names=["logits"],
    )
    facts = json.loads((PARITY / "conv_bn.json").read_text())
    with numpy.load(PARITY / "conv_bn_batches.npz") as file:
        arrays = dict(file)
    size = facts["batch"]
    feed = facts["feeds"][facts["input"]]
    image = (arrays[facts["input"]] * feed["scale"] + feed["offset"]).astype(numpy.float32)
    labels = next(value for name, value in arrays.items() if name != facts["input"])
    return [(image[i * size : i * size + size], labels[i * size : i * size + size]) for i in range(4)]


def test_statistics_of_batches_are_those_of_the_step(tmp_path):
    calls = batch_norm_network(tmp_path)
    found = []
    for looks in (False, True):
        state, module, optimizer = opened(tmp_path)
        optimizer.set_learning_rate(0.05)
        losses = []
        for call in calls:
            loss, _ = module(*call)
            if looks:
                assert float(loss) > 0
            optimizer.step()
            module.lazy_reset_grad()
            losses.append(float(loss))
        module.eval()
        found.append((losses, float(module(*calls[0])[0]), module.get_contiguous_parameters()))
    assert found[0][0] == found[1][0] and found[0][1] == found[1][1]  # bit for bit
    numpy.testing.assert_array_equal(found[0][2], found[1][2])


def test_a_step_that_a_look_took_is_not_to_be_seen(tmp_path):
    calls = batch_norm_network(tmp_path)
    state, module, optimizer = opened(tmp_path)
    loss, logits = module(*calls[0])
    with pytest.raises(tt.Error, match="statistics from all calls"):
        module(*calls[1])
    with pytest.raises(tt.Error, match="training form"):
        logits.mean()
    assert float(loss) > 0
    name = next(name for name, _ in state.parameters)
    for use in (
        lambda: state.parameters[name].data,
        lambda: optimizer.set_learning_rate(1),
        lambda: module(*calls[1]),
        lambda: CheckpointState.save_checkpoint(state, tmp_path / "early"),
        lambda: module.eval()(*calls[0]),
    ):
        with pytest.raises(tt.Error, match="look at the loss after"):
            use()
    module.train()
    optimizer.step()
    assert state.parameters[name].data.size


def test_a_known_array_holds_nothing_but_its_value():
    class Feeds:
        pass

    feeds = Feeds()
    gone = weakref.ref(feeds)
    array = LazyArray(functools.partial(lambda _: 3.0, feeds))
    del feeds
    assert float(array) == 3
    assert gone() is None


def test_parameters_have_the_methods_of_a_mapping(tmp_path):
    state = opened(made(tmp_path))[0]
    assert [name for name, _ in state.parameters.items()] == list(state.parameters.keys())
    assert [parameter.name for parameter in state.parameters.values()] == list(state.parameters.keys())
