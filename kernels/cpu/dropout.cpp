// Dropout with the mask of philox.h, and its gradient.
#include <algorithm>

#include "engine/operators/operator.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/shared/philox.h"
#include "kernels/shared/random_elements.h"

namespace tandem {
namespace {

std::unique_ptr<PreparedKernel> prepare_forward(const KernelRequest& request) {
  const double ratio = request.attributes().number("ratio");
  const std::int64_t count = request.inputs[0].type.elements();
  const bool mask_read = request.outputs[1].present;
  const RandomElements elements =
      random_elements(request.attributes(), request.inputs[0].type.shape);
  // Random words of neighbours are neighbours within it.
  const std::int64_t stretch = elements.own > 0 ? static_cast<std::int64_t>(elements.own) : count;
  return prepared(
      [=, path = hash_of_path(request.node->path), threshold = dropout_threshold(ratio),
       factor = static_cast<float>(1 / (1 - ratio)), threads = request.facts->threads,
       &functions = vector_functions(request)](const KernelArguments& a) {
        const StepContext& context = *a.context;
        const std::uint64_t stream =
            random_stream(context.seed, context.step, context.micro_batch, path);
        const float* x = static_cast<const float*>(a.inputs[0]);
        float* y = static_cast<float*>(a.outputs[0] != nullptr ? a.outputs[0] : a.workspace);
        auto* mask =
            static_cast<unsigned char*>(a.outputs[1] != nullptr ? a.outputs[1] : a.workspace);
        parallel_ranges(
            threads, count, count * 24,
            [&](std::int64_t begin, std::int64_t end) {
              while (begin < end) {
                const std::int64_t next = std::min(end, (begin / stretch + 1) * stretch);
                const auto first = static_cast<std::int64_t>(
                    elements.index(context.first_sample, static_cast<std::uint64_t>(begin)));
                functions.dropout(x + begin, y + begin, mask + begin, first, next - begin, stream,
                                  threshold, factor);
                begin = next;
              }
            },
            256);
      },
      mask_read && request.outputs[0].present
          ? 0
          : static_cast<std::size_t>(count) * (request.outputs[0].present ? 1 : sizeof(float)));
}

std::unique_ptr<PreparedKernel> prepare_grad(const KernelRequest& request) {
  const std::int64_t count = request.inputs[0].type.elements();
  const auto factor = static_cast<float>(1 / (1 - request.attributes().number("ratio")));
  return prepared([=, threads = request.facts->threads,
                   &functions = vector_functions(request)](const KernelArguments& a) {
    parallel_ranges(
        threads, count, count * 9,
        [&](std::int64_t begin, std::int64_t end) {
          functions.dropout_grad(static_cast<const float*>(a.inputs[0]) + begin,
                                 static_cast<const unsigned char*>(a.inputs[1]) + begin,
                                 static_cast<float*>(a.outputs[0]) + begin, end - begin, factor);
        },
        64);
  });
}

}  // namespace

void add_dropout_kernels(KernelList& list) {
  add_row_major(list, "cpu.dropout", "Dropout", only_float32({0}), prepare_forward);
  add_row_major(list, "cpu.dropout_grad", "DropoutGrad", only_float32({0}), prepare_grad);
}

}  // namespace tandem
