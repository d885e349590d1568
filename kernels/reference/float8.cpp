// FromFloat8 and ToFloat8: the tables and the rounding of engine/graph/float8.h.
#include "engine/graph/float8.h"

#include "kernels/reference/support.h"

namespace tandem::reference {
namespace {

std::unique_ptr<PreparedKernel> from_float8(const KernelRequest& request) {
  return prepared([values = float8_values(request.inputs[0].type.dtype).data(),
                   x_walk = walk(request.inputs[0]),
                   y_walk = walk(request.outputs[0])](const KernelArguments& arguments) mutable {
    const auto* x = static_cast<const std::uint8_t*>(arguments.inputs[0]);
    float* y = static_cast<float*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < y_walk.count(); ++i) {
      y[y_walk.at()] = values[x[x_walk.at()]];
      x_walk.next();
      y_walk.next();
    }
  });
}

std::unique_ptr<PreparedKernel> to_float8(const KernelRequest& request) {
  const auto rounding = float8_rounding(request.attributes().text("rounding"));
  return prepared([to = request.outputs[0].type.dtype,
                   saturate = request.attributes().flag("saturate"), rounding = *rounding,
                   x_walk = walk(request.inputs[0]),
                   y_walk = walk(request.outputs[0])](const KernelArguments& arguments) mutable {
    const float* x = static_cast<const float*>(arguments.inputs[0]);
    auto* y = static_cast<std::uint8_t*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < y_walk.count(); ++i) {
      y[y_walk.at()] = encode_float8(to, x[x_walk.at()], saturate, rounding);
      x_walk.next();
      y_walk.next();
    }
  });
}

}  // namespace

void add_float8(KernelList& list) {
  list.push_back(reference_kernel("from_float8", "FromFloat8", refuse_nothing, from_float8));
  list.push_back(reference_kernel("to_float8", "ToFloat8", refuse_nothing, to_float8));
}

}  // namespace tandem::reference
