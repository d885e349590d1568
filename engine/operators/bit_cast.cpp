// Reinterprets the bits as another element type of the same size.
#include "engine/operators/elementwise.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_bit_cast(const NodeView& node) {
  const std::string& to = node.attributes().text("to");
  const auto dtype = dtype_from_name(to);
  if (!dtype) node.fail("attribute 'to'", "the name of an element type", "\"" + to + "\"");
  const DType from = node.input(0).dtype;
  if (size_of(*dtype) != size_of(from)) {
    node.fail("types of different sizes", std::to_string(size_of(from)) + " bytes", to);
  }
  if (*dtype == DType::boolean && from != DType::boolean) {
    node.fail("attribute 'to'", "a type all of whose bits mean something", to);
  }
  return {{*dtype, node.input(0).shape}};
}

}  // namespace

Operator bit_cast() {
  return {.name = "BitCast",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"to", std::string(), true}},
          .infer = infer_bit_cast,
          .not_differentiable = "bits have no slope",
          .takes_float8 = true};
}

}  // namespace tandem::operators
