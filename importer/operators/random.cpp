// RandomUniform, RandomNormal and what takes its shape from another tensor; Bernoulli and
// Multinomial. The file's `seed` is not read: numbers come from the run's seed, so that each step
// has others.

#include "importer/operators/element_type.h"

namespace tandem::importer::operators {
namespace {

// `dtype`: that of input 0 where there is one, else float32.
DType wanted_type(NodeContext& node, DType missing) {
  const std::int64_t type = node.integer("dtype", dtype_to_onnx(missing));
  const auto dtype = dtype_from_onnx(static_cast<std::int32_t>(type));
  if (!dtype || !is_float(*dtype) || type != static_cast<std::int32_t>(type)) {
    node.unsupported("element type " + onnx_type_name(static_cast<std::int32_t>(type)) +
                     " is not supported");
  }
  return node.session().type_in_graph(*dtype);
}

// `dtype` of results that count; numbers of any type.
DType wanted_number(NodeContext& node, DType missing) {
  return number_type(node, node.integer("dtype", dtype_to_onnx(missing)));
}

// Numbers from 0 to below 1.
Term uniform(NodeContext& node, DType dtype, const Shape& shape) {
  return node.make("RandomUniformLike", {node.expand(node.scalar(0, dtype), shape)});
}

void make(NodeContext& node, const Term& like, bool normal) {
  const char* a = normal ? "mean" : "low";
  const char* b = normal ? "scale" : "high";
  node.out(0, node.make(normal ? "RandomNormalLike" : "RandomUniformLike", {like},
                        {{a, node.number(a, 0)}, {b, node.number(b, 1)}}));
}

void of_shape(NodeContext& node, bool normal) {
  const Ints shape = node.integers("shape", {});
  if (!checked_elements(shape, node.session().file.limits.tensor_bytes / 8)) {
    node.fail("shape", "extents >= 0", to_string(Shape(shape)));
  }
  make(node, node.expand(node.scalar(0, wanted_type(node, DType::float32)), shape), normal);
}

void like(NodeContext& node, bool normal) {
  const Term& x = node.in(0);
  const DType dtype = wanted_type(node, is_float(x.type.dtype) ? x.type.dtype : DType::float32);
  make(node, dtype == x.type.dtype ? x : node.expand(node.scalar(0, dtype), x.type.shape), normal);
}

}  // namespace

void random_uniform(NodeContext& node) { of_shape(node, false); }
void random_normal(NodeContext& node) { of_shape(node, true); }
void random_uniform_like(NodeContext& node) { like(node, false); }
void random_normal_like(NodeContext& node) { like(node, true); }

// 1 with probability x, else 0.
void bernoulli(NodeContext& node) {
  const Term x = node.widen(node.in(0));
  const DType dtype = wanted_number(node, node.dtype(0));
  const Term ones = node.make("Less", {uniform(node, x.type.dtype, x.type.shape), x});
  node.out(0, node.make("Cast", {ones}, {{"to", std::string(name_of(dtype))}}));
}

// x [batch, classes] are logarithms of weights. A sample is the number of classes but the last
// whose running sum of weights is at most u times the sum of all, so that a weight of 0 is never
// drawn.
void multinomial(NodeContext& node) {
  constexpr std::int64_t limit = 1 << 24;
  if (node.rank(0) != 2 || node.shape(0)[1] < 1) {
    node.fail("input", "[batch, classes]", to_string(node.shape(0)));
  }
  const std::int64_t batch = node.shape(0)[0], classes = node.shape(0)[1];
  const std::int64_t samples = node.integer("sample_size", 1);
  if (samples < 1 || samples > limit) {
    node.fail("sample_size", "1 to 2^24", std::to_string(samples));
  }
  const DType dtype = wanted_number(node, DType::int32);
  const Term x = node.widen(node.in(0));
  const Term largest =
      node.make("ReduceMax", {x}, {{"axes", Ints{1}}, {"keepdims", std::int64_t{1}}});
  const Term weights = node.make("Exp", {node.make("Sub", {x, largest})});
  const Term sums = node.make("CumSum", {weights}, {{"axis", std::int64_t{1}}});
  const auto part = [&](std::int64_t first, std::int64_t count) {
    const Term taken = node.make(
        "Slice", {sums},
        {{"starts", Ints{0, first}}, {"sizes", Ints{batch, count}}, {"steps", Ints{1, 1}}});
    return node.reshape(taken, {batch, 1, count});
  };
  const Term u = uniform(node, x.type.dtype, {batch, samples, 1});
  const Term drawn = node.make("Mul", {u, part(classes - 1, 1)});
  const Term passed = node.make("LessOrEqual", {part(0, classes - 1), drawn});
  const Term counts = node.make("ReduceSum", {node.cast(passed, DType::int64)},
                                {{"axes", Ints{2}}, {"keepdims", std::int64_t{0}}});
  node.out(0, node.make("Cast", {counts}, {{"to", std::string(name_of(dtype))}}));
}

}  // namespace tandem::importer::operators
