"""Ctrl-C during calls of a Session: it comes at once, and nothing is lost."""

import signal
import time

import dense
import numpy
import pytest
from programs import finished, started

WIDE = """
from small_model import dense_network
import pathlib
rng = numpy.random.default_rng(0)
shapes = {"w1": (20000, 4), "b1": (20000,), "w2": (3, 20000), "b2": (3,)}
weights = {name: rng.normal(0, 0.01, shape).astype(numpy.float32) for name, shape in shapes.items()}
path = dense_network(pathlib.Path(sys.argv[1]) / "wide.onnx", weights)
session = tt.Session(path, 64, threads=1, settings=dense.SETTINGS)
rows = 10_000_000  # minutes
arrays = {"x": numpy.ones((rows, 4), numpy.float32), "t": numpy.ones((rows, 3), numpy.float32)}
few = {name: array[:64] for name, array in arrays.items()}
"""


def interrupted(process, after=0.3):
    """Sends SIGINT a moment after the program says that it begins; the output, and how long the program then took."""
    for line in process.stdout:
        if line.startswith("begin"):
            break
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    output, _ = process.communicate(timeout=120)
    return output, time.monotonic() - sent


@pytest.mark.parametrize("call", ["predict(x=arrays['x'])", "evaluate(arrays)"])
def test_calls_over_many_samples_end(tmp_path, call):
    process = started(
        WIDE
        + f"""
loss = session.step(few)
expected = session.predict(x=few["x"])["y"]
session.evaluate(few)
print("begin", flush=True)
try:
    session.{call}
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", flush=True)
numpy.testing.assert_array_equal(session.predict(x=few["x"])["y"], expected)
assert session.steps == 1 and numpy.isfinite(session.evaluate(few)["loss"]) and session.step(few) < loss
try:
    while True:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
except KeyboardInterrupt:
    print("the handler is Python's")
""",
        tmp_path,
    )
    output, seconds = interrupted(process, 1)
    assert process.returncode == 0, output
    assert output.split("\n")[0] == "interrupted" and "handler is Python's" in output
    assert seconds < 30, "it ended by itself"


def test_a_step_is_whole(dense_model):
    process = started(
        """
        session = open_session(sys.argv[1])
        taken = 0
        print("begin", flush=True)
        try:
            while True:
                session.step(dense.batch(taken % 7))
                taken += 1
        except KeyboardInterrupt:
            pass
        assert session.steps in (taken, taken + 1)
        other = open_session(sys.argv[1])
        for step in range(session.steps):
            other.step(dense.batch(step % 7))
        for name, value in other.parameters.items():
            numpy.testing.assert_array_equal(session.parameters[name], value)
        print("equal", session.steps)
        """,
        dense_model,
    )
    output, _ = interrupted(process)
    assert process.returncode == 0 and output.startswith("equal"), output


def test_a_handler_of_the_program_is_left_alone(dense_model):
    output = finished(
        """
        seen = []
        signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
        session = open_session(sys.argv[1])
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        x = numpy.ones((1_000_000, 4), numpy.float32)
        y = session.predict(x=x)["y"]
        time.sleep(0.5)
        print(y.shape, seen)
        """,
        dense_model,
    )
    assert output.split() == ["(1000000,", "3)", "[2]"]


def test_parts_are_predicted_as_the_whole(dense_model, session):
    x = dense.batch(0, 8 * 5 + 3)["x"]
    numpy.testing.assert_allclose(session.predict(x=x)["y"], dense.outputs(dense.weights(), x), atol=1e-5)
