// What ai.onnx.ml does to numbers before a model: scaling, norms, gaps, thresholds, columns.
#include <fmt/format.h>

#include <cmath>

#include "importer/node_context.h"

namespace tandem::importer::operators::ml {
namespace {

std::int64_t features_of(NodeContext& node) {
  const Shape& x = node.shape(0);
  if (x.empty() || x.size() > 2) node.fail("the input", "[N, F] or [F]", to_string(x));
  return x.back();
}

template <class T>
Term row_of(NodeContext& node, const std::vector<T>& numbers) {
  return node.constant(HostTensor::from({static_cast<std::int64_t>(numbers.size())}, numbers));
}

// One for each feature, or one for all.
void check_count(NodeContext& node, const char* name, std::size_t count) {
  const std::int64_t features = features_of(node);
  if (count != 1 && static_cast<std::int64_t>(count) != features) {
    node.fail(fmt::format("number of values of '{}'", name), fmt::format("1 or {}", features),
              std::to_string(count));
  }
}

}  // namespace

// (x - offset) scale
void scaler(NodeContext& node) {
  Term y = node.cast(node.in(0), DType::float32);
  const auto numbers = [&](const char* name) {
    const std::vector<float> given = node.numbers(name);
    if (!given.empty()) check_count(node, name, given.size());
    return given;
  };
  const std::vector<float> offset = numbers("offset"), scale = numbers("scale");
  if (!offset.empty()) y = node.make("Sub", {y, row_of(node, offset)});
  if (!scale.empty()) y = node.make("Mul", {y, row_of(node, scale)});
  node.out(0, y);
}

// x over its largest element, the sum of its sizes or its length, along the last axis; x where that
// is 0. "MAX" is of x itself, not of its sizes, as in onnxruntime.
void normalizer(NodeContext& node) {
  features_of(node);
  const Term x = node.cast(node.in(0), DType::float32);
  const Attributes last{{"axes", Ints{static_cast<std::int64_t>(x.type.rank()) - 1}},
                        {"keepdims", std::int64_t{1}}};
  const std::string norm = node.text("norm", "MAX");
  const Term zero = node.scalar(0, DType::float32), one = node.scalar(1, DType::float32);
  Term total;
  if (norm == "MAX") {
    total = node.make("ReduceMax", {x}, last);
  } else if (norm == "L1") {
    total = node.make("ReduceSum", {node.make("Abs", {x})}, last);
  } else if (norm == "L2") {
    total = node.make("ReduceSum", {node.make("Mul", {x, x})}, last);
  } else {
    node.fail("norm", "MAX, L1 or L2", norm);
  }
  Term divisor = node.make("Where", {node.make("Equal", {total, zero}), one, total});
  // The root after the choice, so that its slope at 0 does not make gradients infinite.
  if (norm == "L2") divisor = node.make("Sqrt", {divisor});
  node.out(0, node.make("Div", {x, divisor}));
}

// What equals the one value becomes that of its feature.
void imputer(NodeContext& node) {
  const std::vector<float> floats = node.numbers("imputed_value_floats");
  const Ints integers = node.integers("imputed_value_int64s", {});
  const double replaced = node.number("replaced_value_float", 0);
  const std::int64_t replaced_integer = node.integer("replaced_value_int64", 0);
  const Term& x = node.in(0);
  const DType dtype = x.type.dtype;
  const bool is_number = is_float(dtype);
  const std::size_t count = is_number ? floats.size() : integers.size();
  if (count == 0) {
    node.fail(fmt::format("no value for gaps of {}", name_of(dtype)),
              is_number ? "imputed_value_floats" : "imputed_value_int64s");
  }
  check_count(node, is_number ? "imputed_value_floats" : "imputed_value_int64s", count);
  const Term values = node.cast(is_number ? row_of(node, floats) : row_of(node, integers), dtype);
  Term gaps;
  if (is_number && std::isnan(replaced)) {
    gaps = node.make("IsNaN", {x});
  } else {
    const Term wanted =
        is_number ? node.scalar(replaced, dtype)
                  : node.cast(node.constant(HostTensor::from<std::int64_t>({}, {replaced_integer})),
                              dtype);
    gaps = node.make("Equal", {x, wanted});
  }
  node.out(0, node.make("Where", {gaps, values, x}));
}

void binarizer(NodeContext& node) {
  const Term& x = node.in(0);
  // Compared as a number with a fraction, whatever x is.
  const DType compared = is_float(x.type.dtype) ? x.type.dtype : DType::float64;
  const Term above = node.make(
      "Greater", {node.cast(x, compared), node.scalar(node.number("threshold", 0), compared)});
  node.out(0, node.cast(above, x.type.dtype));
}

// All inputs, one after the other in each row.
void feature_vectorizer(NodeContext& node) {
  const Ints counts = node.integers("inputdimensions", {});
  if (counts.size() != node.input_count() || counts.empty()) {
    node.fail("inputdimensions", fmt::format("{} numbers", node.input_count()),
              std::to_string(counts.size()));
  }
  std::vector<Term> columns;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Term x = node.cast(node.in(i), DType::float32);
    const std::int64_t samples = x.type.rank() < 2 ? 1 : x.type.shape[0];
    const std::int64_t count = samples > 0 ? x.type.elements() / samples : 0;
    if (count != counts[i]) {
      node.unsupported(fmt::format("with an input of {} numbers a sample of which it takes {}",
                                   count, counts[i]),
                       "inputdimensions that are those of the inputs");
    }
    columns.push_back(node.reshape(x, {samples, count}));
  }
  node.out(0, columns.size() == 1 ? columns[0]
                                  : node.make("Concat", columns, {{"axis", std::int64_t{1}}}));
}

}  // namespace tandem::importer::operators::ml
