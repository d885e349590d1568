// Gather in every type; its gradient in float and double.
#include "kernels/reference/gathers.h"

#include "kernels/reference/basic_parts.h"

namespace tandem::reference {
namespace {

std::unique_ptr<PreparedKernel> gather(const KernelRequest& request) {
  const std::size_t size = size_of(request.outputs[0].type.dtype);
  return prepared([size, w = gather_walk(request, request.inputs[0], request.outputs[0])](
                      const KernelArguments& arguments) mutable {
    const char* x = static_cast<const char*>(arguments.inputs[0]);
    char* y = static_cast<char*>(arguments.outputs[0]);
    const auto bytes = static_cast<std::int64_t>(size);
    for (std::int64_t i = 0; i < w.y.count(); ++i, w.next()) {
      const std::int64_t index = w.index(arguments.inputs[1], arguments.context);
      std::memcpy(y + w.y.at() * bytes, x + (w.x.at() + index * w.stride) * bytes, size);
    }
  });
}

std::unique_ptr<PreparedKernel> gather_grad(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype,
                        [&](auto tag) { return prepare_gather_grad<decltype(tag)>(request); });
}

}  // namespace

void add_gathers(KernelList& list) {
  list.push_back(reference_kernel("gather", "Gather", refuse_nothing, gather));
  list.push_back(reference_kernel("gather_grad", "GatherGrad", refuse_other_types<0>, gather_grad));
}

}  // namespace tandem::reference
