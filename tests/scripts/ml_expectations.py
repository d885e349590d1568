"""Writes tests/data/ml_operators.json: operators of ai.onnx.ml with onnxruntime's results.

    python tests/scripts/ml_expectations.py

onnxruntime computes in float32, without optimising the one node (node_cases.py). Numbers come from one seeded generator; gaps of
Imputer are a number, since JSON has no NaN.
"""

import numpy as np
from node_cases import NodeCases

random = np.random.default_rng(11)
cases = NodeCases("ai.onnx.ml", 3)
case = cases.add


def numbers(*shape):
    return random.uniform(-1, 1, shape).round(3).astype(np.float32)


def some(count):
    return [float(str(v)) for v in numbers(count)]


def integers(values):
    return np.array(values, np.int64)


def regressors():
    x = numbers(5, 3)
    case("one target", "LinearRegressor", [x], {"coefficients": some(3), "intercepts": [0.25]})
    case("two targets", "LinearRegressor", [x], {"coefficients": some(6), "intercepts": some(2), "targets": 2})
    case("no intercepts", "LinearRegressor", [x], {"coefficients": some(3)})
    case("a vector", "LinearRegressor", [x[0]], {"coefficients": some(3), "intercepts": [0.5]})
    for transform in ("SOFTMAX", "LOGISTIC"):
        case(transform, "LinearRegressor", [x], {"coefficients": some(6), "intercepts": some(2), "targets": 2, "post_transform": transform})


def classifiers():
    x = 2 * numbers(6, 4)
    three = {"coefficients": some(12), "intercepts": some(3)}
    for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        case(f"three classes, {transform}", "LinearClassifier", [x], {**three, "classlabels_ints": [0, 1, 2], "post_transform": transform, "multi_class": 1}, 2)
    case("other labels", "LinearClassifier", [x], {**three, "classlabels_ints": [7, -3, 40]}, 2)
    case("text", "LinearClassifier", [x], {**three, "classlabels_strings": ["a", "b", "c"], "post_transform": "SOFTMAX"}, 2)
    half, shift = some(4), some(1)
    mirrored = {"coefficients": [-v for v in half] + half, "intercepts": [-shift[0]] + shift}
    for transform in ("LOGISTIC", "SOFTMAX", "NONE"):
        case(f"mirrored rows, {transform}", "LinearClassifier", [x], {**mirrored, "classlabels_ints": [0, 1], "post_transform": transform}, 2)
    case("two rows", "LinearClassifier", [x], {"coefficients": some(8), "intercepts": some(2), "classlabels_ints": [2, 5], "post_transform": "LOGISTIC"}, 2)
    for transform in ("NONE", "LOGISTIC"):
        case(f"one row, {transform}", "LinearClassifier", [x], {"coefficients": half, "intercepts": shift, "classlabels_ints": [3, 7], "post_transform": transform}, 2)
    case("equal scores", "LinearClassifier", [x], {"coefficients": [0.0] * 12, "intercepts": [0.5, 1.0, 1.0], "classlabels_ints": [4, 5, 6], "post_transform": "SOFTMAX"}, 2)
    case("scores of 0", "LinearClassifier", [0 * x], {"coefficients": some(12), "intercepts": [0.0, 1.0, 0.0], "classlabels_ints": [0, 1, 2], "post_transform": "SOFTMAX_ZERO"}, 2)
    case("a vector", "LinearClassifier", [x[0]], {**three, "classlabels_ints": [0, 1, 2]}, 2)
    case("integers", "LinearClassifier", [integers([[1, 2, 0, 4], [-1, 0, 0, 3]])], {**three, "classlabels_ints": [0, 1, 2]}, 2)


def features():
    x = 2 * numbers(4, 3)
    case("each", "Scaler", [x], {"offset": some(3), "scale": some(3)})
    case("one for all", "Scaler", [x], {"offset": [0.5], "scale": [2.5]})
    case("integers", "Scaler", [integers([[1, 2], [3, -4]])], {"offset": [0.5, 1.0], "scale": [2.0, 0.25]})
    case("a vector", "Scaler", [x[0]], {"offset": some(3), "scale": some(3)})
    y = np.concatenate((x, [[0, 0, 0], [-1, -0.5, -3]])).astype(np.float32)
    for norm in ("MAX", "L1", "L2"):
        case(norm, "Normalizer", [y], {"norm": norm})
        case(f"{norm}, a vector", "Normalizer", [y[0]], {"norm": norm})
    case("integers", "Normalizer", [integers([[1, 2, 5], [0, 3, 1]])], {"norm": "L1"})
    gaps = np.array([[1, -9], [-9, 2], [3, 4]], np.float32)
    case("each", "Imputer", [gaps], {"imputed_value_floats": [5.5, 6.5], "replaced_value_float": -9.0})
    case("one for all", "Imputer", [gaps], {"imputed_value_floats": [5.5], "replaced_value_float": -9.0})
    case("integers", "Imputer", [integers([[0, 1], [2, 0]])], {"imputed_value_int64s": [7, 8], "replaced_value_int64": 0})
    case("below, at, above", "Binarizer", [np.array([[0.25, 0.5, 0.75], [-1, 0, 1]], np.float32)], {"threshold": 0.5})
    case("default", "Binarizer", [x])
    case("three", "FeatureVectorizer", [x, numbers(4, 1), numbers(4, 2)], {"inputdimensions": [3, 1, 2]})
    case("one", "FeatureVectorizer", [numbers(2, 2, 2)], {"inputdimensions": [4]})
    case("integers", "FeatureVectorizer", [integers([[1, 2], [3, 4]]), integers([[5], [6]])], {"inputdimensions": [2, 1]})


def categories():
    x = numbers(3, 4)
    case("columns", "ArrayFeatureExtractor", [x, integers([2, 0, 2])])
    case("a vector", "ArrayFeatureExtractor", [x[0], integers([[1], [3]])])
    case("three axes", "ArrayFeatureExtractor", [numbers(2, 3, 2), integers([1])])
    case("integers", "ArrayFeatureExtractor", [integers([5, 6, 7]), integers([1, 0])])
    case("integers", "LabelEncoder", [integers([[1, 2], [3, 9]])], {"keys_int64s": [1, 2, 2, 3], "values_int64s": [10, 20, 21, 30], "default_int64": -5})
    case("to numbers", "LabelEncoder", [integers([1, 2, 3])], {"keys_int64s": [3, 1], "values_floats": [0.5, 1.5], "default_float": -1.0})
    case("of numbers", "LabelEncoder", [np.array([1, 2.5, 3], np.float32)], {"keys_floats": [1.0, 2.5], "values_int64s": [4, 5]})
    case("numbers to numbers", "LabelEncoder", [np.array([[1, 2.5]], np.float32)], {"keys_floats": [2.5, 1.0], "values_floats": [0.25, 0.75]})
    case("unknown", "OneHotEncoder", [integers([[1, 2], [3, 9]])], {"cats_int64s": [1, 3, 2], "zeros": 1})
    case("all known", "OneHotEncoder", [integers([1, 3, 3])], {"cats_int64s": [1, 3, 2], "zeros": 0})
    case("fractions", "OneHotEncoder", [np.array([1.75, 2, -0.5], np.float32)], {"cats_int64s": [1, 2, 0]})


def main():
    for part in (regressors, classifiers, features, categories):
        part()
    cases.write("ml_operators.json")


if __name__ == "__main__":
    main()
