// The list of product, convolution and pooling kernels, best first.
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/products/products.h"

namespace tandem {

void add_product_kernels(KernelList& list) {
  add_matmul_kernels(list);
  add_packed_kernels(list);
  add_convolution_kernels(list);
  add_pooling_kernels(list);
}

std::optional<std::string> refuse_unless_float32(const KernelRequest& request,
                                                 unsigned ignored_inputs,
                                                 unsigned ignored_outputs) {
  if (isa_of(*request.facts) == Isa::baseline) return "needs a processor with AVX2 and FMA";
  const auto wrong = [](const Operand& operand) {
    return operand.present && operand.type.dtype != DType::float32;
  };
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    if ((ignored_inputs >> i & 1u) == 0 && wrong(request.inputs[i])) {
      return "computes float32, input " + std::to_string(i) + " is " +
             std::string(name_of(request.inputs[i].type.dtype));
    }
  }
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    if ((ignored_outputs >> i & 1u) == 0 && wrong(request.outputs[i])) {
      return "computes float32, output " + std::to_string(i) + " is " +
             std::string(name_of(request.outputs[i].type.dtype));
    }
  }
  return std::nullopt;
}

}  // namespace tandem
