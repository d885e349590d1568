// CtcLoss and its gradient, sample by sample. A label that is no class and a length that is out of
// range are reported, and the nearest one stands in for them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/network_support.h"
#include "kernels/shared/ctc_lattice.h"

namespace tandem::reference {
namespace {

/// The operands that loss and gradient share; `first`: the input that log_probs is.
struct Sequences {
  Reader log_probs, labels, label_lengths, lengths;
  std::size_t first;
  bool has_lengths;
  std::int64_t samples, frames, classes, most_labels, blank;
  bool zero_infinity;
  std::int32_t node;

  Sequences(const KernelRequest& r, std::size_t at)
      : log_probs(r.inputs[at]),
        labels(r.inputs[at + 1]),
        label_lengths(r.inputs[at + 2]),
        lengths(r.is_present(at + 3) ? Reader(r.inputs[at + 3]) : Reader()),
        first(at),
        has_lengths(r.is_present(at + 3)),
        samples(r.inputs[at].type.shape[0]),
        frames(r.inputs[at].type.shape[1]),
        classes(r.inputs[at].type.shape[2]),
        most_labels(r.inputs[at + 1].type.shape[1]),
        blank(r.attributes().integer("blank")),
        zero_infinity(r.attributes().flag("zero_infinity")),
        node(r.node_index) {}

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(2 * most_labels + 1) * sizeof(double);
  }
  std::int64_t place(std::int64_t sample, std::int64_t frame, std::int64_t c) const {
    return (sample * frames + frame) * classes + c;
  }
  std::int64_t inside(const KernelArguments& a, ErrorWord::Kind kind, std::int64_t value,
                      std::int64_t most) const {
    const std::int64_t nearest = std::clamp<std::int64_t>(value, 0, most);
    if (nearest != value) report(a, kind, node, value);
    return nearest;
  }

  auto lattice(const KernelArguments& a, std::int64_t n) const {
    const auto log_prob = [this, &a, n](std::int64_t t, std::int64_t c) {
      return log_probs.number(a.inputs[first], place(n, t, c));
    };
    const auto label = [this, &a, n](std::int64_t i) {
      return inside(a, ErrorWord::bad_label,
                    labels.integer(a.inputs[first + 1], n * most_labels + i), classes - 1);
    };
    const std::int64_t count = inside(a, ErrorWord::index_out_of_range,
                                      label_lengths.integer(a.inputs[first + 2], n), most_labels);
    std::int64_t length = frames;
    if (has_lengths)
      length =
          inside(a, ErrorWord::index_out_of_range, lengths.integer(a.inputs[first + 3], n), frames);
    return CtcLattice<decltype(log_prob), decltype(label)>{log_prob, label, length, count, blank};
  }
};

std::unique_ptr<PreparedKernel> sequence_losses(const KernelRequest& r) {
  const Sequences s(r, 0);
  const Writer losses(r.outputs[0]);
  return prepared(
      [=](const KernelArguments& a) {
        for (std::int64_t n = 0; n < s.samples; ++n) {
          const double loss = ctc_loss(s.lattice(a, n), static_cast<double*>(a.workspace));
          losses(a.outputs[0], n, s.zero_infinity && std::isinf(loss) ? 0.0 : loss);
        }
      },
      2 * s.row_bytes());
}

constexpr auto sequence_gradient = []<class T>(const KernelRequest& r, T) {
  const Sequences s(r, 1);
  const Reader dlosses(r.inputs[0]);
  const Places dlog_probs(r.outputs[0]);
  return prepared(
      [=](const KernelArguments& a) {
        T* dx = static_cast<T*>(a.outputs[0]);
        for (std::int64_t n = 0; n < s.samples; ++n) {
          const double dloss = dlosses.number(a.inputs[0], n);
          for (std::int64_t i = 0; i < s.frames * s.classes; ++i)
            dx[dlog_probs(s.place(n, 0, i))] = T(0);
          const auto lattice = s.lattice(a, n);
          const double loss =
              ctc_occupancy(lattice, static_cast<double*>(a.workspace),
                            [&](std::int64_t t, std::int64_t c, double probability) {
                              T& sum = dx[dlog_probs(s.place(n, t, c))];
                              sum = static_cast<T>(static_cast<double>(sum) - dloss * probability);
                            });
          if (!std::isinf(loss) || s.zero_infinity) continue;
          for (std::int64_t i = 0; i < lattice.frames * s.classes; ++i)
            dx[dlog_probs(s.place(n, 0, i))] = std::numeric_limits<T>::quiet_NaN();
        }
      },
      static_cast<std::size_t>(s.frames + 2) * s.row_bytes());
};

}  // namespace

void add_ctc_loss(KernelList& list) {
  list.push_back(untyped_kernel("reference.ctc_loss", "CtcLoss", sequence_losses));
  list.push_back(float_kernel("reference.ctc_loss_grad", "CtcLossGrad", sequence_gradient));
}

}  // namespace tandem::reference
