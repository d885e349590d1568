#include "engine/training/losses.h"

#include <algorithm>
#include <optional>

#include "engine/graph/error.h"
#include "engine/graph/selector.h"

namespace tandem {
namespace {

class LossBuilder {
 public:
  LossBuilder(GraphBuilder& g, const FieldTypes& fields, const StepSamples& samples)
      : g_(g), fields_(fields), samples_(samples) {}

  ValueId term(const LossTerm& term);
  ValueId own(const LossConfig& config);
  std::vector<FedDenominator> denominators;
  std::vector<Diagnostic> problems;

 private:
  void fail(const Where& where, std::string message, std::string expected = "",
            std::string got = "", std::string fix = "") {
    problems.push_back({std::move(message), where.file, where.line, where.column, "",
                        std::move(expected), std::move(got), std::move(fix)});
  }
  ValueId prediction(const LossTerm& term);
  ValueId labels(const LossTerm& term);
  ValueId cross_entropy(const LossTerm& term, ValueId logits, ValueId labels);
  ValueId smoothed(const LossTerm& term, ValueId logits, ValueId labels, ValueId losses);
  ValueId soft_cross_entropy(const LossTerm& term, ValueId logits, ValueId labels);
  ValueId squared_error(const LossTerm& term, ValueId x, ValueId targets);
  ValueId binary_cross_entropy(const LossTerm& term, ValueId logits, ValueId labels);
  ValueId sum_of_squares(const LossTerm& term, ValueId x);
  ValueId reduce(const LossTerm& term, ValueId losses, ValueId label_weights);
  std::optional<ValueId> like(const LossTerm& term, ValueId x, ValueId labels);

  GraphBuilder& g_;
  const FieldTypes& fields_;
  const StepSamples samples_;
};

Ints all_axes(std::size_t rank) {
  Ints axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

ValueId LossBuilder::prediction(const LossTerm& term) {
  const Graph& graph = g_.graph();
  const NamedValue* output = graph.find_output(term.logits);
  const ValueId value = output != nullptr ? output->value : graph.find_value(term.logits);
  if (!value) {
    std::vector<std::string> names;
    for (const NamedValue& named : graph.outputs) names.push_back(named.name);
    for (const Value& named : graph.values) {
      if (named.kind == ValueKind::computed) names.push_back(named.name);
    }
    const std::string nearest = nearest_name(term.logits, names);
    fail(term.where, "loss \"" + term.name + "\": the model has no value \"" + term.logits + "\"",
         graph.outputs.empty() ? "" : "a value such as \"" + graph.outputs[0].name + "\"", "",
         nearest.empty() ? "" : "did you mean \"" + nearest + "\"?");
    return {};
  }
  const NodeId producer = graph.value(value).producer;
  if (producer && term.kind != LossKind::mse && term.kind != LossKind::sum_of_squares) {
    const Node& node = graph.node(producer);
    const std::string& op = node.op->name;
    if (op == "Softmax" || op == "LogSoftmax" || op == "Sigmoid") {
      fail(term.where,
           "loss \"" + term.name + "\": \"" + term.logits + "\" is the output of " + op +
               ", but this loss applies it itself",
           "logits", op + " at " + node.path,
           "name its input \"" + graph.value(node.inputs[0]).name + "\" instead");
      return {};
    }
  }
  return value;
}

ValueId LossBuilder::labels(const LossTerm& term) {
  if (const NamedValue* input = g_.graph().find_input(term.labels)) return input->value;
  const auto field = fields_.find(term.labels);
  if (field == fields_.end()) {
    std::vector<std::string> names;
    for (const auto& [name, type] : fields_) names.push_back(name);
    const std::string nearest = nearest_name(term.labels, names);
    fail(term.where, "loss \"" + term.name + "\": there is no data field \"" + term.labels + "\"",
         "", "", nearest.empty() ? "add it to [data.fields]" : "did you mean \"" + nearest + "\"?");
    return {};
  }
  return g_.input(term.labels, field->second);
}

ValueId LossBuilder::reduce(const LossTerm& term, ValueId losses, ValueId label_weights) {
  const Shape shape = g_.shape(losses);
  const Ints axes = all_axes(shape.size());
  if (term.reduction == Reduction::sum) return g_.reduce_sum(losses, axes, false);
  if (!label_weights) {
    if (samples_.whole()) return g_.reduce_mean(losses, axes, false);
    const double count = static_cast<double>(element_count(shape)) / samples_.pass * samples_.step;
    return g_.mul(g_.reduce_sum(losses, axes, false), g_.scalar(1.0 / count, g_.dtype(losses)));
  }
  ValueId denominator;
  if (samples_.whole()) {
    denominator = g_.reduce_sum(label_weights, axes, false);
  } else {
    const std::string input = "loss." + term.name + ".denominator";
    denominator = g_.input(input, TensorType{DType::float32, {}});
    denominators.push_back({term.name, input});
  }
  return g_.div(g_.reduce_sum(losses, axes, false), g_.cast(denominator, g_.dtype(losses)));
}

/// Class weights and ignore_index as one weight per label; -1 where all are 1.
ValueId label_weights(GraphBuilder& g, const LossTerm& term, ValueId labels, std::int64_t classes) {
  if (!term.ignore_index && term.class_weights.empty()) return {};
  ValueId weights;
  if (!term.class_weights.empty()) {
    const std::vector<float> values(term.class_weights.begin(), term.class_weights.end());
    weights =
        g.constant(HostTensor::from<float>({static_cast<std::int64_t>(values.size())}, values));
  }
  return g.add_node("LabelWeights", {labels, weights},
                    {{"ignore_index", term.ignore_index.value_or(0)},
                     {"ignore", std::int64_t{term.ignore_index.has_value()}},
                     {"classes", classes}});
}

/// Logits as [N, C] and labels as [N], classes on the last axis or on axis 1.
struct Classes {
  bool fits = false;
  bool last = false;  // [.., C] against [..]
};
Classes class_axis(const Shape& logits, const Shape& labels) {
  Classes result;
  if (logits.size() < 2) return result;
  const Shape without_last(logits.begin(), logits.end() - 1);
  Shape without_first = logits;
  without_first.erase(without_first.begin() + 1);
  result.last = labels == without_last;
  result.fits = result.last || labels == without_first;
  return result;
}

ValueId LossBuilder::cross_entropy(const LossTerm& term, ValueId logits, ValueId labels) {
  const Shape x = g_.shape(logits);
  if (is_float(g_.dtype(labels)) || g_.shape(labels) == x)
    return soft_cross_entropy(term, logits, labels);
  Shape y = g_.shape(labels);
  if (y.size() == x.size() && y.size() >= 2 && y.back() == 1) {  // [B, 1] against [B, C]
    y.pop_back();
    labels = g_.reshape(labels, y);
  }
  const Classes axis = class_axis(x, y);
  if (!axis.fits) {
    fail(term.where, "loss \"" + term.name + "\": labels do not fit the logits",
         "labels of the logits' shape " + to_string(x) +
             " without the class axis (the last, or axis 1)",
         to_string(y));
    return {};
  }
  if (axis.last) {
    const std::int64_t rows = element_count(y);
    logits = g_.reshape(logits, {rows, x.back()});
    labels = g_.reshape(labels, {rows});
  }
  const std::int64_t classes = g_.shape(logits)[1];
  if (!term.class_weights.empty() &&
      static_cast<std::int64_t>(term.class_weights.size()) != classes) {
    fail(term.where, "loss \"" + term.name + "\": class_weights",
         std::to_string(classes) + " numbers, one per class",
         std::to_string(term.class_weights.size()));
    return {};
  }
  if (g_.dtype(labels) != DType::int64 && g_.dtype(labels) != DType::int32) {
    labels = g_.cast(labels, DType::int64);
  }
  const ValueId weights = label_weights(g_, term, labels, classes);
  const bool weighted_smoothing = term.label_smoothing > 0 && !term.class_weights.empty();
  ValueId losses =
      g_.add_node("SoftmaxCrossEntropy", {logits, labels, weights},
                  {{"label_smoothing", weighted_smoothing ? 0.0 : term.label_smoothing}});
  if (weighted_smoothing) losses = smoothed(term, logits, labels, losses);
  return reduce(term, losses, weights);
}

/// PyTorch's smoothing under class weights w: (1 - s) loss - s / C sum_c w_c log softmax(x)_c,
/// where the label counts. Classes are on axis 1.
ValueId LossBuilder::smoothed(const LossTerm& term, ValueId logits, ValueId labels,
                              ValueId losses) {
  const DType dtype = g_.dtype(logits);
  const Shape shape = g_.shape(logits);
  const std::vector<float> weights(term.class_weights.begin(), term.class_weights.end());
  Shape along_classes(shape.size(), 1);
  along_classes[1] = shape[1];
  const ValueId w = g_.cast(g_.constant(HostTensor::from<float>(along_classes, weights)), dtype);
  const ValueId log_p = g_.add_node("LogSoftmax", {logits}, {{"axis", std::int64_t{1}}});
  ValueId spread = g_.reduce_sum(g_.mul(log_p, w), {1}, false);
  if (term.ignore_index) {
    LossTerm counts;
    counts.ignore_index = term.ignore_index;
    spread = g_.mul(spread, g_.cast(label_weights(g_, counts, labels, shape[1]), dtype));
  }
  const double s = term.label_smoothing;
  return g_.sub(g_.mul(losses, g_.scalar(1 - s, dtype)),
                g_.mul(spread, g_.scalar(s / static_cast<double>(shape[1]), dtype)));
}

/// One-hot or soft labels: - sum_c y_c log softmax(x)_c over the last axis, mean over the rest.
ValueId LossBuilder::soft_cross_entropy(const LossTerm& term, ValueId logits, ValueId labels) {
  const Shape x = g_.shape(logits);
  if (g_.shape(labels) != x || x.size() < 2) {
    fail(term.where, "loss \"" + term.name + "\": labels as probabilities or one-hot",
         "the logits' shape " + to_string(x), to_string(g_.shape(labels)));
    return {};
  }
  if (term.ignore_index || !term.class_weights.empty()) {
    fail(term.where,
         "loss \"" + term.name + "\": ignore_index and class_weights need integer labels");
    return {};
  }
  const auto axis = static_cast<std::int64_t>(x.size() - 1);
  ValueId y = g_.cast(labels, g_.dtype(logits));
  if (term.label_smoothing > 0) {
    const DType dtype = g_.dtype(logits);
    y = g_.add(g_.mul(y, g_.scalar(1 - term.label_smoothing, dtype)),
               g_.scalar(term.label_smoothing / static_cast<double>(x.back()), dtype));
  }
  const ValueId log_p = g_.add_node("LogSoftmax", {logits}, {{"axis", axis}});
  return reduce(term, g_.neg(g_.reduce_sum(g_.mul(y, log_p), {axis}, false)), {});
}

/// Labels with the shape of x where the elements agree ([B] against [B, 1] and the other way
/// round).
std::optional<ValueId> LossBuilder::like(const LossTerm& term, ValueId x, ValueId labels) {
  const Shape shape = g_.shape(x);
  if (g_.shape(labels) != shape) {
    auto squeezed = [](const Shape& s) {
      Shape kept;
      std::copy_if(s.begin(), s.end(), std::back_inserter(kept),
                   [](std::int64_t e) { return e != 1; });
      return kept;
    };
    if (squeezed(shape) != squeezed(g_.shape(labels))) {
      fail(term.where,
           "loss \"" + term.name + "\": \"" + term.labels + "\" does not fit \"" + term.logits +
               "\"",
           to_string(shape), to_string(g_.shape(labels)));
      return std::nullopt;
    }
    labels = g_.reshape(labels, shape);
  }
  return g_.cast(labels, g_.dtype(x));
}

ValueId LossBuilder::squared_error(const LossTerm& term, ValueId x, ValueId targets) {
  const auto y = like(term, x, targets);
  if (!y) return {};
  const ValueId difference = g_.sub(x, *y);
  return reduce(term, g_.mul(difference, difference), {});
}

/// PyTorch's binary_cross_entropy_with_logits: softplus(x) - x z; with pos_weight p:
/// (1 + (p - 1) z) softplus(-x) + (1 - z) x.
ValueId LossBuilder::binary_cross_entropy(const LossTerm& term, ValueId x, ValueId labels) {
  const auto z = like(term, x, labels);
  if (!z) return {};
  if (term.pos_weight.empty()) {
    return reduce(term, g_.sub(g_.add_node("Softplus", {x}), g_.mul(x, *z)), {});
  }
  const DType dtype = g_.dtype(x);
  const std::vector<float> p(term.pos_weight.begin(), term.pos_weight.end());
  const auto count = static_cast<std::int64_t>(p.size());
  if (count != 1 && (g_.shape(x).empty() || g_.shape(x).back() != count)) {
    fail(term.where, "loss \"" + term.name + "\": pos_weight", "one number, or one per class",
         std::to_string(count) + " numbers");
    return {};
  }
  const ValueId weight = g_.cast(g_.constant(HostTensor::from<float>({count}, p)), dtype);
  const ValueId one = g_.scalar(1, dtype);
  const ValueId factor = g_.add(one, g_.mul(g_.sub(weight, one), *z));
  const ValueId losses =
      g_.add(g_.mul(factor, g_.add_node("Softplus", {g_.neg(x)})), g_.mul(g_.sub(one, *z), x));
  return reduce(term, losses, {});
}

/// sum x^2, without a factor 1/2. A parameter has no batch: each pass counts its part of it.
ValueId LossBuilder::sum_of_squares(const LossTerm& term, ValueId x) {
  const DType dtype = g_.dtype(x);
  if (!is_float(dtype)) {
    fail(term.where, "loss \"" + term.name + "\": \"" + term.logits + "\" holds no numbers",
         "a float type", std::string(name_of(dtype)));
    return {};
  }
  const bool has_batch = g_.graph().value(x).kind != ValueKind::state;
  const ValueId squares = g_.mul(x, x);
  if (has_batch) return reduce(term, squares, {});
  const double elements = static_cast<double>(element_count(g_.shape(x)));
  const double part = static_cast<double>(samples_.pass) / static_cast<double>(samples_.step);
  const ValueId sum = g_.reduce_sum(squares, all_axes(g_.shape(x).size()), false);
  return g_.mul(sum, g_.scalar(term.reduction == Reduction::sum ? part : part / elements, dtype));
}

ValueId LossBuilder::term(const LossTerm& term) {
  const bool alone = term.kind == LossKind::sum_of_squares;
  const ValueId x = prediction(term);
  const ValueId y = alone ? ValueId{} : labels(term);
  if (!x || (!y && !alone)) return {};
  g_.set_scope({"loss." + term.name, Phase::forward, {}});
  ValueId value;
  switch (term.kind) {
    case LossKind::softmax_cross_entropy:
      value = cross_entropy(term, x, y);
      break;
    case LossKind::mse:
      value = squared_error(term, x, y);
      break;
    case LossKind::binary_cross_entropy:
      value = binary_cross_entropy(term, x, y);
      break;
    case LossKind::sum_of_squares:
      value = sum_of_squares(term, x);
      break;
  }
  if (!value) return {};
  value = g_.cast(value, DType::float32);
  return term.weight == 1 ? value : g_.mul(value, g_.scalar(term.weight, DType::float32));
}

/// The graph's own scalar loss, scaled to the pass's share of the step.
ValueId LossBuilder::own(const LossConfig& config) {
  const Graph& graph = g_.graph();
  std::vector<const NamedValue*> scalars;
  for (const NamedValue& output : graph.outputs) {
    const TensorType& type = graph.type(output.value);
    if (type.elements() == 1 && is_float(type.dtype) &&
        (config.output.empty() || config.output == output.name)) {
      scalars.push_back(&output);
    }
  }
  if (scalars.size() != 1) {
    std::string names;
    for (const NamedValue& output : graph.outputs)
      names += (names.empty() ? "" : ", ") + output.name;
    fail(config.where, "the configuration has no loss and the model does not end in one scalar",
         "one scalar output, or [loss] terms",
         std::to_string(scalars.size()) + " scalar outputs of: " + names,
         "add [loss] terms = [ { name = \"loss\", kind = \"softmax_cross_entropy\", logits = \"" +
             (graph.outputs.empty() ? "logits" : graph.outputs[0].name) +
             "\", labels = \"labels\" } ]");
    return {};
  }
  g_.set_scope({"loss.total", Phase::forward, {}});
  const ValueId value = g_.reshape(g_.cast(scalars[0]->value, DType::float32), {});
  if (samples_.whole()) return value;
  const NodeId producer = g_.graph().value(scalars[0]->value).producer;
  const std::string op = producer ? g_.graph().node(producer).op->name : "";
  if (op == "ReduceSum") return value;
  if (op == "ReduceMean") {
    return g_.mul(value,
                  g_.scalar(static_cast<double>(samples_.pass) / samples_.step, DType::float32));
  }
  const std::string why =
      op == "Div" ? "it is divided by what one pass counts (labels that are not ignored, or their "
                    "weights), not by what the whole step counts"
                  : "only the parts of a loss that ends in a sum or mean over the batch add up";
  fail(config.where,
       "micro_batch: the model's own loss \"" + scalars[0]->name +
           "\" cannot be split into passes: " + why,
       "a loss whose last operator is ReduceSum or ReduceMean",
       producer ? op + " at " + g_.graph().node(producer).path : "no operator",
       "leave micro_batch away, or export the model up to its logits and give the loss in [loss] "
       "terms, which count over the whole step");
  return {};
}

}  // namespace

Loss add_loss(GraphBuilder& g, const LossConfig& config, const FieldTypes& fields,
              const StepSamples& samples) {
  LossBuilder builder(g, fields, samples);
  Loss loss;
  if (config.terms.empty()) {
    loss.total = builder.own(config);
  } else {
    for (const LossTerm& term : config.terms)
      loss.terms.emplace_back(term.name, builder.term(term));
    if (builder.problems.empty()) {
      g.set_scope({"loss.total", Phase::forward, {}});
      loss.total = loss.terms[0].second;
      for (std::size_t i = 1; i < loss.terms.size(); ++i)
        loss.total = g.add(loss.total, loss.terms[i].second);
    }
  }
  if (!builder.problems.empty()) throw Error(ErrorKind::usage, std::move(builder.problems));
  loss.denominators = std::move(builder.denominators);
  return loss;
}

double label_weight_sum(const LossTerm& term, const HostTensor& labels) {
  double sum = 0;
  for (const std::int64_t label : labels.integers()) {
    if (term.ignore_index && label == *term.ignore_index) continue;
    const bool known = label >= 0 && label < static_cast<std::int64_t>(term.class_weights.size());
    sum += term.class_weights.empty() ? 1.0 : known ? term.class_weights[label] : 0.0;
  }
  return sum;
}

}  // namespace tandem
