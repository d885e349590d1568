#include "api/init/next_token.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/init/roles.h"

namespace tandem::api {
namespace {

/// An output with scores of every id at each place of these ids.
const PortSummary* scores_of(const std::vector<PortSummary>& outputs, const ArrayFacts& ids) {
  const auto scores = std::find_if(outputs.begin(), outputs.end(), [&](const PortSummary& output) {
    return output.bound.size() == 3 && output.bound[1] == ids.sample.shape[0] &&
           static_cast<double>(output.bound[2]) > ids.numbers.most && output.bound[2] > 1;
  });
  return scores == outputs.end() ? nullptr : &*scores;
}

bool are_ids(const InputFacts& input, const FieldGuess& field) {
  return field.from != nullptr && role_of(input) == Role::none && is_integer(input.sample.dtype) &&
         field.from->sample.shape.size() == 1;
}

/// The functions that make labels of the field of ids.
std::vector<std::string> label_functions(const FieldGuess& ids) {
  std::vector<std::string> functions = ids.as;
  const std::string tokens = "tokens(length=";
  if (!functions.empty() && functions[0].starts_with(tokens)) {
    functions[0].insert(functions[0].size() - 1, ", give='targets'");
    return functions;
  }
  const ArrayFacts& array = *ids.from;
  if (array.padding)
    functions.push_back(fmt::format("next(pad={})", *array.padding));
  else
    functions.emplace_back(array.is_ragged ? "next(pad=0)" : "next");
  return functions;
}

}  // namespace

std::optional<LossChoice> next_token_loss(const ModelFacts& model,
                                          const std::vector<InputFacts>& inputs,
                                          const FieldGuesses& fields, const DataFacts& data,
                                          std::string& why_not) {
  const std::vector<PortSummary> outputs = model.outputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const FieldGuess& ids = fields.fields[i];
    if (data.kind == "tokens" || !are_ids(inputs[i], ids)) continue;
    const PortSummary* const scores = scores_of(outputs, *ids.from);
    if (scores == nullptr) continue;
    if (!is_causal(model)) {
      why_not = fmt::format(
          "\"{}\" scores the ids of \"{}\" at each place, but nothing shows that a place does not "
          "see those behind it: the next id is no label for such a model (masked language models "
          "have the hidden ids as labels, -100 elsewhere)",
          scores->name, inputs[i].name);
      continue;
    }
    LossChoice choice;
    auto labels = std::make_shared<ArrayFacts>(*ids.from);
    choice.term.kind = "softmax_cross_entropy";
    choice.term.value_key = "logits";
    choice.term.value = scores->name;
    choice.term.labels_key = "labels";
    choice.term.options = ", ignore_index = -100";
    choice.term.metrics = {"perplexity", "accuracy"};
    choice.why = fmt::format(
        "\"{}\" scores every id at each place and sees earlier places alone: a language model, "
        "which is trained on the id that follows",
        scores->name);
    choice.labels.name = "labels";
    choice.labels.as = label_functions(ids);
    choice.labels.why =
        fmt::format("\"{}\" one place ahead, -100 where nothing follows", inputs[i].name);
    choice.labels.from = labels.get();
    choice.own_labels = std::move(labels);
    return choice;
  }
  return std::nullopt;
}

bool are_unshifted(const ModelFacts& model, const FieldGuesses& fields, const ArrayFacts& labels) {
  if (labels.same_as.empty() || labels.sample.shape.size() != 1 || !is_causal(model)) return false;
  const std::vector<PortSummary> outputs = model.outputs();
  return std::any_of(fields.fields.begin(), fields.fields.end(), [&](const FieldGuess& field) {
    return field.from != nullptr && field.from->name == labels.same_as && field.as.size() < 2 &&
           scores_of(outputs, *field.from) != nullptr;
  });
}

}  // namespace tandem::api
