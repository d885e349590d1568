// Short ways to write kernels of the usual forms.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/kernel.h"

namespace tandem {

/// Adds a kernel whose operands are all row-major.
inline void add_row_major(KernelList& list, std::string name, std::string op,
                          decltype(Kernel::refuse) refuse, decltype(Kernel::prepare) prepare) {
  list.push_back(
      {std::move(name), std::move(op), std::move(refuse), propose_row_major, std::move(prepare)});
}

/// `prepare` of a kernel that is a class: Made(request, more...).
template <class Made, class... More>
auto makes(More... more) {
  return [more...](const KernelRequest& request) -> std::unique_ptr<PreparedKernel> {
    return std::make_unique<Made>(request, more...);
  };
}

/// `refuse` of a kernel that computes all that its operator allows.
inline std::optional<std::string> refuse_nothing(const KernelRequest&) { return std::nullopt; }

/// A reason to refuse.
inline std::string refused_type(DType dtype) {
  return "element type " + std::string(name_of(dtype));
}

/// float32, float16 and bfloat16.
inline bool is_short_float(DType dtype) { return is_float(dtype) && dtype != DType::float64; }

/// A reason where one of these inputs is there and of a type that `takes` refuses.
template <class Takes, class Inputs>
std::optional<std::string> refuse_types_but(const KernelRequest& request, Takes takes,
                                            const Inputs& inputs) {
  for (std::size_t i : inputs) {
    if (request.is_present(i) && !takes(request.inputs[i].type.dtype))
      return refused_type(request.inputs[i].type.dtype);
  }
  return std::nullopt;
}
template <class Inputs = std::initializer_list<std::size_t>>
std::optional<std::string> refuse_but_float32(const KernelRequest& request, const Inputs& inputs) {
  return refuse_types_but(
      request, [](DType dtype) { return dtype == DType::float32; }, inputs);
}
template <class Inputs = std::initializer_list<std::size_t>>
std::optional<std::string> refuse_but_floats(const KernelRequest& request, const Inputs& inputs) {
  return refuse_types_but(request, is_short_float, inputs);
}

/// `refuse` of kernels that ask for nothing else.
inline auto only_float32(std::vector<std::size_t> inputs) {
  return [inputs = std::move(inputs)](const KernelRequest& request) {
    return refuse_but_float32(request, inputs);
  };
}
inline auto only_floats(std::vector<std::size_t> inputs) {
  return [inputs = std::move(inputs)](const KernelRequest& request) {
    return refuse_but_floats(request, inputs);
  };
}

}  // namespace tandem
