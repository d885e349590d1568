// FromFloat8 by the table of the 256 numbers, and ToFloat8, over elements that lie in one piece.
#include "engine/graph/float8.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace tandem {
namespace {

/// Elements of x and y in one order, whatever it is.
std::vector<Proposal> propose_one_piece(const KernelRequest&) {
  const LayoutConstraint dense{LayoutConstraint::Kind::dense, {}};
  return {Proposal{.inputs = {dense}, .outputs = {dense}}};
}

std::unique_ptr<PreparedKernel> prepare_from_float8(const KernelRequest& request) {
  return prepared([values = float8_values(request.inputs[0].type.dtype).data(),
                   count = request.outputs[0].type.elements(),
                   threads = request.facts->threads](const KernelArguments& a) {
    const auto* x = static_cast<const std::uint8_t*>(a.inputs[0]);
    float* y = static_cast<float*>(a.outputs[0]);
    parallel_ranges(threads, count, 5 * count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = values[x[i]];
    });
  });
}

std::unique_ptr<PreparedKernel> prepare_to_float8(const KernelRequest& request) {
  const auto rounding = float8_rounding(request.attributes().text("rounding"));
  return prepared([to = request.outputs[0].type.dtype,
                   saturate = request.attributes().flag("saturate"), rounding = *rounding,
                   count = request.outputs[0].type.elements(),
                   threads = request.facts->threads](const KernelArguments& a) {
    const float* x = static_cast<const float*>(a.inputs[0]);
    auto* y = static_cast<std::uint8_t*>(a.outputs[0]);
    // An element takes as long as about 40 bytes that are moved.
    parallel_ranges(threads, count, 40 * count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = encode_float8(to, x[i], saturate, rounding);
    });
  });
}

}  // namespace

void add_float8_kernels(KernelList& list) {
  list.push_back({.name = "cpu.from_float8",
                  .op = "FromFloat8",
                  .refuse = refuse_nothing,
                  .propose = propose_one_piece,
                  .prepare = prepare_from_float8});
  list.push_back({.name = "cpu.to_float8",
                  .op = "ToFloat8",
                  .refuse = refuse_nothing,
                  .propose = propose_one_piece,
                  .prepare = prepare_to_float8});
}

}  // namespace tandem
