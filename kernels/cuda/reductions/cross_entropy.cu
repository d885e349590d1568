// SoftmaxCrossEntropy over labels, its gradient, and both in one kernel. Rows that fit into a
// team's registers are read once from memory, others and lines once for each of the two.
#include "kernels/cuda/reductions/exponentials.h"
#include "kernels/cuda/reductions/labels.h"
#include "kernels/shared/cross_entropy_operands.h"

namespace tandem::cuda::reductions {

/// What a kernel makes.
enum class Makes { losses, gradient, both };

/// loss = w (lse - (1 - s) logit[label] - s mean(logits)), lse = log(sum(exp(logits))), with label
/// smoothing s and label weight w; dlogit[c] = dloss w (exp(logit[c] - lse) - (1 - s) [c = label] -
/// s / C). Both are 0 for w = 0.
template <class T>
struct CrossEntropy {
  const T* logits;
  Labels labels;
  float smoothing;
  T* losses;          // null: they are not read
  float* sums;        // lse; null: they are not read
  const T* dlosses;   // this and what follows is only for the gradient
  const float* from;  // lse, where the losses are made elsewhere
  T* dlogits;

  /// The loss of the label with this index, whose logits begin at `first` and lie `inner` apart.
  TANDEM_HOST_DEVICE void finish(std::int64_t index, const T* first, std::int64_t inner, float lse,
                                 float total) const {
    if (sums != nullptr) sums[index] = lse;
    if (losses == nullptr) return;
    const Label label = labels.get(index, true);
    float loss = lse - (1 - smoothing) * widened(first[label.at * inner]);
    if (smoothing != 0) loss -= smoothing * total / static_cast<float>(labels.classes);
    losses[index] = stored<T>(label.weight == 0 ? 0.0f : label.weight * loss);
  }

  struct Slope {
    std::int64_t label;
    float factor, lse, sharp, spread;
    bool counts;

    TANDEM_HOST_DEVICE float at(float logit, std::int64_t c) const {
      const float slope = std::exp(logit - lse) - spread - (c == label ? sharp : 0.0f);
      return counts ? factor * slope : 0.0f;
    }
  };

  TANDEM_HOST_DEVICE Slope slope(std::int64_t index, float lse, bool report) const {
    const Label label = labels.get(index, report);
    return {label.at,      widened(dlosses[index]) * label.weight,         lse,
            1 - smoothing, smoothing / static_cast<float>(labels.classes), label.weight != 0};
  }
};

template <class T, Makes makes, int pack, int values, bool whole>
struct CrossEntropyRows {
  static constexpr int block_threads = row_threads(whole);

  CrossEntropy<T> of;
  Rows rows;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int team = rows.team, teams = block.threads() / team;
    typename Block::template Private<RowState<values>> state;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * teams; first < rows.count;
         first += static_cast<std::int64_t>(block.blocks()) * teams) {
      if constexpr (makes != Makes::gradient) add_up(block, first, state);
      if constexpr (makes != Makes::losses) {
        block.each([&](int thread) {
          const std::int64_t row = first + thread / team;
          if (row < rows.count) write_slopes(row, thread % team, state(thread));
        });
      }
    }
  }

 private:
  template <class Block, class States>
  TANDEM_HOST_DEVICE void add_up(Block& block, std::int64_t first, States& state) const {
    const int team = rows.team;
    const bool smooth = of.smoothing != 0;
    typename Block::template Private<float> total;
    read_rows<pack, whole, values>(block, of.logits, rows, first, smooth, state);
    if (smooth) {
      block.each([&](int thread) { total(thread) = state(thread).total; });
      total = combined<whole>(block, total, team, SumOf{});
    }
    block.each([&](int thread) {
      const std::int64_t row = first + thread / team;
      if (thread % team == 0 && row < rows.count)
        of.finish(row, of.logits + row * rows.length, 1, log_sum(state(thread).all), total(thread));
    });
  }

  TANDEM_HOST_DEVICE void write_slopes(std::int64_t row, int member, RowState<values>& s) const {
    const int team = rows.team, size = team * values;
    const bool held = makes == Makes::both && rows.length <= size;
    const float lse = makes == Makes::both ? log_sum(s.all) : of.from[row];
    const auto slope = of.slope(row, lse, member == 0);
    for (std::int64_t start = 0; start < rows.length; start += size) {
      const std::int64_t at = row * rows.length + start;
      const int left = rows.left(start, size);
      if (!held) load_tile<pack>(of.logits + at, left, member, team, 0, s.tile);
      TANDEM_UNROLL
      for (int i = 0; i < values; ++i)
        s.tile.values[i] = slope.at(s.tile.values[i], start + column_of<pack>(i, member, team));
      store_tile<pack>(of.dlogits + at, left, member, team, s.tile);
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

template <class T, Makes makes>
struct CrossEntropyLines {
  CrossEntropy<T> of;
  Lines lines;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * line_width;
         first < lines.count; first += static_cast<std::int64_t>(block.blocks()) * line_width) {
      const LinePart* all = nullptr;
      if constexpr (makes != Makes::gradient) all = add_up(block, first);
      if constexpr (makes != Makes::losses) write_slopes(block, first, all);
    }
  }

 private:
  template <class Block>
  TANDEM_HOST_DEVICE const LinePart* add_up(Block& block, std::int64_t first) const {
    const int parts = block.threads() / line_width;
    typename Block::template Private<LinePart> part;
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
        of.finish(line, of.logits + lines.start(line), lines.inner, log_sum(all[thread].all),
                  all[thread].total);
    });
    return all;
  }

  template <class Block>
  TANDEM_HOST_DEVICE void write_slopes(Block& block, std::int64_t first,
                                       const LinePart* all) const {
    const int parts = block.threads() / line_width;
    block.each([&](int thread) {
      const std::int64_t line = first + thread % line_width;
      if (line >= lines.count) return;
      const int part = thread / line_width;
      const float lse =
          makes == Makes::both ? log_sum(all[thread % line_width].all) : of.from[line];
      const auto slope = of.slope(line, lse, part == 0);
      const std::int64_t start = lines.start(line);
      for (std::int64_t c = part; c < lines.length; c += parts) {
        const std::int64_t at = start + c * lines.inner;
        of.dlogits[at] = stored<T>(slope.at(widened(of.logits[at]), c));
      }
    });
  }
};

namespace {

template <Makes makes, class T>
void launch_as(const Gpu& gpu, const char* name, const CrossEntropy<T>& of, const Lines& lines,
               void* queue) {
  const std::size_t shared = makes == Makes::gradient ? 0 : sizeof(LinePart);
  // Sums gain from rows that a group of 32 holds as a whole.
  constexpr int group_values = makes == Makes::gradient ? 16 : 32;
  const bool packs = takes_packs<T>(of.logits, lines.length) &&
                     (makes == Makes::losses || takes_packs<T>(of.dlogits, lines.length));
  launch_lines<T, group_values, 16>(
      gpu, name, queue, lines, shared, CrossEntropyLines<T, makes>{of, lines}, packs,
      [&](auto pack, auto values, auto whole, const Rows& rows) {
        return CrossEntropyRows<T, makes, pack, values, whole>{of, rows};
      });
}

std::unique_ptr<PreparedKernel> prepare(const KernelRequest& request, const Gpu& gpu,
                                        const CrossEntropyOperands& at) {
  const Lines lines = lines_of(request.inputs[at.logits], 1);
  const LabelInputs labels(request, at.labels, at.label_weights, lines.length);
  const auto smoothing = static_cast<float>(request.attributes().number("label_smoothing"));
  return with_float(request.inputs[at.logits].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=](const KernelArguments& a) {
      if (lines.count == 0) return;
      const CrossEntropy<T> of{input_at<T>(a, at.logits),
                               labels.of(a),
                               smoothing,
                               output_at<T>(a, at.losses),
                               output_at<float>(a, at.log_sum_exp),
                               input_at<T>(a, at.dlosses),
                               input_at<float>(a, at.sums),
                               output_at<T>(a, at.dlogits)};
      if (of.dlogits == nullptr) {
        launch_as<Makes::losses>(gpu, at.kernel, of, lines, a.queue);
      } else if (of.from != nullptr) {
        launch_as<Makes::gradient>(gpu, at.kernel, of, lines, a.queue);
      } else {
        launch_as<Makes::both>(gpu, at.kernel, of, lines, a.queue);
      }
    });
  });
}

// Logits and their gradient in one layout.
std::vector<Proposal> propose(const KernelRequest& request, const CrossEntropyOperands& at) {
  const auto logits = static_cast<std::size_t>(at.logits);
  if (!at.makes_gradient()) return propose_maps(request, logits, {logits}, {});
  return propose_maps(request, logits, {logits}, {static_cast<std::size_t>(at.dlogits)});
}

}  // namespace

void add_cross_entropy(KernelList& list, const Gpu& gpu) {
  for (const CrossEntropyOperands& at : cross_entropies) {
    const auto logits = static_cast<std::size_t>(at.logits);
    const auto weights = static_cast<std::size_t>(at.label_weights);
    list.push_back({std::string("cuda.") + at.kernel, at.op, only_floats({logits, weights}),
                    [&at](const KernelRequest& r) { return propose(r, at); },
                    [gpu, &at](const KernelRequest& r) { return prepare(r, gpu, at); }});
  }
}

}  // namespace tandem::cuda::reductions
