"""Python values become settings of train.toml."""

import pathlib
import tomllib

import numpy
import pytest

import tandem_train as tt
from tandem_train._toml import rules_of, settings_of, toml_value

VALUES = [
    True, False, 0, -7, 2**63 - 1, 0.1, 1e-30, 3e300, float("inf"), "", "plain", 'a "quoted" \\ one', "two\nlines\t\x01",
    "Ω", [], [1, 2.5, "x"], [[1], []], {}, {"a": 1, "b.c": [{"d e": False}], '"': {}},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_read_back_equal(value):
    assert tomllib.loads("value = " + toml_value(value, "key"))["value"] == value


def test_other_types_of_numbers_and_texts():
    assert toml_value(numpy.float32(0.5), "k") == "0.5"
    assert toml_value(numpy.int64(3), "k") == "3"
    assert toml_value(numpy.bool_(True), "k") == "true"
    assert toml_value((1, 2), "k") == "[ 1, 2 ]"
    assert toml_value(pathlib.Path("a/b"), "k") == '"a/b"'
    assert toml_value(float("nan"), "k") == "nan" and toml_value(float("-inf"), "k") == "-inf"
    assert toml_value("${HOME}", "k") == '"$${HOME}"'  # no variable of the environment


@pytest.mark.parametrize("value", [None, object(), {1: 2}, 2**63, b"x", {1, 2}, 1j, "\udcff", numpy.zeros(2)], ids=str)
def test_values_that_cannot_be_settings_are_refused(value):
    with pytest.raises(tt.Error) as error:
        toml_value([value], "optimizer.lr")
    assert error.value.diagnostics[0].path.startswith("optimizer.lr.0")


def test_settings_and_rules():
    assert settings_of({"a.b": 1}, {"c": {"d": "e"}}) == ["a.b=1", 'c={ d = "e" }']
    assert rules_of([{"at": "**", "on": "cpu"}, "{ at = 1 }"]) == ['{ at = "**", on = "cpu" }', "{ at = 1 }"]
    for wrong in ({"": 1}, {"a=b": 1}, {3: 1}):
        with pytest.raises(tt.Error, match="no key"):
            settings_of(wrong)
    with pytest.raises(tt.Error, match="twice"):
        settings_of({"a": 1}, {"a": 2})


def test_diagnostics_read_like_those_of_the_program():
    reported = tt.Diagnostic("wrong", file="a.toml", line=3, column=5, path="x.y", expected="1", got="2", fix="write 1")
    assert str(reported) == "a.toml:3:5: x.y: wrong: expected 1, got 2 (write 1)"
