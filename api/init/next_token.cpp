#include "api/init/next_token.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/init/roles.h"

namespace tandem::api {
namespace {

/// An output with a score for every id at each position of these ids.
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

/// The functions that make labels from the field of ids.
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

/// The loss for scores of ids at each position.
LossChoice loss_of_ids(const PortSummary& scores, std::int64_t ignored) {
  LossChoice choice;
  choice.term.kind = "softmax_cross_entropy";
  choice.term.value_key = "logits";
  choice.term.value = scores.name;
  choice.term.labels_key = "labels";
  choice.term.options = fmt::format(", ignore_index = {}", ignored);
  choice.term.metrics = {"perplexity", "accuracy"};
  choice.labels.name = "labels";
  return choice;
}

/// Offers labels, with a line for each of these texts.
void offer_labels(const std::vector<ArrayFacts>& texts, bool are_next, FieldGuess& labels) {
  for (const ArrayFacts& text : texts) {
    FieldGuess one;
    one.from = &text;
    one.as = text.made_by;
    if (are_next) one.as = label_functions(one);
    labels.offer += (labels.offer.empty() ? "" : "\n") + field_toml(one);
    labels.offered.push_back(text.columns.at(0));
  }
}

/// The loss of a model with a decoder, whose labels are a text column. Empty where the data has no
/// column to choose.
std::optional<LossChoice> loss_of_decoder(const std::vector<PortSummary>& outputs,
                                          const InputFacts& decoder, const DataFacts& data,
                                          std::string& why_not) {
  const auto choices = data.choices.find(decoder.name);
  const PortSummary* const scores =
      choices == data.choices.end() ? nullptr : scores_of(outputs, choices->second.at(0));
  if (scores == nullptr) {
    why_not = fmt::format(
        "the model writes what \"{}\" reads: its labels are the ids of another text than the "
        "source, in a column that is called \"target\", \"summary\" or \"labels\"; where they are "
        "tokens(length=N, pad=P), loss.terms has ignore_index = P, since P is their padding",
        decoder.name);
    return std::nullopt;
  }
  LossChoice choice = loss_of_ids(*scores, choices->second[0].padding.value_or(0));
  choice.why = fmt::format(
      "\"{}\" scores every id at each place of what the decoder writes; ignore_index is the "
      "padding of labels (with another pad in the field, set it to that)",
      scores->name);
  choice.labels.todo = fmt::format("what \"{}\" is made of, without shift_right", decoder.name);
  offer_labels(choices->second, false, choice.labels);
  return choice;
}

}  // namespace

std::optional<LossChoice> next_token_loss(const ModelFacts& model,
                                          const std::vector<InputFacts>& inputs,
                                          const FieldGuesses& fields, const DataFacts& data,
                                          std::string& why_not) {
  const std::vector<PortSummary> outputs = model.outputs();
  for (const InputFacts& input : inputs) {
    if (role_of(input) == Role::decoder_ids) return loss_of_decoder(outputs, input, data, why_not);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto choices = data.choices.find(inputs[i].name);
    const bool is_open = fields.fields[i].from == nullptr && choices != data.choices.end();
    FieldGuess ids = fields.fields[i];
    if (is_open) ids.from = &choices->second.at(0);
    if (data.has_targets() || !are_ids(inputs[i], ids)) continue;
    const PortSummary* const scores = scores_of(outputs, *ids.from);
    if (scores == nullptr) continue;
    if (!is_causal(model)) {
      why_not = fmt::format(
          "\"{}\" scores the ids of \"{}\" at each place, but nothing shows that a place does not "
          "see later ones: the next id is no label for such a model (masked language models have "
          "the hidden ids as labels, -100 elsewhere)",
          scores->name, inputs[i].name);
      continue;
    }
    LossChoice choice = loss_of_ids(*scores, -100);
    choice.why = fmt::format(
        "\"{}\" scores every id at each place and sees only earlier places: a language model, "
        "which is trained on the id that follows",
        scores->name);
    if (is_open) {
      choice.labels.todo =
          fmt::format("goes with \"{}\": the same column, one place ahead", inputs[i].name);
      offer_labels(choices->second, true, choice.labels);
      return choice;
    }
    auto labels = std::make_shared<ArrayFacts>(*ids.from);
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
