// Gather in every type, and into wider floats; its gradient in float and double.
#include "kernels/reference/gather.h"

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
      char* to = y + w.y.at() * bytes;
      if (index < 0)
        std::memset(to, 0, size);
      else
        std::memcpy(to, x + (w.x.at() + index * w.stride) * bytes, size);
    }
  });
}

// y is a wider float than x.
std::unique_ptr<PreparedKernel> gather_widened(const KernelRequest& request) {
  return prepared([w = gather_walk(request, request.inputs[0], request.outputs[0]),
                   from = request.inputs[0].type.dtype,
                   to = request.outputs[0].type.dtype](const KernelArguments& arguments) mutable {
    for (std::int64_t i = 0; i < w.y.count(); ++i, w.next()) {
      const std::int64_t index = w.index(arguments.inputs[1], arguments.context);
      const double x = index < 0 ? 0.0 : with_type(from, [&](auto tag) {
        const auto* values = static_cast<const decltype(tag)*>(arguments.inputs[0]);
        return static_cast<double>(values[w.x.at() + index * w.stride]);
      });
      with_main_type(to, [&](auto tag) {
        using T = decltype(tag);
        static_cast<T*>(arguments.outputs[0])[w.y.at()] = static_cast<T>(x);
      });
    }
  });
}

std::unique_ptr<PreparedKernel> gather_grad(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype,
                        [&](auto tag) { return prepare_gather_grad<decltype(tag)>(request); });
}

std::optional<std::string> refuse_other_result(const KernelRequest& request) {
  if (request.inputs[0].type.dtype == request.outputs[0].type.dtype) return std::nullopt;
  return "a result of another type";
}

std::optional<std::string> refuse_narrow_result(const KernelRequest& request) {
  const DType to = request.outputs[0].type.dtype;
  if (to == DType::float32 || to == DType::float64) return std::nullopt;
  return "a result of " + std::string(name_of(to));
}

}  // namespace

void add_gather(KernelList& list) {
  list.push_back(reference_kernel("gather", "Gather", refuse_other_result, gather));
  list.push_back(
      reference_kernel("gather_widened", "Gather", refuse_narrow_result, gather_widened));
  list.push_back(reference_kernel("gather_grad", "GatherGrad", refuse_other_types<0>, gather_grad));
}

}  // namespace tandem::reference
