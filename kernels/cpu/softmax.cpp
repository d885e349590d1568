// Softmax, LogSoftmax and their gradients, a line at a time.
#include <type_traits>

#include "engine/operators/operator.h"
#include "kernels/cpu/lines.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace tandem {
namespace {

using Backward = void (*)(const float* dy, const float* y, float* dx, std::int64_t n);

template <class Function>
std::unique_ptr<PreparedKernel> prepare_lines(const KernelRequest& request, Function function) {
  constexpr bool gradient = std::is_same_v<Function, Backward>;
  constexpr std::int64_t buffers = gradient ? 3 : 2;  // one line each; the last is written
  const Lines lines(request.outputs[0].type.shape,
                    static_cast<std::size_t>(request.attributes().integer("axis")));
  // An exponential costs about as much as reading 16 bytes from L2.
  const int parts = parts_for(request.facts->threads, lines.count * lines.length * 16, grain_bytes);
  const std::int64_t buffer = lines.buffer_floats();
  return prepared(
      [lines, parts, function, buffer](const KernelArguments& a) {
        parallel_parts(parts, [&](int part) {
          float* first = static_cast<float*>(a.workspace) + part * buffers * buffer;
          const Range range = part_of(lines.count, part, parts);
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            float* to = lines.target(a.outputs[0], i, first + (buffers - 1) * buffer);
            const float* from = lines.read(a.inputs[0], i, first);
            if constexpr (gradient) {
              function(from, lines.read(a.inputs[1], i, first + buffer), to, lines.length);
            } else {
              function(from, to, lines.length);
            }
            lines.written(a.outputs[0], i, to);
          }
        });
      },
      static_cast<std::size_t>(parts * buffers * buffer) * sizeof(float));
}

}  // namespace

void add_softmax_kernels(KernelList& list) {
  const auto add = [&](const char* name, const char* op, auto prepare) {
    add_row_major(list, name, op, only_float32({0}), prepare);
  };
  add("cpu.softmax", "Softmax",
      [](const KernelRequest& r) { return prepare_lines(r, vector_functions(r).softmax); });
  add("cpu.log_softmax", "LogSoftmax",
      [](const KernelRequest& r) { return prepare_lines(r, vector_functions(r).log_softmax); });
  add("cpu.softmax_grad", "SoftmaxGrad",
      [](const KernelRequest& r) { return prepare_lines(r, vector_functions(r).softmax_grad); });
  add("cpu.log_softmax_grad", "LogSoftmaxGrad", [](const KernelRequest& r) {
    return prepare_lines(r, vector_functions(r).log_softmax_grad);
  });
}

}  // namespace tandem
