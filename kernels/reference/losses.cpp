// LabelWeights, SoftmaxCrossEntropy, NegativeLogLikelihood and their gradients. A label outside the
// classes is an error unless its weight is 0; it is reported, and the nearest class stands in for
// it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/reference/network_support.h"
#include "kernels/shared/cross_entropy_operands.h"

namespace tandem::reference {
namespace {

/// Class scores [N, C, d...] by (label index in row-major order, class).
Lines scores(const Operand& operand) { return {operand, 1}; }

struct Label {
  std::int64_t at = 0;  // inside the classes
  double weight = 1;
};

/// Labels and their optional weights.
struct Labels {
  Reader label, weight;
  std::size_t label_input, weight_input;
  bool weighted;
  std::int32_t node;

  Labels(const KernelRequest& r, std::size_t labels, std::size_t weights)
      : label(r.inputs[labels]),
        weight(r.is_present(weights) ? Reader(r.inputs[weights]) : Reader()),
        label_input(labels),
        weight_input(weights),
        weighted(r.is_present(weights)),
        node(r.node_index) {}

  Label get(const KernelArguments& a, std::int64_t i, std::int64_t classes) const {
    Label result;
    if (weighted) result.weight = weight.number(a.inputs[weight_input], i);
    const std::int64_t value = label.integer(a.inputs[label_input], i);
    result.at = std::clamp<std::int64_t>(value, 0, classes - 1);
    if (result.at != value && result.weight != 0) report(a, ErrorWord::bad_label, node, value);
    return result;
  }
};

std::unique_ptr<PreparedKernel> label_weights(const KernelRequest& r) {
  const Reader labels(r.inputs[0]);
  const bool weighted = r.is_present(1);
  const Reader class_weights = weighted ? Reader(r.inputs[1]) : Reader();
  const Writer out(r.outputs[0]);
  const std::int64_t count = r.inputs[0].type.elements(), node = r.node_index;
  const std::int64_t classes = r.attributes().integer("classes");
  const std::int64_t ignore_index = r.attributes().integer("ignore_index");
  const bool ignore = r.attributes().flag("ignore");
  return prepared([=](const KernelArguments& a) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t label = labels.integer(a.inputs[0], i);
      if (ignore && label == ignore_index) {
        out(a.outputs[0], i, 0.0);
        continue;
      }
      const std::int64_t at = std::clamp<std::int64_t>(label, 0, classes - 1);
      if (at != label) report(a, ErrorWord::bad_label, static_cast<std::int32_t>(node), label);
      out(a.outputs[0], i, weighted ? class_weights.number(a.inputs[1], at) : 1.0);
    }
  });
}

// Losses and gradient, of which an operator makes one or both. The gradient counts on sums of the
// type that the operator gives them in, also where it makes both.
template <class T>
std::unique_ptr<PreparedKernel> cross_entropy(const KernelRequest& r,
                                              const CrossEntropyOperands& at, T) {
  using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Lines logits = scores(r.inputs[at.logits]);
  const Labels labels(r, at.labels, at.label_weights);
  const Reader dlosses = at.dlosses < 0 ? Reader() : Reader(r.inputs[at.dlosses]);
  const Reader sums = at.sums < 0 ? Reader() : Reader(r.inputs[at.sums]);
  const Writer losses = at.losses < 0 ? Writer() : Writer(r.outputs[at.losses]);
  const Writer log_sum_exp = at.log_sum_exp < 0 ? Writer() : Writer(r.outputs[at.log_sum_exp]);
  const Lines dlogits = at.dlogits < 0 ? logits : scores(r.outputs[at.dlogits]);
  const double smoothing = r.attributes().number("label_smoothing");
  return prepared([=](const KernelArguments& a) {
    const T* x = input_at<T>(a, at.logits);
    T* dx = output_at<T>(a, at.dlogits);
    for (std::int64_t i = 0; i < logits.lines(); ++i) {
      const auto logit = [&](std::int64_t c) { return static_cast<double>(x[logits(i, c)]); };
      const Label label = labels.get(a, i, logits.extent());
      double lse = 0;
      if (at.sums >= 0) {
        lse = sums.number(a.inputs[at.sums], i);
      } else {
        double largest = -std::numeric_limits<double>::infinity(), sum = 0, total = 0;
        for (std::int64_t c = 0; c < logits.extent(); ++c) largest = std::max(largest, logit(c));
        for (std::int64_t c = 0; c < logits.extent(); ++c) {
          sum += std::exp(logit(c) - largest);
          total += logit(c);
        }
        lse = largest + std::log(sum);
        double loss = lse - (1 - smoothing) * logit(label.at);
        if (smoothing != 0) loss -= smoothing * total / static_cast<double>(logits.extent());
        losses(output_at<void>(a, at.losses), i, label.weight == 0 ? 0.0 : label.weight * loss);
        log_sum_exp(output_at<void>(a, at.log_sum_exp), i, lse);
        lse = static_cast<Statistic>(lse);
      }
      if (dx == nullptr) continue;
      const double factor = dlosses.number(a.inputs[at.dlosses], i) * label.weight;
      for (std::int64_t c = 0; c < logits.extent(); ++c) {
        double slope = std::exp(logit(c) - lse) - smoothing / static_cast<double>(logits.extent());
        if (c == label.at) slope -= 1 - smoothing;
        dx[dlogits(i, c)] = rounded<T>(label.weight == 0 ? 0.0 : factor * slope);
      }
    }
  });
}

constexpr auto likelihood = []<class T>(const KernelRequest& r, T) {
  const Lines log_probs = scores(r.inputs[0]);
  const Labels labels(r, 1, 2);
  const Writer losses(r.outputs[0]);
  return prepared([=](const KernelArguments& a) {
    const T* x = static_cast<const T*>(a.inputs[0]);
    for (std::int64_t i = 0; i < log_probs.lines(); ++i) {
      const Label label = labels.get(a, i, log_probs.extent());
      const double loss = -label.weight * static_cast<double>(x[log_probs(i, label.at)]);
      losses(a.outputs[0], i, label.weight == 0 ? 0.0 : loss);
    }
  });
};

constexpr auto likelihood_grad = []<class T>(const KernelRequest& r, T) {
  const Reader dlosses(r.inputs[0]);
  const Labels labels(r, 1, 2);
  const Lines dlog_probs = scores(r.outputs[0]);
  return prepared([=](const KernelArguments& a) {
    T* dx = static_cast<T*>(a.outputs[0]);
    for (std::int64_t i = 0; i < dlog_probs.lines(); ++i) {
      const Label label = labels.get(a, i, dlog_probs.extent());
      const double slope = label.weight == 0 ? 0.0 : -label.weight * dlosses.number(a.inputs[0], i);
      for (std::int64_t c = 0; c < dlog_probs.extent(); ++c) {
        dx[dlog_probs(i, c)] = rounded<T>(c == label.at ? slope : 0.0);
      }
    }
  });
};

}  // namespace

void add_losses(KernelList& list) {
  list.push_back(untyped_kernel("reference.label_weights", "LabelWeights", label_weights));
  for (const CrossEntropyOperands& at : cross_entropies) {
    list.push_back(float_kernel(
        std::string("reference.") + at.kernel, at.op,
        [&at](const KernelRequest& r, auto tag) { return cross_entropy(r, at, tag); },
        static_cast<std::size_t>(at.logits)));
  }
  list.push_back(
      float_kernel("reference.negative_log_likelihood", "NegativeLogLikelihood", likelihood));
  list.push_back(float_kernel("reference.negative_log_likelihood_grad", "NegativeLogLikelihoodGrad",
                              likelihood_grad));
}

}  // namespace tandem::reference
