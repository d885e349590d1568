// Dropout with the mask of philox.h, and its gradient. What is dropped is multiplied by 0, so that
// NaN and infinities show whatever the mask.
#include "kernels/reference/network_support.h"
#include "kernels/shared/philox.h"
#include "kernels/shared/random_elements.h"

namespace tandem::reference {
namespace {

constexpr auto dropout_forward = []<class T>(const KernelRequest& r, T) {
  const Places x(r.inputs[0]), y(r.outputs[0]), mask(r.outputs[1]);
  const double ratio = r.attributes().number("ratio");
  const double factor = 1 / (1 - ratio);
  const std::uint32_t threshold = dropout_threshold(ratio);
  const std::uint64_t path = hash_of_path(r.node->path);
  const RandomElements elements = random_elements(r.attributes(), r.inputs[0].type.shape);
  return prepared([=](const KernelArguments& a) {
    const StepContext& context = *a.context;
    const std::uint64_t stream =
        random_stream(context.seed, context.step, context.micro_batch, path);
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const std::uint64_t index =
          elements.index(context.first_sample, static_cast<std::uint64_t>(i));
      const bool keep = random_word(stream, index) >= threshold;
      const double value = static_cast<double>(static_cast<const T*>(a.inputs[0])[x(i)]);
      if (a.outputs[0] != nullptr) {
        static_cast<T*>(a.outputs[0])[y(i)] = rounded<T>(value * (keep ? factor : 0.0));
      }
      if (a.outputs[1] != nullptr) static_cast<bool*>(a.outputs[1])[mask(i)] = keep;
    }
  });
};

constexpr auto dropout_gradient = []<class T>(const KernelRequest& r, T) {
  const Places dy(r.inputs[0]), mask(r.inputs[1]), dx(r.outputs[0]);
  const double factor = 1 / (1 - r.attributes().number("ratio"));
  return prepared([=](const KernelArguments& a) {
    for (std::int64_t i = 0; i < dy.count(); ++i) {
      const bool keep = static_cast<const bool*>(a.inputs[1])[mask(i)];
      const double value = static_cast<double>(static_cast<const T*>(a.inputs[0])[dy(i)]);
      static_cast<T*>(a.outputs[0])[dx(i)] = rounded<T>(value * (keep ? factor : 0.0));
    }
  });
};

}  // namespace

void add_dropout(KernelList& list) {
  list.push_back(any_float_kernel("reference.dropout", "Dropout", dropout_forward));
  list.push_back(any_float_kernel("reference.dropout_grad", "DropoutGrad", dropout_gradient));
}

}  // namespace tandem::reference
