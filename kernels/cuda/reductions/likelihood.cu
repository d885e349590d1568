// LabelWeights, NegativeLogLikelihood and its gradient.
#include "kernels/cuda/reductions/labels.h"
#include "kernels/shared/block/each_index.h"

namespace tandem::cuda::reductions {

/// weight[i] = class_weights[label[i]], or 1 without class weights; 0 where label[i] is ignored.
struct LabelWeights {
  Labels labels;  // without weights of their own
  Floats class_weights;
  float* weights;
  std::int64_t count, ignore_index;
  bool ignore;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, count, [&](std::int64_t i) {
      const std::int64_t label = labels.labels.get(i);
      if (ignore && label == ignore_index) {
        weights[i] = 0;
        return;
      }
      const std::int64_t at = labels.inside(label, true);
      weights[i] = class_weights ? class_weights.get(at) : 1.0f;
    });
  }
};

/// loss = -w log_probs[label].
template <class T>
struct Likelihood {
  const T* log_probs;
  T* losses;
  Labels labels;
  Lines lines;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, lines.count, [&](std::int64_t i) {
      const Label label = labels.get(i, true);
      const float log_prob = widened(log_probs[lines.start(i) + label.at * lines.inner]);
      losses[i] = stored<T>(label.weight == 0 ? 0.0f : -label.weight * log_prob);
    });
  }
};

/// dlog_probs[c] = -w dloss where c = label, 0 elsewhere. For rows.
template <class T, int pack>
struct LikelihoodGradRows {
  static constexpr int block_threads = row_threads(true), values = 16;

  const T* dlosses;
  T* dlog_probs;
  Labels labels;
  Rows rows;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int team = rows.team, teams = block.threads() / team;
    const int size = team * values;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * teams; first < rows.count;
         first += static_cast<std::int64_t>(block.blocks()) * teams) {
      block.each([&](int thread) {
        const std::int64_t row = first + thread / team;
        if (row >= rows.count) return;
        const int member = thread % team;
        const Label label = labels.get(row, member == 0);
        const float slope = label.weight == 0 ? 0.0f : -label.weight * widened(dlosses[row]);
        for (std::int64_t start = 0; start < rows.length; start += size) {
          Registers<values> tile;
          TANDEM_UNROLL
          for (int i = 0; i < values; ++i) {
            const std::int64_t c = start + column_of<pack>(i, member, team);
            tile.values[i] = c == label.at ? slope : 0.0f;
          }
          store_tile<pack>(dlog_probs + row * rows.length + start, rows.left(start, size), member,
                           team, tile);
        }
      });
    }
  }
};

/// The gradient for lines.
template <class T>
struct LikelihoodGradLines {
  const T* dlosses;
  T* dlog_probs;
  Labels labels;
  Lines lines;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int parts = block.threads() / line_width;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * line_width;
         first < lines.count; first += static_cast<std::int64_t>(block.blocks()) * line_width) {
      block.each([&](int thread) {
        const std::int64_t line = first + thread % line_width;
        if (line >= lines.count) return;
        const int part = thread / line_width;
        const Label label = labels.get(line, part == 0);
        const float slope = label.weight == 0 ? 0.0f : -label.weight * widened(dlosses[line]);
        const std::int64_t start = lines.start(line);
        for (std::int64_t c = part; c < lines.length; c += parts)
          dlog_probs[start + c * lines.inner] = stored<T>(c == label.at ? slope : 0.0f);
      });
    }
  }
};

namespace {

std::unique_ptr<PreparedKernel> prepare_label_weights(const KernelRequest& request,
                                                      const Gpu& gpu) {
  const Attributes& attributes = request.attributes();
  const LabelInputs labels(request, 0, request.inputs.size(), attributes.integer("classes"));
  const std::int64_t count = request.inputs[0].type.elements();
  const std::int64_t ignore_index = attributes.integer("ignore_index");
  const bool ignore = attributes.flag("ignore"), weighted = request.is_present(1);
  const DType weight_type = weighted ? request.inputs[1].type.dtype : DType::float32;
  return prepared([=](const KernelArguments& a) {
    if (count == 0) return;
    const LabelWeights body{labels.of(a),
                            weighted ? Floats(a.inputs[1], weight_type) : Floats(),
                            static_cast<float*>(a.outputs[0]),
                            count,
                            ignore_index,
                            ignore};
    const LaunchShape shape = spread(count, gpu->properties.multiprocessors);
    gpu->launch(launch_of("label_weights", shape, body), a.queue);
  });
}

std::unique_ptr<PreparedKernel> prepare_likelihood(const KernelRequest& request, const Gpu& gpu) {
  const Lines lines = lines_of(request.inputs[0], 1);
  const LabelInputs labels(request, 1, 2, lines.length);
  return with_float(request.inputs[0].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=](const KernelArguments& a) {
      if (lines.count == 0) return;
      const Likelihood<T> body{static_cast<const T*>(a.inputs[0]), static_cast<T*>(a.outputs[0]),
                               labels.of(a), lines};
      const LaunchShape shape = spread(lines.count, gpu->properties.multiprocessors);
      gpu->launch(launch_of("negative_log_likelihood", shape, body), a.queue);
    });
  });
}

std::unique_ptr<PreparedKernel> prepare_likelihood_grad(const KernelRequest& request,
                                                        const Gpu& gpu) {
  const Lines lines = lines_of(request.outputs[0], 1);
  const LabelInputs labels(request, 1, 2, lines.length);
  return with_float(request.outputs[0].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=](const KernelArguments& a) {
      if (lines.count == 0) return;
      const char* name = "negative_log_likelihood_grad";
      const T* dlosses = static_cast<const T*>(a.inputs[0]);
      T* to = static_cast<T*>(a.outputs[0]);
      launch_lines<T, 16, 16>(
          gpu, name, a.queue, lines, 0, LikelihoodGradLines<T>{dlosses, to, labels.of(a), lines},
          takes_packs<T>(to, lines.length), [&](auto pack, auto, auto, const Rows& rows) {
            return LikelihoodGradRows<T, pack>{dlosses, to, labels.of(a), rows};
          });
    });
  });
}

}  // namespace

void add_likelihood(KernelList& list, const Gpu& gpu) {
  add_row_major(list, "cuda.label_weights", "LabelWeights", only_floats({1}),
                on(gpu, prepare_label_weights));
  list.push_back({"cuda.negative_log_likelihood", "NegativeLogLikelihood", only_floats({0, 2}),
                  [](const KernelRequest& r) { return propose_maps(r, 0, {0}, {}); },
                  on(gpu, prepare_likelihood)});
  add_row_major(list, "cuda.negative_log_likelihood_grad", "NegativeLogLikelihoodGrad",
                only_floats({0, 2}), on(gpu, prepare_likelihood_grad));
}

}  // namespace tandem::cuda::reductions
