#include "api/init/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "api/init/next_token.h"
#include "api/init/text_functions.h"
#include "engine/config/keys/config_value.h"

namespace tandem::api {
namespace forms {
#define FORM(name) LossForm name();
#include "api/init/losses/all_forms.inl"
#undef FORM
}  // namespace forms

namespace {

/// A loss with labels that fit it.
struct Candidate {
  LossGuess loss;
  const ArrayFacts* labels;
  bool is_named;  // its name is one that labels have

  auto rank() const {
    return std::tuple(!loss.doubt.empty(), !is_named, labels->has_gaps(), -loss.certainty);
  }
};

std::string loss_text(const Candidate& c) {
  return fmt::format("{} of \"{}\" with \"{}\"", c.loss.kind, c.loss.value, c.labels->name);
}

LossCase case_of(const ModelFacts& model, const PortSummary& output, const ArrayFacts& labels) {
  const Graph& graph = model.imported.graph;
  LossCase result{output.name, Shape(output.bound.begin() + 1, output.bound.end()), "", "", labels,
                  model.words};
  const Value& value = graph.value(graph.find_output(output.name)->value);
  if (value.kind != ValueKind::computed || !value.producer) return result;
  const Node& node = graph.node(value.producer);
  const std::string op(node.op->name);
  if (op == "Softmax" || op == "LogSoftmax" || op == "Sigmoid") {
    result.op = op;
    result.before = graph.value(node.inputs[0]).name;
  }
  return result;
}

/// A scalar float output is a loss, preferably if its name says so.
bool own_loss(const ModelFacts& model, LossChoice& choice) {
  std::vector<std::string> scalars;
  const auto outputs = model.outputs();
  for (const PortSummary& output : outputs) {
    const bool is_scalar = output.bound.empty();
    if (is_scalar && (output.name.find("loss") != std::string::npos || outputs.size() == 1))
      scalars.push_back(output.name);
  }
  if (scalars.empty()) return false;
  choice.of_model = true;
  choice.why = fmt::format("the model computes its loss itself: the output \"{}\"", scalars[0]);
  if (scalars.size() > 1) {
    choice.todo = fmt::format("several outputs may be the loss: {}", fmt::join(scalars, ", "));
  } else if (model.imported.graph.outputs.size() > 1) {
    choice.output = scalars[0];
  }
  return true;
}

void suggest_without_data(const ModelFacts& model, LossChoice& choice) {
  for (const PortSummary& output : model.outputs()) {
    if (output.bound.empty()) continue;
    const Shape sample(output.bound.begin() + 1, output.bound.end());
    const bool is_one = squeezed(sample).empty();
    choice.term.kind = is_one ? "binary_cross_entropy" : "softmax_cross_entropy";
    choice.term.value_key = "logits";
    choice.term.value = output.name;
    choice.term.labels_key = "labels";
    choice.todo = fmt::format(
        "without data it is not known what \"{}\", {} numbers a sample, is compared with; this "
        "loss is right {}, with `--data` the labels decide",
        output.name, to_string(sample),
        is_one ? "if labels are 0 or 1 (mse with predictions and targets if they are numbers)"
               : "if labels are class numbers");
    return;
  }
  choice.todo = "the model has no float output with an entry for each sample";
}

/// The column without its few rows that have no label.
std::optional<ArrayFacts> of_labelled_rows(const ArrayFacts& column) {
  const bool is_column = column.columns.size() == 1 && column.sample.shape.empty();
  if (!is_column || !column.has_few_gaps()) return std::nullopt;
  ArrayFacts labelled = column;
  labelled.missing = 0;
  const auto empty = std::find(labelled.words.begin(), labelled.words.end(), "");
  if (empty == labelled.words.end()) return labelled;
  labelled.word_counts.erase(labelled.word_counts.begin() + (empty - labelled.words.begin()));
  labelled.words.erase(empty);
  --labelled.texts;
  return labelled;
}

std::vector<Candidate> candidates_of(const ModelFacts& model,
                                     const std::vector<const ArrayFacts*>& arrays,
                                     std::vector<std::string>& near_misses) {
  std::vector<Candidate> candidates;
  for (const PortSummary& output : model.outputs()) {
    if (output.bound.empty()) continue;
    for (const ArrayFacts* array : arrays) {
      const std::optional<ArrayFacts> labelled = of_labelled_rows(*array);
      const LossCase of = case_of(model, output, labelled ? *labelled : *array);
      for (const LossForm& form : all_loss_forms()) {
        if (auto loss = form.guess(of))
          candidates.push_back({*std::move(loss), array, array->is_label});
        else if (form.near_miss != nullptr)
          if (std::string miss = form.near_miss(of); !miss.empty())
            near_misses.push_back(std::move(miss));
      }
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.rank() < b.rank(); });
  return candidates;
}

/// Why labels that are words may have too many of them.
std::string spellings_of_labels(const std::vector<const ArrayFacts*>& arrays) {
  std::string text;
  for (const ArrayFacts* array : arrays) {
    if (!array->is_label || array->alike_but_for_case.empty()) continue;
    const std::string classes = lower_classes(*array);
    text += fmt::format("; of \"{}\", {}", array->name, array->alike_but_for_case);
    if (!classes.empty())
      text += ": as = [ \"trim\", \"lower\", " + toml_string(classes) + " ] makes them one";
  }
  return text;
}

}  // namespace

std::span<const LossForm> all_loss_forms() {
#define FORM(name) forms::name(),
  static const LossForm all[] = {
#include "api/init/losses/all_forms.inl"
  };
#undef FORM
  return all;
}

std::vector<std::string> label_words(const LossCase& of, std::int64_t count) {
  std::vector<std::string> found = words_of(of.labels);
  if (found.empty() || of.labels.has_gaps()) return {};
  const std::set<std::string> own(of.words.begin(), of.words.end());
  const auto wanted = static_cast<std::size_t>(count);
  const bool are_own = of.words.size() == wanted && own.size() == wanted &&
                       std::includes(own.begin(), own.end(), found.begin(), found.end());
  if (are_own) return of.words;
  if (found.size() > wanted) found.clear();
  return found;
}

std::string unlisted_labels(const LossCase& of) {
  const std::string why = unlisted_word(of.labels);
  if (why.empty()) return "";
  return fmt::format("\"{}\" holds {} different texts, which classes(…) cannot list: {}",
                     of.labels.name, of.labels.texts, why);
}

Shape squeezed(const Shape& shape) {
  Shape result;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(result),
               [](std::int64_t extent) { return extent != 1; });
  return result;
}

std::vector<std::string> label_functions(const ArrayFacts& labels, bool whole) {
  std::vector<std::string> functions = labels.made_by;
  if (!functions.empty() && functions.back().starts_with("tokens")) return functions;
  if (labels.has_commas) functions.emplace_back("decimal(',')");
  if (whole && (!labels.columns.empty() || is_float(labels.sample.dtype))) {
    const std::vector<std::string> casts = integer_casts(labels, DType::int64);
    functions.insert(functions.end(), casts.begin(), casts.end());
  }
  if (!whole && (!labels.columns.empty() || labels.sample.dtype != DType::float32))
    functions.emplace_back("float32");
  return functions;
}

std::string term_toml(const LossGuess& term, const std::string& labels) {
  return fmt::format("{{ kind = {}, {} = {}, {} = {}{} }}", toml_string(term.kind), term.value_key,
                     toml_string(term.value), term.labels_key, toml_string(labels), term.options);
}

LossChoice guess_loss(const ModelFacts& model, const std::vector<InputFacts>& inputs,
                      const FieldGuesses& fields, const DataFacts* data) {
  LossChoice choice;
  if (model.has_training_info) {
    choice.of_model = true;
    choice.why = "the model's training_info says how it is trained: loss and optimizer are its own";
    return choice;
  }
  if (own_loss(model, choice)) return choice;
  if (data == nullptr) {
    suggest_without_data(model, choice);
    return choice;
  }
  std::vector<const ArrayFacts*> arrays = usable_arrays(*data);
  std::erase_if(arrays, [&](const ArrayFacts* array) {
    if (array->is_ragged) return true;  // its padding would count as a class
    return std::any_of(fields.used.begin(), fields.used.end(), [&](const ArrayFacts* used) {
      return used == array ||
             std::any_of(used->columns.begin(), used->columns.end(), [&](const auto& column) {
               return std::count(array->columns.begin(), array->columns.end(), column) > 0;
             });
    });
  });
  std::vector<std::string> near_misses;
  const std::vector<Candidate> all = candidates_of(model, arrays, near_misses);
  if (all.empty()) {
    std::string why_not;
    if (auto next = next_token_loss(model, inputs, fields, *data, why_not)) return *std::move(next);
    choice.todo = "no remaining array fits an output as labels";
    for (const std::string& miss : near_misses) choice.todo += "; " + miss;
    choice.todo += spellings_of_labels(arrays);
    choice.todo += texts_among_numbers(arrays);
    if (!why_not.empty()) choice.todo += "; " + why_not;
    for (const std::string& note : data->notes) choice.todo += "; " + note;
    return choice;
  }
  choice.term = all[0].loss;
  choice.unlabelled = all[0].labels->missing;
  if (data->has_targets()) choice.term.metrics.insert(choice.term.metrics.begin(), "perplexity");
  choice.labels.from = all[0].labels;
  choice.labels.name = all[0].labels->stacked ? "labels" : all[0].labels->name;
  choice.labels.as = all[0].loss.as;
  choice.labels.why = "what the loss compares with";
  if (all[0].labels->is_text && all[0].labels->made_by.empty())
    choice.labels.why += add_spelling(*all[0].labels, choice.labels.as);
  choice.why = all[0].loss.why;
  if (are_unshifted(model, fields, *all[0].labels)) {
    choice.labels.as.emplace_back("next");
    if (choice.term.options.find("ignore_index") == std::string::npos)
      choice.term.options += ", ignore_index = -100";
    choice.labels.why = fmt::format(
        "they repeat \"{}\", as transformers' own loss takes them: the loss here compares each "
        "place with the id that follows",
        all[0].labels->same_as);
  }
  if (!all[0].loss.doubt.empty()) {
    choice.todo = all[0].loss.doubt;
  } else if (all.size() > 1 && all[1].rank() == all[0].rank()) {
    choice.todo = "several losses fit: ";
    for (std::size_t i = 0; i < all.size() && all[i].rank() == all[0].rank(); ++i)
      choice.todo += (i > 0 ? ", " : "") + loss_text(all[i]);
  }
  return choice;
}

}  // namespace tandem::api
