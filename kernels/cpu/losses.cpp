// LabelWeights, SoftmaxCrossEntropy, NegativeLogLikelihood and their gradients. A label outside the
// classes is reported unless its weight is 0, and the nearest class stands in for it.
#include <cstring>

#include "engine/operators/operator.h"
#include "kernels/cpu/lines.h"
#include "kernels/cpu/pointwise.h"

namespace tandem {
namespace {

struct Label {
  std::int64_t at = 0;  // inside the classes
  float weight = 1;
};

struct Labels {
  std::size_t input = 0, weight_input = 0;
  bool wide = false, weighted = false;
  std::int32_t node = -1;

  Labels(const KernelRequest& request, std::size_t labels, std::size_t weights)
      : input(labels),
        weight_input(weights),
        wide(request.inputs[labels].type.dtype == DType::int64),
        weighted(is_present(request, weights)),
        node(request.node_index) {}

  std::int64_t raw(const KernelArguments& a, std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(a.inputs[input])[i]
                : static_cast<const std::int32_t*>(a.inputs[input])[i];
  }
  std::int64_t inside(const KernelArguments& a, std::int64_t value, std::int64_t classes,
                      bool counts) const {
    if (value >= 0 && value < classes) return value;
    if (counts && a.context != nullptr && a.context->error != nullptr) {
      a.context->error->report(ErrorWord::bad_label, node, value);
    }
    return value < 0 ? 0 : classes - 1;
  }
  Label get(const KernelArguments& a, std::int64_t i, std::int64_t classes) const {
    Label label;
    if (weighted) label.weight = static_cast<const float*>(a.inputs[weight_input])[i];
    label.at = inside(a, raw(a, i), classes, label.weight != 0);
    return label;
  }
};

std::unique_ptr<PreparedKernel> prepare_label_weights(const KernelRequest& request) {
  const Labels labels(request, 0, 1);
  const std::int64_t count = request.inputs[0].type.elements();
  const std::int64_t classes = request.attributes().integer("classes");
  const std::int64_t ignore_index = request.attributes().integer("ignore_index");
  const bool ignore = request.attributes().flag("ignore"), weighted = is_present(request, 1);
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

std::unique_ptr<PreparedKernel> prepare_cross_entropy(const KernelRequest& request) {
  const Lines lines(request.inputs[0].type.shape, 1);
  const Labels labels(request, 1, 2);
  const auto smoothing = static_cast<float>(request.attributes().number("label_smoothing"));
  const int parts = parts_of(request, lines, 16);
  const auto buffer = lines.buffer_floats();
  return prepared(
      [=, &functions = vector_functions(request)](const KernelArguments& a) {
        float* losses = static_cast<float*>(a.outputs[0]);
        float* log_sums = static_cast<float*>(a.outputs[1]);
        parallel_parts(parts, [&](int part) {
          const Range range = part_of(lines.count, part, parts);
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            const float* x =
                lines.read(a.inputs[0], i, static_cast<float*>(a.workspace) + part * buffer);
            const float lse = functions.log_sum_exp(x, lines.length);
            if (log_sums != nullptr) log_sums[i] = lse;
            if (losses == nullptr) continue;
            const Label label = labels.get(a, i, lines.length);
            float loss = lse - (1 - smoothing) * x[label.at];
            if (smoothing != 0) {
              loss -= smoothing * static_cast<float>(functions.sum(x, lines.length) /
                                                     static_cast<double>(lines.length));
            }
            losses[i] = label.weight == 0 ? 0 : label.weight * loss;
          }
        });
      },
      static_cast<std::size_t>(parts * buffer) * sizeof(float));
}

std::unique_ptr<PreparedKernel> prepare_cross_entropy_grad(const KernelRequest& request) {
  const Lines lines(request.inputs[1].type.shape, 1);
  const Labels labels(request, 2, 3);
  const auto smoothing = static_cast<float>(request.attributes().number("label_smoothing"));
  const int parts = parts_of(request, lines, 16);
  const auto buffer = lines.buffer_floats();
  return prepared(
      [=, &functions = vector_functions(request)](const KernelArguments& a) {
        const float* dlosses = static_cast<const float*>(a.inputs[0]);
        const float* log_sums = static_cast<const float*>(a.inputs[4]);
        const float spread = smoothing / static_cast<float>(lines.length);
        parallel_parts(parts, [&](int part) {
          float* x_buffer = static_cast<float*>(a.workspace) + part * 2 * buffer;
          const Range range = part_of(lines.count, part, parts);
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            const float* x = lines.read(a.inputs[1], i, x_buffer);
            float* dx = lines.target(a.outputs[0], i, x_buffer + buffer);
            const Label label = labels.get(a, i, lines.length);
            if (label.weight == 0) {
              std::memset(dx, 0, static_cast<std::size_t>(lines.length) * sizeof(float));
            } else {
              const float factor = dlosses[i] * label.weight;
              functions.scaled_exp(x, log_sums[i], factor, -factor * spread, dx, lines.length);
              dx[label.at] -= factor * (1 - smoothing);
            }
            lines.written(a.outputs[0], i, dx);
          }
        });
      },
      static_cast<std::size_t>(parts * 2 * buffer) * sizeof(float));
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
    // Cut between blocks of lines that interleave, so that nobody clears what another one wrote.
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
  const auto add = [&](const char* name, const char* op, auto refuse, auto prepare) {
    list.push_back({.name = name,
                    .op = op,
                    .refuse = refuse,
                    .propose = propose_row_major,
                    .prepare = prepare});
  };
  add(
      "cpu.label_weights", "LabelWeights",
      [](const KernelRequest& r) { return refuse_but_float32(r, {1}); }, prepare_label_weights);
  add(
      "cpu.softmax_cross_entropy", "SoftmaxCrossEntropy",
      [](const KernelRequest& r) {
        return refuse_but_float32(r, {0, 2});
      },
      prepare_cross_entropy);
  add(
      "cpu.softmax_cross_entropy_grad", "SoftmaxCrossEntropyGrad",
      [](const KernelRequest& r) {
        return refuse_but_float32(r, {1, 3});
      },
      prepare_cross_entropy_grad);
  add(
      "cpu.negative_log_likelihood", "NegativeLogLikelihood",
      [](const KernelRequest& r) {
        return refuse_but_float32(r, {0, 2});
      },
      prepare_likelihood);
  add(
      "cpu.negative_log_likelihood_grad", "NegativeLogLikelihoodGrad",
      [](const KernelRequest& r) {
        return refuse_but_float32(r, {0, 2});
      },
      prepare_likelihood_grad);
}

}  // namespace tandem
