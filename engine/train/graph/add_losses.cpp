#include "engine/train/graph/add_losses.h"

#include <algorithm>

#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/operators/scalar_functions.h"

namespace tandem {
namespace {

class LossesBuilder {
 public:
  LossesBuilder(GraphBuilder& g, const FieldTypes& fields, const StepSamples& samples,
                const WholeBatch& batch)
      : g_(g), fields_(fields), samples_(samples), batch_(batch) {}

  ValueId term(const LossTerm& term);
  ValueId own(const LossConfig& config);
  std::vector<FedDenominator> denominators;
  std::vector<Diagnostic> problems;
  std::vector<std::string> notes;

 private:
  void fail(const Where& where, std::string message, std::string expected = "",
            std::string got = "", std::string fix = "") {
    problems.push_back({std::move(message), where.file, where.line, where.column, "",
                        std::move(expected), std::move(got), std::move(fix)});
  }
  ValueId value(const LossTerm& term, std::size_t index);
  ValueId field(const LossTerm& term, const std::string& name);

  GraphBuilder& g_;
  const FieldTypes& fields_;
  const StepSamples samples_;
  const WholeBatch& batch_;
};

/// The form that a value should have had, where it is the output of such an operator; "" where it
/// fits.
std::string wrong_form(ValueForm form, const std::string& op) {
  if (form == ValueForm::logits && (op == "Softmax" || op == "LogSoftmax" || op == "Sigmoid"))
    return "logits";
  if (form == ValueForm::log_probabilities && (op == "Softmax" || op == "Sigmoid"))
    return "logarithms of probabilities";
  if (form == ValueForm::any_logits && (op == "Softmax" || op == "Sigmoid")) return "logits";
  return "";
}

/// The value that a term names; unset where a mistake was reported.
ValueId LossesBuilder::value(const LossTerm& term, std::size_t index) {
  const Graph& graph = g_.graph();
  const std::string& wanted = term.values[index];
  const NamedValue* output = graph.find_output(wanted);
  const ValueId value = output != nullptr ? output->value : graph.find_value(wanted);
  if (!value) {
    std::vector<std::string> names;
    for (const NamedValue& named : graph.outputs) names.push_back(named.name);
    for (const Value& named : graph.values) {
      if (named.kind == ValueKind::computed) names.push_back(named.name);
    }
    fail(term.where, "loss \"" + term.name + "\": the model has no value \"" + wanted + "\"",
         graph.outputs.empty() ? "" : "a value such as \"" + graph.outputs[0].name + "\"", "",
         did_you_mean(nearest_name(wanted, names)));
    return {};
  }
  if (const NodeId producer = graph.value(value).producer) {
    const Node& node = graph.node(producer);
    const std::string& op = node.op->name;
    const std::string expected = wrong_form(term.kind->values[index].form, op);
    if (!expected.empty()) {
      const bool logits = expected == "logits";
      fail(term.where,
           "loss \"" + term.name + "\": \"" + wanted + "\" is the output of " + op +
               (logits ? ", but this loss applies it itself"
                       : ", but this loss takes its logarithm"),
           expected, op + " at " + node.path,
           logits ? "name its input \"" + graph.value(node.inputs[0]).name + "\" instead"
                  : "export the model with a LogSoftmax in its place");
      return {};
    }
  }
  return value;
}

/// A field of the data as a value; unset where a mistake was reported.
ValueId LossesBuilder::field(const LossTerm& term, const std::string& name) {
  if (const NamedValue* input = g_.graph().find_input(name)) return input->value;
  if (names_teacher(name)) {
    if (const ValueId taught = g_.graph().find_value(name)) return taught;
    std::vector<std::string> names;
    for (const Value& value : g_.graph().values) {
      if (names_teacher(value.name)) names.push_back(value.name);
    }
    fail(term.where, "loss \"" + term.name + "\": the teacher has no value \"" + name + "\"", "",
         "", did_you_mean(nearest_name(name, names), "[distillation] names the teacher"));
    return {};
  }
  const auto field = fields_.find(name);
  if (field == fields_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, type] : fields_) names.push_back(known);
    fail(term.where, "loss \"" + term.name + "\": there is no data field \"" + name + "\"", "", "",
         did_you_mean(nearest_name(name, names), "add it to [data.fields]"));
    return {};
  }
  return g_.input(name, field->second);
}

ValueId LossesBuilder::term(const LossTerm& term) {
  bool complete = true;
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < term.values.size(); ++i) {
    values.push_back(value(term, i));
    complete = complete && values.back();
  }
  ValueId labels, weights;
  if (!term.labels.empty()) complete = (labels = field(term, term.labels)) && complete;
  std::vector<ValueId> others(term.kind->fields.size());
  for (std::size_t i = 0; i < term.other_fields.size(); ++i) {
    const std::string& name = term.other_fields[i];
    if (!name.empty()) complete = (others[i] = field(term, name)) && complete;
  }
  if (!term.sample_weights.empty())
    complete = (weights = field(term, term.sample_weights)) && complete;
  if (!complete) return {};
  if (term.kind->compares_samples && !batch_.is_complete) {
    fail(term.where,
         "micro_batch: the loss \"" + term.name + "\" (" + std::string(term.kind->name) +
             ") compares each sample with all others of its batch, which a micro-batch lacks",
         "micro-batches of " + std::to_string(samples_.step) + " samples, as many as the step has",
         std::to_string(samples_.micro_batch),
         "leave micro_batch out; where the batch does not fit, take a smaller batch_size, or let a "
         "policy save memory (acts = \"recompute\")");
    return {};
  }
  g_.set_scope({"loss." + term.name, Phase::forward, {}});
  LossBuilder b(g_, term, {std::move(values), labels, std::move(others)}, batch_, problems, notes);
  const std::optional<Losses> losses = term.kind->build(b);
  if (!losses) return {};
  const std::optional<ValueId> total = reduced(b, *losses, weights, samples_, denominators);
  if (!total) return {};
  const ValueId value = g_.cast(*total, DType::float32);
  return term.weight == 1 ? value : g_.mul(value, g_.scalar(term.weight, DType::float32));
}

/// The graph's own scalar loss, multiplied by the micro-batch's share of the step.
ValueId LossesBuilder::own(const LossConfig& config) {
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
    fail(config.where, "the configuration has no loss and the model does not end in one scalar",
         "one scalar output, or [loss] terms",
         std::to_string(scalars.size()) +
             " scalar outputs of: " + joined(graph.outputs, ", ", &NamedValue::name),
         "add [loss] terms = [ { name = \"loss\", kind = \"softmax_cross_entropy\", logits = \"" +
             (graph.outputs.empty() ? "logits" : graph.outputs[0].name) +
             "\", labels = \"labels\" } ]");
    return {};
  }
  g_.set_scope({"loss.total", Phase::forward, {}});
  const ValueId value = g_.reshape(g_.cast(scalars[0]->value, DType::float32), {});
  if (samples_.whole()) return value;
  const NodeId producer = g_.graph().value(scalars[0]->value).producer;
  const Operator* op = producer ? g_.graph().node(producer).op : nullptr;
  const Reducer reducer = op != nullptr ? op->reducer : Reducer::none;
  if (reducer == Reducer::sum) return value;
  if (reducer == Reducer::mean) {
    return g_.mul(value, g_.scalar(static_cast<double>(samples_.micro_batch) / samples_.step,
                                   DType::float32));
  }
  const std::string why =
      op != nullptr && op->scalar == ScalarFunction::div
          ? "it is divided by what one micro-batch counts (labels that are not ignored, or their "
            "weights), not by what the whole step counts"
          : "only the parts of a loss that ends in a sum or mean over the batch add up";
  fail(config.where,
       "micro_batch: the model's own loss \"" + scalars[0]->name +
           "\" cannot be split into passes: " + why,
       "a loss whose last operator is ReduceSum or ReduceMean",
       producer ? op->name + " at " + g_.graph().node(producer).path : "no operator",
       "leave micro_batch out, or export the model up to its logits and give the loss in [loss] "
       "terms, which count over the whole step");
  return {};
}

}  // namespace

Loss add_loss(GraphBuilder& g, const LossConfig& config, const FieldTypes& fields,
              const StepSamples& samples, const WholeBatch& batch) {
  LossesBuilder builder(g, fields, samples, batch);
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
  loss.notes = std::move(builder.notes);
  return loss;
}

}  // namespace tandem
