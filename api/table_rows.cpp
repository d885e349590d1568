#include "api/table_rows.h"

#include <algorithm>
#include <cctype>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/training/config/config_value.h"
#include "engine/training/data/prepare_table.h"
#include "importer/parameter_path.h"

namespace tandem::api {
namespace {

[[noreturn]] void fail_rows(const ShapeRule& rule, std::string message, std::string expected,
                            std::string fix = "") {
  Diagnostic d = at(rule.where, "parameters.shape", std::move(message));
  d.expected = std::move(expected);
  d.got = "vocabulary(" + rule.vocabulary + ")";
  d.fix = std::move(fix);
  throw Error(ErrorKind::usage, std::move(d));
}

bool is_plain(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

/// The file of the field's vocabulary; "" where it has none, or where names of vocabularies are
/// changed for file names: then two could share one.
std::string vocabulary_file(const RunConfig& config, const std::string& field) {
  if (!config.data) return "";
  std::string file;
  for (const FieldConfig& known : config.data->fields) {
    for (const Transform& function : known.as) {
      const std::string name = vocabulary_name(known, function);
      if (name.empty()) continue;
      if (!is_plain(name)) return "";
      if (known.name == field) file = "vocabulary." + name + ".tsv";
    }
  }
  return file;
}

}  // namespace

std::vector<RowsRule> rows_rules(const RunConfig& config, const VocabularyRows& vocabulary_rows) {
  std::vector<RowsRule> rules;
  for (const ShapeRule& rule : config.parameters.shape) {
    const std::int64_t rows = rule.vocabulary.empty() ? rule.rows : vocabulary_rows(rule);
    rules.push_back({rule.at, rows, rule.where.file, rule.where.line, rule.where.column});
  }
  return rules;
}

std::int64_t prepared_vocabulary_rows(const RunConfig& config, const ShapeRule& rule,
                                      OpenOptions options) {
  if (!config.data || !config.data->table()) {
    fail_rows(rule, "only fields of text tables have vocabularies", "data.kind tsv or csv");
  }
  options.seed = config.seed;
  options.threads = config.threads;
  const PreparedTable table = prepare_table(*config.data, options);
  std::string names;
  for (const TableField& field : table.plan.fields) {
    if (!field.vocabulary) continue;
    if (field.name == rule.vocabulary) return table.vocabularies.at(*field.vocabulary).rows;
    names += (names.empty() ? "" : ", ") + field.name;
  }
  fail_rows(rule, "this is no field with a vocabulary",
            names.empty() ? "a field whose `as` ends in vocabulary(…)" : "one of " + names);
}

std::optional<std::int64_t> saved_vocabulary_rows(const RunConfig& config,
                                                  const std::string& run_dir,
                                                  const ShapeRule& rule) {
  const std::string file = vocabulary_file(config, rule.vocabulary);
  if (run_dir.empty() || file.empty()) return std::nullopt;
  const std::string path = run_dir + "/" + file;
  if (!path_exists(path)) return std::nullopt;
  const std::string text = read_file(path);
  if (text.empty() || text.back() != '\n') {
    throw Error(ErrorKind::data,
                Diagnostic{.message = "the vocabulary's file is cut",
                           .file = path,
                           .fix = "resume with a whole copy of the run directory"});
  }
  // The line with the words stands for id 0, each other one for an id.
  return std::count(text.begin(), text.end(), '\n');
}

std::int64_t trained_vocabulary_rows(const RunConfig& config,
                                     const std::vector<NamedTensor>& weights,
                                     const ShapeRule& rule) {
  for (const NamedTensor& weight : weights) {
    const ShapeRule* last = nullptr;  // the one that counts for this weight
    for (const ShapeRule& other : config.parameters.shape) {
      if (Selector(other.at).covers_parameter(importer::parameter_path(weight.name), weight.name))
        last = &other;
    }
    if (last == &rule && !weight.tensor.shape().empty()) return weight.tensor.shape()[0];
  }
  fail_rows(rule, "the weights hold no parameter of this rule", "");
}

}  // namespace tandem::api
