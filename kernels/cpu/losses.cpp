// LabelWeights, SoftmaxCrossEntropy, NegativeLogLikelihood and their gradients. A label outside the
// classes is reported unless its weight is 0, and the nearest class stands in for it.
#include <cstring>
#include <string>
#include <utility>

#include "engine/operators/operator.h"
#include "kernels/cpu/lines.h"
#include "kernels/cpu/losses.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace tandem {
namespace {

std::unique_ptr<PreparedKernel> prepare_label_weights(const KernelRequest& request) {
  const Labels labels(request, 0, 1);
  const std::int64_t count = request.inputs[0].type.elements();
  const std::int64_t classes = request.attributes().integer("classes");
  const std::int64_t ignore_index = request.attributes().integer("ignore_index");
  const bool ignore = request.attributes().flag("ignore"), weighted = request.is_present(1);
  return prepared([=](const KernelArguments& a) {
    float* weights = static_cast<float*>(a.outputs[0]);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t label = labels.raw(a, i);
      if (ignore && label == ignore_index) {
        weights[i] = 0;
        continue;
      }
      const std::int64_t at = labels.inside(a, label, classes, true);
      weights[i] = weighted ? static_cast<const float*>(a.inputs[1])[at] : 1.0f;
    }
  });
}

int parts_of(const KernelRequest& request, const Lines& lines, std::int64_t bytes) {
  return parts_for(request.facts->threads, lines.count * lines.length * bytes, grain_bytes);
}

// Losses and gradient, of which an operator makes one or both: line by line, so that the gradient
// finds the logits in cache.
std::unique_ptr<PreparedKernel> prepare_cross_entropy(const KernelRequest& request,
                                                      const CrossEntropyOperands& at) {
  const Lines lines(request.inputs[at.logits].type.shape, 1);
  if (lines.inner >= fewest_columns) return prepare_cross_entropy_columns(request, at);
  const Labels labels(request, at.labels, at.label_weights);
  const auto smoothing = static_cast<float>(request.attributes().number("label_smoothing"));
  const int parts = parts_of(request, lines, at.makes_losses() && at.makes_gradient() ? 32 : 16);
  const auto buffer = lines.buffer_floats();
  const std::int64_t buffers = at.makes_gradient() ? 2 : 1;
  return prepared(
      [=, &functions = vector_functions(request)](const KernelArguments& a) {
        const float* dlosses = input_at<float>(a, at.dlosses);
        const float* sums = input_at<float>(a, at.sums);
        float* losses = output_at<float>(a, at.losses);
        float* log_sums = output_at<float>(a, at.log_sum_exp);
        float* dlogits = output_at<float>(a, at.dlogits);
        const float spread = smoothing / static_cast<float>(lines.length);
        parallel_parts(parts, [&](int part) {
          float* x_buffer = static_cast<float*>(a.workspace) + part * buffers * buffer;
          const Range range = part_of(lines.count, part, parts);
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            const float* x = lines.read(a.inputs[at.logits], i, x_buffer);
            const float lse = sums != nullptr ? sums[i] : functions.log_sum_exp(x, lines.length);
            if (log_sums != nullptr) log_sums[i] = lse;
            if (losses == nullptr && dlogits == nullptr) continue;
            const Label label = labels.get(a, i, lines.length);
            if (losses != nullptr) {
              float loss = lse - (1 - smoothing) * x[label.at];
              if (smoothing != 0) {
                loss -= smoothing * static_cast<float>(functions.sum(x, lines.length) /
                                                       static_cast<double>(lines.length));
              }
              losses[i] = label.weight == 0 ? 0 : label.weight * loss;
            }
            if (dlogits == nullptr) continue;
            float* dx = lines.target(dlogits, i, x_buffer + buffer);
            if (label.weight == 0) {
              std::memset(dx, 0, static_cast<std::size_t>(lines.length) * sizeof(float));
            } else {
              const float factor = dlosses[i] * label.weight;
              functions.scaled_exp(x, lse, factor, -factor * spread, dx, lines.length);
              dx[label.at] -= factor * (1 - smoothing);
            }
            lines.written(dlogits, i, dx);
          }
        });
      },
      static_cast<std::size_t>(parts * buffers * buffer) * sizeof(float));
}

std::unique_ptr<PreparedKernel> prepare_likelihood(const KernelRequest& request) {
  const Lines lines(request.inputs[0].type.shape, 1);
  const Labels labels(request, 1, 2);
  return prepared([=](const KernelArguments& a) {
    const float* x = static_cast<const float*>(a.inputs[0]);
    float* losses = static_cast<float*>(a.outputs[0]);
    for (std::int64_t i = 0; i < lines.count; ++i) {
      const Label label = labels.get(a, i, lines.length);
      losses[i] =
          label.weight == 0 ? 0 : -label.weight * x[lines.start(i) + label.at * lines.inner];
    }
  });
}

std::unique_ptr<PreparedKernel> prepare_likelihood_grad(const KernelRequest& request) {
  const Lines lines(request.outputs[0].type.shape, 1);
  const Labels labels(request, 1, 2);
  const int threads = request.facts->threads;
  return prepared([=](const KernelArguments& a) {
    const float* dlosses = static_cast<const float*>(a.inputs[0]);
    float* dx = static_cast<float*>(a.outputs[0]);
    // Cut between blocks of lines that interleave, so that no part clears what another has written.
    const std::int64_t blocks = lines.count / lines.inner, size = lines.length * lines.inner;
    parallel_ranges(threads, blocks, 4 * blocks * size, [&](std::int64_t begin, std::int64_t end) {
      std::memset(dx + begin * size, 0,
                  static_cast<std::size_t>((end - begin) * size) * sizeof(float));
      for (std::int64_t i = begin * lines.inner; i < end * lines.inner; ++i) {
        const Label label = labels.get(a, i, lines.length);
        if (label.weight == 0) continue;
        dx[lines.start(i) + label.at * lines.inner] = -label.weight * dlosses[i];
      }
    });
  });
}

}  // namespace

void add_loss_kernels(KernelList& list) {
  add_row_major(list, "cpu.label_weights", "LabelWeights", only_float32({1}),
                prepare_label_weights);
  for (const CrossEntropyOperands& at : cross_entropies) {
    const auto logits = static_cast<std::size_t>(at.logits);
    const auto weights = static_cast<std::size_t>(at.label_weights);
    add_row_major(list, std::string("cpu.") + at.kernel, at.op, only_float32({logits, weights}),
                  [&at](const KernelRequest& r) { return prepare_cross_entropy(r, at); });
  }
  add_row_major(list, "cpu.negative_log_likelihood", "NegativeLogLikelihood", only_float32({0, 2}),
                prepare_likelihood);
  add_row_major(list, "cpu.negative_log_likelihood_grad", "NegativeLogLikelihoodGrad",
                only_float32({0, 2}), prepare_likelihood_grad);
}

}  // namespace tandem
