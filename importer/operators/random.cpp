// RandomUniform, RandomNormal and what takes its shape from another tensor. The file's `seed` is
// not read: numbers come from the run's seed, so that each step has others.
#include <fmt/format.h>

#include "importer/file/tensor_data.h"
#include "importer/node_context.h"

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
  return *dtype;
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

}  // namespace tandem::importer::operators
