// Softmax, LogSoftmax and their gradients, a line at a time.
#include "engine/operators/operator.h"
#include "kernels/cpu/lines.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace tandem {
namespace {

using Forward = void (*)(const float* x, float* y, std::int64_t n);
using Backward = void (*)(const float* dy, const float* y, float* dx, std::int64_t n);

Lines lines_of(const KernelRequest& request) {
  return {request.outputs[0].type.shape,
          static_cast<std::size_t>(request.attributes().integer("axis"))};
}

// An exponential costs about as much as reading 16 bytes from L2.
int parts_of(const KernelRequest& request, const Lines& lines) {
  return parts_for(request.facts->threads, lines.count * lines.length * 16, grain_bytes);
}

std::unique_ptr<PreparedKernel> prepare_forward(const KernelRequest& request, Forward function) {
  const Lines lines = lines_of(request);
  const int parts = parts_of(request, lines);
  const auto buffer = static_cast<std::size_t>(lines.buffer_floats());
  return prepared(
      [lines, parts, function, buffer](const KernelArguments& a) {
        parallel_parts(parts, [&](int part) {
          float* x_buffer =
              static_cast<float*>(a.workspace) + static_cast<std::size_t>(part) * 2 * buffer;
          const Range range = part_of(lines.count, part, parts);
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            float* y = lines.target(a.outputs[0], i, x_buffer + buffer);
            function(lines.read(a.inputs[0], i, x_buffer), y, lines.length);
            lines.written(a.outputs[0], i, y);
          }
        });
      },
      static_cast<std::size_t>(parts) * 2 * buffer * sizeof(float));
}

std::unique_ptr<PreparedKernel> prepare_backward(const KernelRequest& request, Backward function) {
  const Lines lines = lines_of(request);
  const int parts = parts_of(request, lines);
  const auto buffer = static_cast<std::size_t>(lines.buffer_floats());
  return prepared(
      [lines, parts, function, buffer](const KernelArguments& a) {
        parallel_parts(parts, [&](int part) {
          float* dy_buffer =
              static_cast<float*>(a.workspace) + static_cast<std::size_t>(part) * 3 * buffer;
          const Range range = part_of(lines.count, part, parts);
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            float* dx = lines.target(a.outputs[0], i, dy_buffer + 2 * buffer);
            function(lines.read(a.inputs[0], i, dy_buffer),
                     lines.read(a.inputs[1], i, dy_buffer + buffer), dx, lines.length);
            lines.written(a.outputs[0], i, dx);
          }
        });
      },
      static_cast<std::size_t>(parts) * 3 * buffer * sizeof(float));
}

}  // namespace

void add_softmax_kernels(KernelList& list) {
  const auto add = [&](const char* name, const char* op, auto prepare) {
    add_row_major(list, name, op, only_float32({0}), prepare);
  };
  add("cpu.softmax", "Softmax",
      [](const KernelRequest& r) { return prepare_forward(r, vector_functions(r).softmax); });
  add("cpu.log_softmax", "LogSoftmax",
      [](const KernelRequest& r) { return prepare_forward(r, vector_functions(r).log_softmax); });
  add("cpu.softmax_grad", "SoftmaxGrad",
      [](const KernelRequest& r) { return prepare_backward(r, vector_functions(r).softmax_grad); });
  add("cpu.log_softmax_grad", "LogSoftmaxGrad", [](const KernelRequest& r) {
    return prepare_backward(r, vector_functions(r).log_softmax_grad);
  });
}

}  // namespace tandem
