// SoftmaxCrossEntropy over labels, and its gradient: one pass over the logits each.
#include "kernels/cuda/reductions/exponentials.h"
#include "kernels/cuda/reductions/labels.h"

namespace tandem::cuda::reductions {

/// loss = w (lse - (1 - s) logit[label] - s mean(logits)), lse = log(sum(exp(logits))), with label
/// smoothing s and label weight w; 0 for w = 0.
template <class T>
struct CrossEntropy {
  const T* logits;
  T* losses;    // null: nobody reads them
  float* sums;  // lse; null: nobody reads them
  Labels labels;
  float smoothing;

  /// For the label with this index, whose logits begin at `first` and lie `inner` apart.
  TANDEM_HOST_DEVICE void finish(std::int64_t index, const T* first, std::int64_t inner,
                                 const Exponentials& all, float total) const {
    const float lse = log_sum(all);
    if (sums != nullptr) sums[index] = lse;
    if (losses == nullptr) return;
    const Label label = labels.get(index, true);
    float loss = lse - (1 - smoothing) * widened(first[label.at * inner]);
    if (smoothing != 0) loss -= smoothing * total / static_cast<float>(labels.classes);
    losses[index] = stored<T>(label.weight == 0 ? 0.0f : label.weight * loss);
  }
};

template <class T, int pack, int values, bool whole>
struct CrossEntropyRows {
  static constexpr int block_threads = row_threads(whole);

  CrossEntropy<T> of;
  Rows rows;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int team = rows.team, teams = block.threads() / team;
    const bool smooth = of.smoothing != 0;
    typename Block::template Private<RowState<values>> state;
    typename Block::template Private<float> total;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * teams; first < rows.count;
         first += static_cast<std::int64_t>(block.blocks()) * teams) {
      read_rows<pack, whole, values>(block, of.logits, rows, first, smooth, state);
      if (smooth) {
        block.each([&](int thread) { total(thread) = state(thread).total; });
        total = combined<whole>(block, total, team, SumOf{});
      }
      block.each([&](int thread) {
        const std::int64_t row = first + thread / team;
        if (thread % team == 0 && row < rows.count)
          of.finish(row, of.logits + row * rows.length, 1, state(thread).all, total(thread));
      });
    }
  }
};

struct LinePart {
  Exponentials all;
  float total;
};

struct JoinLineParts {
  TANDEM_HOST_DEVICE LinePart operator()(const LinePart& a, const LinePart& b) const {
    return {JoinExponentials{}(a.all, b.all), a.total + b.total};
  }
};

template <class T>
struct CrossEntropyLines {
  CrossEntropy<T> of;
  Lines lines;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int parts = block.threads() / line_width;
    typename Block::template Private<LinePart> part;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * line_width;
         first < lines.count; first += static_cast<std::int64_t>(block.blocks()) * line_width) {
      block.each([&](int thread) {
        const std::int64_t line = first + thread % line_width;
        LinePart own{{no_number(), 0}, 0};
        if (line < lines.count)
          own.all = read_line(of.logits + lines.start(line), lines, thread / line_width, parts,
                              of.smoothing != 0, own.total);
        part(thread) = own;
      });
      const LinePart* all = combined_columns(block, part, line_width, JoinLineParts{});
      block.each([&](int thread) {
        const std::int64_t line = first + thread;
        if (thread < line_width && line < lines.count)
          of.finish(line, of.logits + lines.start(line), lines.inner, all[thread].all,
                    all[thread].total);
      });
    }
  }
};

/// dlogit[c] = dloss w (exp(logit[c] - lse) - (1 - s) [c = label] - s / C); 0 for w = 0.
template <class T>
struct CrossEntropyGrad {
  const T* dlosses;
  const T* logits;
  const float* sums;
  T* dlogits;
  Labels labels;
  float smoothing;

  struct Slope {
    std::int64_t label;
    float factor, lse, sharp, spread;
    bool counts;

    TANDEM_HOST_DEVICE float at(float logit, std::int64_t c) const {
      const float slope = std::exp(logit - lse) - spread - (c == label ? sharp : 0.0f);
      return counts ? factor * slope : 0.0f;
    }
  };

  TANDEM_HOST_DEVICE Slope slope(std::int64_t index, bool report) const {
    const Label label = labels.get(index, report);
    return {label.at,      widened(dlosses[index]) * label.weight,         sums[index],
            1 - smoothing, smoothing / static_cast<float>(labels.classes), label.weight != 0};
  }
};

template <class T, int pack, int values, bool whole>
struct CrossEntropyGradRows {
  static constexpr int block_threads = row_threads(whole);

  CrossEntropyGrad<T> of;
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
        const auto slope = of.slope(row, member == 0);
        for (std::int64_t start = 0; start < rows.length; start += size) {
          const std::int64_t at = row * rows.length + start;
          const int left = rows.left(start, size);
          Registers<values> tile;
          load_tile<pack>(of.logits + at, left, member, team, 0, tile);
          TANDEM_UNROLL
          for (int i = 0; i < values; ++i) {
            const std::int64_t c = start + column_of<pack>(i, member, team);
            tile.values[i] = slope.at(tile.values[i], c);
          }
          store_tile<pack>(of.dlogits + at, left, member, team, tile);
        }
      });
    }
  }
};

template <class T>
struct CrossEntropyGradLines {
  CrossEntropyGrad<T> of;
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
        const auto slope = of.slope(line, part == 0);
        const std::int64_t start = lines.start(line);
        for (std::int64_t c = part; c < lines.length; c += parts) {
          const std::int64_t at = start + c * lines.inner;
          of.dlogits[at] = stored<T>(slope.at(widened(of.logits[at]), c));
        }
      });
    }
  }
};

namespace {

float smoothing_of(const KernelRequest& request) {
  return static_cast<float>(request.attributes().number("label_smoothing"));
}

std::unique_ptr<PreparedKernel> prepare_forward(const KernelRequest& request, const Card& card) {
  const Lines lines = lines_of(request.inputs[0], 1);
  const LabelInputs labels(request, 1, 2, lines.length);
  const float smoothing = smoothing_of(request);
  return with_float(request.inputs[0].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=](const KernelArguments& a) {
      if (lines.count == 0) return;
      const CrossEntropy<T> of{static_cast<const T*>(a.inputs[0]), static_cast<T*>(a.outputs[0]),
                               static_cast<float*>(a.outputs[1]), labels.of(a), smoothing};
      const int processors = card->properties.multiprocessors;
      if (lines.inner != 1) {
        const CrossEntropyLines<T> body{of, lines};
        const LaunchShape shape = shape_of_lines(lines, sizeof(LinePart), processors);
        card->launch(launch_of("softmax_cross_entropy", shape, body), a.queue);
        return;
      }
      const RowShape shape = shape_of_rows<32, 16>(lines.count, lines.length, processors);
      const Rows rows{lines.count, lines.length, shape.team};
      with_row_kernel<T, 32, 16>(
          takes_packs<T>(of.logits, lines.length), shape.kind,
          [&](auto pack, auto values, auto whole) {
            const CrossEntropyRows<T, pack, values, whole> body{of, rows};
            card->launch(launch_of("softmax_cross_entropy", shape.launch, body), a.queue);
          });
    });
  });
}

std::unique_ptr<PreparedKernel> prepare_gradient(const KernelRequest& request, const Card& card) {
  const Lines lines = lines_of(request.inputs[1], 1);
  const LabelInputs labels(request, 2, 3, lines.length);
  const float smoothing = smoothing_of(request);
  return with_float(request.inputs[1].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=](const KernelArguments& a) {
      if (lines.count == 0) return;
      const CrossEntropyGrad<T> of{static_cast<const T*>(a.inputs[0]),
                                   static_cast<const T*>(a.inputs[1]),
                                   static_cast<const float*>(a.inputs[4]),
                                   static_cast<T*>(a.outputs[0]),
                                   labels.of(a),
                                   smoothing};
      const int processors = card->properties.multiprocessors;
      if (lines.inner != 1) {
        const CrossEntropyGradLines<T> body{of, lines};
        const LaunchShape shape = shape_of_lines(lines, 0, processors);
        card->launch(launch_of("softmax_cross_entropy_grad", shape, body), a.queue);
        return;
      }
      const bool packs =
          takes_packs<T>(of.logits, lines.length) && takes_packs<T>(of.dlogits, lines.length);
      const RowShape shape = shape_of_rows<16, 16>(lines.count, lines.length, processors);
      const Rows rows{lines.count, lines.length, shape.team};
      with_row_kernel<T, 16, 16>(packs, shape.kind, [&](auto pack, auto values, auto whole) {
        const CrossEntropyGradRows<T, pack, values, whole> body{of, rows};
        card->launch(launch_of("softmax_cross_entropy_grad", shape.launch, body), a.queue);
      });
    });
  });
}

}  // namespace

void add_cross_entropy(KernelList& list, const Card& card) {
  list.push_back({.name = "cuda.softmax_cross_entropy",
                  .op = "SoftmaxCrossEntropy",
                  .refuse =
                      [](const KernelRequest& r) {
                        return refuse_but_floats(r, {0, 2});
                      },
                  .propose = [](const KernelRequest& r) { return propose_maps(r, 0, {0}, false); },
                  .prepare = [card](const KernelRequest& r) { return prepare_forward(r, card); }});
  list.push_back({.name = "cuda.softmax_cross_entropy_grad",
                  .op = "SoftmaxCrossEntropyGrad",
                  .refuse =
                      [](const KernelRequest& r) {
                        return refuse_but_floats(r, {1, 3});
                      },
                  .propose = [](const KernelRequest& r) { return propose_maps(r, 1, {1}, true); },
                  .prepare = [card](const KernelRequest& r) { return prepare_gradient(r, card); }});
}

}  // namespace tandem::cuda::reductions
