// The keys of [distillation], and the terms of the loss that they make.
#include "engine/config/distillation_config.h"

#include <algorithm>

#include "engine/config/keys/key_visitor.h"
#include "engine/losses/distillation.h"
#include "engine/losses/loss.h"

namespace tandem {
namespace {

/// A table of names by name.
KeyForm names_by_name(std::map<std::string, std::string>& member) {
  return {table_value,
          [&](const Found& found) {
            for (const auto& entry : found.value.members) {
              if (entry.value.kind == ConfigValue::Kind::string)
                member[entry.key] = entry.value.text;
            }
          },
          [&] {
            std::vector<std::pair<std::string, std::string>> values;
            for (const auto& [name, text] : member)
              values.emplace_back(toml_key(name), toml_string(text));
            return toml_table(values);
          }};
}

constexpr std::string_view term_kind = "distillation";

bool reads_teacher(const LossTerm& term) {
  return names_teacher(term.labels) ||
         std::any_of(term.values.begin(), term.values.end(), names_teacher);
}

}  // namespace

void visit(KeyVisitor& v, DistillationConfig& c) {
  const bool is_there = c.has_teacher();
  v.place(c.where);
  v.key("teacher", path(c.teacher), required,
        "its ONNX file. It runs as it predicts, takes the inputs of the model, and neither trains "
        "nor is saved; its values are called teacher.NAME, for any term of the loss and for the "
        "policy");
  v.key("weights", path(c.weights),
        "a file of weights for it, by their names: as parameters.load[].from");
  v.key("temperature", c.temperature, at_least(1e-3), written_if(is_there),
        "by which logits are divided, as in the loss distillation (docs/losses.md)");
  v.key("weight", c.weight, at_least(0), written_if(is_there), "of each term that `at` makes");
  v.key("at", names_by_name(c.at),
        parts(".*", string_value, "the value of the teacher that it learns to give"),
        written_if(!c.at.empty()),
        "logits of the model with those of the teacher: each is a term of the loss, of the kind "
        "distillation, in addition to those of loss.terms");
  v.key("inputs", names_by_name(c.inputs),
        parts(".*", string_value, "the input of the model that this input of the teacher gets"),
        written_if(!c.inputs.empty()), "inputs of the teacher that have other names");
}

void add_distillation_terms(const TableReader& table, DistillationConfig& c, LossConfig& loss) {
  if (!table.exists()) return;
  if (!c.at.empty() && loss.terms.empty()) {
    table.report(table.where(), "at", "these terms are added to other terms of the loss",
                 "loss.terms with the loss of the labels", "none",
                 "name them yourself in loss.terms to learn only from the teacher: { kind = "
                 "\"distillation\", logits = \"...\", teacher_logits = \"teacher....\" }");
    return;
  }
  for (const auto& [student, teacher] : c.at) {
    LossTerm term;
    term.name = std::string(term_kind) + (c.at.size() > 1 ? "." + student : "");
    const bool is_there = std::any_of(loss.terms.begin(), loss.terms.end(),
                                      [&](const LossTerm& t) { return t.name == term.name; });
    if (is_there) continue;  // a resolved file has it
    term.kind = find_loss(term_kind);
    const std::string value =
        names_teacher(teacher) ? teacher : std::string(teacher_prefix) + teacher;
    term.values = {student, value};
    term.weight = c.weight;
    DistillationOptions options;
    options.temperature = c.temperature;
    term.options = options;
    term.where = c.where;
    loss.terms.push_back(std::move(term));
  }
  if (std::none_of(loss.terms.begin(), loss.terms.end(), reads_teacher))
    table.report(table.where(), "at", "nothing reads the teacher",
                 "a value of the model with one of the teacher", "",
                 "write at = { logits = \"logits\" }, or a term that names teacher.VALUE");
}

void refuse_absent_teacher(const LossConfig& loss, const TableReader& root) {
  for (const LossTerm& term : loss.terms) {
    const auto named = std::find_if(term.values.begin(), term.values.end(), names_teacher);
    if (named == term.values.end() || term.kind == nullptr || term.kind->name != term_kind)
      continue;
    root.report(term.where, "loss." + term.name, "there is no teacher",
                "[distillation] with teacher = \"FILE.onnx\"", *named, "add it");
  }
}

void forget_teacher(DistillationConfig& c, LossConfig& loss) {
  if (!c.has_teacher()) return;
  c = {};
  std::erase_if(loss.terms, reads_teacher);
}

}  // namespace tandem
