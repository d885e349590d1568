"""Which arrays a step takes, and how others are refused."""

import dense
import numpy
import pytest

import tandem_train as tt


def refusal(session, **arrays):
    with pytest.raises(tt.Error) as error:
        session.step({**dense.batch(0), **arrays})
    assert error.value.kind == "usage"
    assert session.step(dense.batch(0)) > 0  # no step was lost, nothing is broken
    return error.value.diagnostics


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "uint8", "bool"])
def test_other_types_are_refused(session, dtype):
    (reported,) = refusal(session, x=dense.batch(0)["x"].astype(dtype))
    assert (reported.path, reported.expected, reported.got) == ("x", "float32[8, 4]", f"{dtype}[8, 4]")


@pytest.mark.parametrize("value", [[1.0, 2.0], 3.0, None, "x", b"x", numpy.float32(1), {"a": 1}, object()])
def test_objects_that_are_no_arrays_are_refused(session, value):
    (reported,) = refusal(session, x=value)
    assert reported.path == "x" and "__dlpack__" in reported.expected and type(value).__name__ in reported.got


@pytest.mark.parametrize("dtype", ["complex64", "O", "U3", "S2", "datetime64[s]", ">f4", [("a", "f4")]])
def test_types_of_numpy_that_no_input_has_are_refused(session, dtype):
    (reported,) = refusal(session, x=numpy.zeros((8, 4)).astype(dtype) if dtype != "O" else numpy.empty((8, 4), dtype))
    assert reported.path == "x"


@pytest.mark.parametrize("shape", [(8, 3), (8, 4, 1), (9, 4), (0, 4), (), (4,), (7, 4)])
def test_other_shapes_are_refused(session, shape):
    reported = refusal(session, x=numpy.zeros(shape, numpy.float32))
    assert reported[0].expected


def test_all_refused_arrays_are_named(session):
    reported = refusal(session, x=[1], t=3)
    assert {d.path for d in reported} == {"x", "t"}


def test_names_are_checked(session):
    assert refusal(session, nope=dense.batch(0)["x"])[0].path == "nope"
    with pytest.raises(tt.Error, match="not fed"):
        session.step(x=dense.batch(0)["x"])
    with pytest.raises(tt.Error, match="x"):
        session.step()
    with pytest.raises(tt.Error, match="twice"):
        session.step(dense.batch(0), x=dense.batch(0)["x"])
    with pytest.raises(tt.Error, match="by name"):
        session.step([1])
    with pytest.raises(tt.Error, match="no str"):
        session.step({1: dense.batch(0)["x"]})
    with pytest.raises(tt.Error, match="at least one"):
        session.predict()


def views(array):
    """Arrays of equal values, in memory of other orders."""
    wide = numpy.zeros((16, 9, 2), numpy.float32)
    wide[::2, 1:5, 1] = array
    read_only = array.copy()
    read_only.flags.writeable = False
    unaligned = numpy.frombuffer(b"\0" + array.tobytes(), numpy.float32, offset=1).reshape(array.shape)
    yield from (numpy.asfortranarray(array), array[::-1].copy()[::-1], array[:, ::-1].copy()[:, ::-1])
    yield from (wide[::2, 1:5, 1], read_only, unaligned, array.T.copy().T)


def test_arrays_of_any_order_are_copied(dense_model):
    feeds = dense.batch(0)
    expected = tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS).step(feeds)
    for view in views(feeds["x"]):
        numpy.testing.assert_array_equal(view, feeds["x"])
        assert tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS).step(x=view, t=feeds["t"]) == expected
    row = numpy.broadcast_to(feeds["x"][:1], (8, 4))
    session = tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS)
    numpy.testing.assert_array_equal(session.predict(x=row)["y"], session.predict(x=row.copy())["y"])


class OnDevice:
    """An array that says where it lies, with the numbers of DLPack."""

    def __init__(self, device, array=None):
        self.device, self.array = device, array

    def __dlpack_device__(self):
        if isinstance(self.device, Exception):
            raise self.device
        return self.device

    def __dlpack__(self, **options):
        if self.array is None:
            raise AssertionError("nobody may ask for the values")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("device, name", [((2, 1), "cuda:1"), ((10, 0), "rocm:0"), ((8, 0), "metal:0"), ((99, 4), "99:4")])
def test_arrays_on_other_devices_are_refused(session, device, name):
    (reported,) = refusal(session, x=OnDevice(device))
    assert reported.path == "x" and name in reported.got and ".cpu()" in reported.fix


def test_what_a_package_says_of_its_array_is_shown(session):
    assert "no such place" in refusal(session, x=OnDevice(ValueError("no such place")))[0].got
    assert "nobody" in refusal(session, x=OnDevice((1, 0)))[0].got


def test_any_object_with_dlpack_is_taken(dense_model):
    feeds = dense.batch(0)
    expected = tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS).step(feeds)
    session = tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS)
    assert session.step(x=OnDevice((1, 0), feeds["x"]), t=OnDevice((3, 0), feeds["t"])) == expected


def test_results_own_their_memory(session):
    y = session.predict(x=dense.batch(0)["x"])["y"]
    before = y.copy()
    session.predict(x=dense.batch(1)["x"])
    del session
    numpy.testing.assert_array_equal(y, before)
    y[:] = 1
    assert y.dtype == numpy.float32 and y.flags.writeable and y.flags.c_contiguous
