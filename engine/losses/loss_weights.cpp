#include "engine/losses/loss_weights.h"

#include <algorithm>

namespace tandem {

namespace {

/// Weights, which are not written where there are none.
KeyForm weights_form(std::vector<double>& member, unsigned type) {
  KeyForm weights = form(member);
  weights.type = type;
  weights.write = [&member, write = std::move(weights.write)] {
    return member.empty() ? std::string() : write();
  };
  return weights;
}

auto each_class() { return parts("[]", number_value, at_least(0), "weight of this class"); }

}  // namespace

void ClassOptions::visit(KeyVisitor& v) {
  v.key("ignore_index", ignore_index, "label that does not count");
  v.key("class_weights", weights_form(class_weights, list_value), at_least(0), each_class(),
        "one weight a class; a mean divides by the sum of the weights");
}

void PositiveOptions::visit(KeyVisitor& v) {
  v.key("pos_weight", weights_form(pos_weight, number_value | list_value), by_default("(1)"),
        at_least(0), each_class(), "weight of positive labels, one or one a class");
}

const ClassOptions& class_options(const LossTerm& term) {
  static const ClassOptions none;
  const auto* const own = term.options.find<ClassOptions>();
  return own == nullptr ? none : *own;
}

bool weighs_labels(const LossTerm& term) {
  const ClassOptions& own = class_options(term);
  return own.ignore_index || !own.class_weights.empty();
}

std::optional<ValueId> label_weights(LossBuilder& b, const ClassLabels& labels, bool with_classes) {
  const std::vector<double> of_classes =
      with_classes ? class_options(b.term).class_weights : std::vector<double>{};
  const std::optional<std::int64_t> ignored = class_options(b.term).ignore_index;
  if (!of_classes.empty() && static_cast<std::int64_t>(of_classes.size()) != labels.classes) {
    b.fail("class_weights", std::to_string(labels.classes) + " numbers, one per class",
           std::to_string(of_classes.size()));
    return std::nullopt;
  }
  if (!ignored && of_classes.empty()) return ValueId{};
  const ValueId weights =
      of_classes.empty() ? ValueId{} : b.along_axis(of_classes, 0, 1, DType::float32);
  return b.g.add_node("LabelWeights", {labels.labels, weights},
                      {{"ignore_index", ignored.value_or(0)},
                       {"ignore", std::int64_t{ignored.has_value()}},
                       {"classes", labels.classes}});
}

std::optional<ValueId> pos_weight(LossBuilder& b, ValueId x) {
  const std::vector<double>& numbers = b.options<PositiveOptions>().pos_weight;
  if (numbers.empty()) return ValueId{};
  const auto count = static_cast<std::int64_t>(numbers.size());
  if (count != 1 && (b.g.shape(x).empty() || b.g.shape(x).back() != count)) {
    b.fail("pos_weight", "one number, or one per class", std::to_string(count) + " numbers");
    return std::nullopt;
  }
  return b.along_axis(numbers, 0, 1, b.g.dtype(x));
}

namespace {

/// How many weights a sample has, where their shape [batch, ..] begins the shape of the losses.
std::optional<std::int64_t> weights_a_sample(LossBuilder& b, const Shape& positions,
                                             ValueId sample_weights) {
  Shape given = b.g.shape(sample_weights);
  while (given.size() > 1 && given.back() == 1) given.pop_back();
  const bool fits = !given.empty() && given.size() <= positions.size() &&
                    std::equal(given.begin(), given.end(), positions.begin());
  if (!fits || b.g.dtype(sample_weights) == DType::boolean) {
    b.fail("sample_weights: \"" + b.term.sample_weights + "\" does not fit the losses",
           "numbers, one for each sample or position of " + to_string(positions),
           to_string(b.g.type(sample_weights)));
    return std::nullopt;
  }
  return element_count(given) / given[0];
}

ValueId sum_of(LossBuilder& b, ValueId x) {
  return b.g.reduce_sum(x, all_axes(b.g.shape(x).size()), false);
}

/// The sum of all weights of the step, in the type of the losses. `weights` are the micro-batch's,
/// or unset. A fed denominator counts each sample weight once, and each covers `times` losses.
ValueId denominator(LossBuilder& b, ValueId weights, double times, DType dtype,
                    const StepSamples& samples, std::vector<FedDenominator>& fed) {
  ValueId sum;
  if (samples.whole()) {
    sum = sum_of(b, weights);
  } else {
    const std::string input = "loss." + b.term.name + ".denominator";
    sum = b.g.input(input, TensorType{DType::float32, {}});
    fed.push_back({b.term.name, input});
  }
  if (times != 1) sum = b.times(sum, times);
  return b.g.cast(sum, dtype);
}

}  // namespace

std::optional<ValueId> reduced(LossBuilder& b, Losses found, ValueId sample_weights,
                               const StepSamples& samples, std::vector<FedDenominator>& fed) {
  GraphBuilder& g = b.g;
  const LossReduction reduction = b.term.reduction;
  const DType dtype = g.dtype(found.losses);
  const double count = static_cast<double>(element_count(g.shape(found.losses)));
  const double in_step = static_cast<double>(samples.step);
  const double part = static_cast<double>(samples.micro_batch) / in_step;
  if (!found.has_batch) {
    const double factor = reduction == LossReduction::sum         ? part
                          : reduction == LossReduction::batchmean ? part / in_step
                                                                  : part / count;
    return b.times(sum_of(b, found.losses), factor);
  }
  double losses_a_weight = 1;
  ValueId weights = found.label_weights;
  if (sample_weights) {
    const Shape positions = found.positions.empty() ? g.shape(found.losses) : found.positions;
    const auto a_sample = weights_a_sample(b, positions, sample_weights);
    if (!a_sample) return std::nullopt;
    const std::int64_t rows = samples.micro_batch * *a_sample;
    const Shape matrix{rows, element_count(positions) / rows};
    const ValueId column = g.reshape(g.cast(sample_weights, DType::float32), {rows, 1});
    found.losses = g.mul(g.reshape(found.losses, matrix), g.cast(column, dtype));
    if (weights) {
      weights = g.mul(g.reshape(g.cast(weights, DType::float32), matrix), column);
    } else {
      weights = column;
      losses_a_weight = static_cast<double>(matrix[1]);
    }
  }
  if (reduction == LossReduction::sum) return sum_of(b, found.losses);
  if (reduction == LossReduction::batchmean && found.label_weights) {
    b.fail("reduction = \"batchmean\" divides by the number of samples, whatever their labels",
           "mean or sum, or neither ignore_index nor class_weights");
    return std::nullopt;
  }
  if (reduction == LossReduction::batchmean) return b.times(sum_of(b, found.losses), 1 / in_step);
  if (weights) {
    const ValueId below = denominator(b, weights, losses_a_weight, dtype, samples, fed);
    return g.div(sum_of(b, found.losses), below);
  }
  if (samples.whole())
    return g.reduce_mean(found.losses, all_axes(g.shape(found.losses).size()), false);
  return b.times(sum_of(b, found.losses), 1.0 / (count / samples.micro_batch * samples.step));
}

double weight_sum(const LossTerm& term, const HostTensor* labels,
                  const HostTensor* sample_weights) {
  if (!weighs_labels(term)) labels = nullptr;
  double sum = 0;
  if (labels == nullptr) {
    for (std::int64_t i = 0; sample_weights && i < sample_weights->type().elements(); ++i)
      sum += sample_weights->number(i);
    return sum;
  }
  const auto& [ignored, of_classes] = class_options(term);
  const std::vector<std::int64_t> classes = labels->integers();
  const auto count = static_cast<std::int64_t>(classes.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = classes[static_cast<std::size_t>(i)];
    if (ignored && label == *ignored) continue;
    const bool known = label >= 0 && label < static_cast<std::int64_t>(of_classes.size());
    const double of_class = of_classes.empty() ? 1.0
                            : known            ? of_classes[static_cast<std::size_t>(label)]
                                               : 0.0;
    const double of_sample =
        sample_weights ? sample_weights->number(i / (count / sample_weights->type().elements()))
                       : 1.0;
    sum += of_class * of_sample;
  }
  return sum;
}

}  // namespace tandem
