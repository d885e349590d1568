// LayerNormalization and its gradient: two sweeps over a row that stays in cache.
#include <cmath>
#include <cstring>

#include "engine/operators/operator.h"
#include "kernels/cpu/lines.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace tandem {
namespace {

constexpr std::int64_t rows_per_flush = 128;

struct Rows {
  std::int64_t count = 1, length = 1;

  Rows(const Shape& shape, std::size_t axis) {
    for (std::size_t i = 0; i < shape.size(); ++i) (i < axis ? count : length) *= shape[i];
  }
};

// For a node whose y is not read.
void write_statistics(const float* x, const Rows& rows, double epsilon, float* means,
                      float* rstds) {
  const auto length = static_cast<double>(rows.length);
  for (std::int64_t i = 0; i < rows.count; ++i, x += rows.length) {
    double sum = 0, squares = 0;
    for (std::int64_t k = 0; k < rows.length; ++k) sum += x[k];
    const double mean = sum / length;
    for (std::int64_t k = 0; k < rows.length; ++k) squares += (x[k] - mean) * (x[k] - mean);
    if (means != nullptr) means[i] = static_cast<float>(mean);
    if (rstds != nullptr) rstds[i] = static_cast<float>(1 / std::sqrt(squares / length + epsilon));
  }
}

std::unique_ptr<PreparedKernel> prepare_forward(const KernelRequest& request) {
  const Rows rows(request.inputs[0].type.shape,
                  static_cast<std::size_t>(request.attributes().integer("axis")));
  const auto epsilon = static_cast<float>(request.attributes().number("epsilon"));
  const bool biased = request.is_present(2);
  return prepared([=, &functions = vector_functions(request),
                   threads = request.facts->threads](const KernelArguments& a) {
    const float* x = static_cast<const float*>(a.inputs[0]);
    const float* bias = biased ? static_cast<const float*>(a.inputs[2]) : nullptr;
    float* y = static_cast<float*>(a.outputs[0]);
    float* means = static_cast<float*>(a.outputs[1]);
    float* rstds = static_cast<float*>(a.outputs[2]);
    if (y == nullptr) return write_statistics(x, rows, epsilon, means, rstds);
    parallel_ranges(threads, rows.count, rows.count * rows.length * 8,
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        float mean = 0, rstd = 0;
                        functions.layer_norm(
                            x + i * rows.length, static_cast<const float*>(a.inputs[1]), bias,
                            y + i * rows.length, rows.length, epsilon, &mean, &rstd);
                        if (means != nullptr) means[i] = mean;
                        if (rstds != nullptr) rstds[i] = rstd;
                      }
                    });
  });
}

// Each thread sums dscale and dbias over its rows, in float32 over 128 rows and in double above.
std::unique_ptr<PreparedKernel> prepare_backward(const KernelRequest& request) {
  const Rows rows(request.inputs[1].type.shape,
                  static_cast<std::size_t>(request.attributes().integer("axis")));
  const int parts = parts_for(request.facts->threads, rows.count * rows.length * 12, grain_bytes);
  const std::int64_t padded = (rows.length + 15) / 16 * 16;
  const std::size_t part_bytes =
      static_cast<std::size_t>(padded) * 2 * (sizeof(float) + sizeof(double));
  return prepared(
      [=, &functions = vector_functions(request)](const KernelArguments& a) {
        const float* dy = static_cast<const float*>(a.inputs[0]);
        const float* x = static_cast<const float*>(a.inputs[1]);
        const float* means = static_cast<const float*>(a.inputs[3]);
        const float* rstds = static_cast<const float*>(a.inputs[4]);
        float* dx = static_cast<float*>(a.outputs[0]);
        const auto totals_of = [&](int part) {
          return reinterpret_cast<double*>(static_cast<char*>(a.workspace) +
                                           static_cast<std::size_t>(part) * part_bytes);
        };
        parallel_parts(parts, [&](int part) {
          double* totals = totals_of(part);
          float* sums = reinterpret_cast<float*>(totals + 2 * padded);
          std::memset(totals, 0, part_bytes);
          const Range range = part_of(rows.count, part, parts);
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            functions.layer_norm_grad(dy + i * rows.length, x + i * rows.length,
                                      static_cast<const float*>(a.inputs[2]), means[i], rstds[i],
                                      dx == nullptr ? nullptr : dx + i * rows.length, rows.length,
                                      sums, sums + padded);
            if ((i - range.begin) % rows_per_flush == rows_per_flush - 1)
              functions.flush(sums, totals, 2 * padded);
          }
          functions.flush(sums, totals, 2 * padded);
        });
        for (int k = 0; k < 2; ++k) {
          float* result = static_cast<float*>(a.outputs[1 + k]);
          if (result == nullptr) continue;
          for (std::int64_t i = 0; i < rows.length; ++i) {
            double sum = 0;
            for (int part = 0; part < parts; ++part) sum += totals_of(part)[k * padded + i];
            result[i] = static_cast<float>(sum);
          }
        }
      },
      static_cast<std::size_t>(parts) * part_bytes);
}

}  // namespace

void add_layer_normalization_kernels(KernelList& list) {
  add_row_major(list, "cpu.layer_normalization", "LayerNormalization", only_float32({0}),
                prepare_forward);
  add_row_major(list, "cpu.layer_normalization_grad", "LayerNormalizationGrad", only_float32({1}),
                prepare_backward);
}

}  // namespace tandem
