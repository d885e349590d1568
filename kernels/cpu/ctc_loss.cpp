// CtcLoss and its gradient: samples are shared among the threads. A label that is no class and a
// length that is out of range are reported, and the nearest one stands in for them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/operators/operator.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/shared/ctc_lattice.h"

namespace tandem {
namespace {

/// Integers of either type.
struct Integers {
  std::size_t input;
  bool is_present, is_wide;

  Integers(const KernelRequest& request, std::size_t i)
      : input(i),
        is_present(request.is_present(i)),
        is_wide(is_present && request.inputs[i].type.dtype == DType::int64) {}
  std::int64_t get(const KernelArguments& a, std::int64_t i) const {
    return is_wide ? static_cast<const std::int64_t*>(a.inputs[input])[i]
                   : static_cast<const std::int32_t*>(a.inputs[input])[i];
  }
};

/// The operands that loss and gradient share, `first` being the input that log_probs is, and the
/// memory of a part: the labels of a sample and rows of its lattice.
struct Sequences {
  std::size_t first;
  Integers labels, label_lengths, lengths;
  std::int64_t samples, frames, classes, most_labels, blank;
  bool zero_infinity;
  std::int32_t node;
  int parts;

  Sequences(const KernelRequest& r, std::size_t at)
      : first(at),
        labels(r, at + 1),
        label_lengths(r, at + 2),
        lengths(r, at + 3),
        samples(r.inputs[at].type.shape[0]),
        frames(r.inputs[at].type.shape[1]),
        classes(r.inputs[at].type.shape[2]),
        most_labels(r.inputs[at + 1].type.shape[1]),
        blank(r.attributes().integer("blank")),
        zero_infinity(r.attributes().flag("zero_infinity")),
        node(r.node_index) {
    constexpr std::int64_t bytes_a_state = 256;  // that take about as long to move
    const std::int64_t bytes = samples * frames * (2 * most_labels + 1) * bytes_a_state;
    const auto most = static_cast<int>(std::clamp<std::int64_t>(samples, 1, r.facts->threads));
    parts = parts_for(most, bytes, grain_bytes);
  }

  std::int64_t part_numbers(std::int64_t rows) const {
    return most_labels + rows * (2 * most_labels + 1);
  }
  std::size_t workspace_bytes(std::int64_t rows) const {
    return static_cast<std::size_t>(parts * part_numbers(rows)) * sizeof(double);
  }

  std::int64_t inside(const KernelArguments& a, ErrorWord::Kind kind, std::int64_t value,
                      std::int64_t most) const {
    if (value >= 0 && value <= most) return value;
    if (a.context != nullptr && a.context->error != nullptr)
      a.context->error->report(kind, node, value);
    return value < 0 ? 0 : most;
  }

  auto lattice(const KernelArguments& a, std::int64_t n, std::int64_t* own_labels) const {
    constexpr auto length_kind = ErrorWord::index_out_of_range;
    const std::int64_t count = inside(a, length_kind, label_lengths.get(a, n), most_labels);
    for (std::int64_t i = 0; i < count; ++i)
      own_labels[i] =
          inside(a, ErrorWord::bad_label, labels.get(a, n * most_labels + i), classes - 1);
    const std::int64_t length =
        lengths.is_present ? inside(a, length_kind, lengths.get(a, n), frames) : frames;
    const float* x = static_cast<const float*>(a.inputs[first]) + n * frames * classes;
    const auto log_prob = [x, stride = classes](std::int64_t t, std::int64_t c) {
      return static_cast<double>(x[t * stride + c]);
    };
    const auto label = [own_labels](std::int64_t i) { return own_labels[i]; };
    return CtcLattice<decltype(log_prob), decltype(label)>{log_prob, label, length, count, blank};
  }

  /// f(sample, its lattice, memory for rows) for all samples.
  template <class F>
  void each(const KernelArguments& a, std::int64_t rows, F f) const {
    parallel_parts(parts, [&](int part) {
      double* memory = static_cast<double*>(a.workspace) + part * part_numbers(rows);
      auto* own_labels = reinterpret_cast<std::int64_t*>(memory);
      const Range range = part_of(samples, part, parts);
      for (std::int64_t n = range.begin; n < range.end; ++n)
        f(n, lattice(a, n, own_labels), memory + most_labels);
    });
  }
};

std::unique_ptr<PreparedKernel> prepare_loss(const KernelRequest& request) {
  const Sequences s(request, 0);
  return prepared(
      [s](const KernelArguments& a) {
        float* losses = static_cast<float*>(a.outputs[0]);
        s.each(a, 2, [&](std::int64_t n, const auto& lattice, double* memory) {
          const double loss = ctc_loss(lattice, memory);
          losses[n] = s.zero_infinity && std::isinf(loss) ? 0.0f : static_cast<float>(loss);
        });
      },
      s.workspace_bytes(2));
}

std::unique_ptr<PreparedKernel> prepare_gradient(const KernelRequest& request) {
  const Sequences s(request, 1);
  const std::int64_t rows = s.frames + 2;
  return prepared(
      [s, rows](const KernelArguments& a) {
        const float* dlosses = static_cast<const float*>(a.inputs[0]);
        s.each(a, rows, [&](std::int64_t n, const auto& lattice, double* memory) {
          float* dx = static_cast<float*>(a.outputs[0]) + n * s.frames * s.classes;
          std::fill_n(dx, s.frames * s.classes, 0.0f);
          const double dloss = dlosses[n];
          const double loss = ctc_occupancy(
              lattice, memory, [&](std::int64_t t, std::int64_t c, double probability) {
                dx[t * s.classes + c] -= static_cast<float>(dloss * probability);
              });
          if (std::isinf(loss) && !s.zero_infinity)
            std::fill_n(dx, lattice.frames * s.classes, std::numeric_limits<float>::quiet_NaN());
        });
      },
      s.workspace_bytes(rows));
}

}  // namespace

void add_ctc_loss_kernels(KernelList& list) {
  add_row_major(list, "cpu.ctc_loss", "CtcLoss", only_float32({0}), prepare_loss);
  add_row_major(list, "cpu.ctc_loss_grad", "CtcLossGrad", only_float32({0, 1}), prepare_gradient);
}

}  // namespace tandem
