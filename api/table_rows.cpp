#include "api/table_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "engine/config/keys/config_value.h"
#include "engine/data/functions/field_function.h"
#include "engine/data/prepare_table.h"
#include "engine/data/table_plan.h"
#include "engine/data/vocabulary.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "importer/parameter_path.h"

namespace tandem::api {
namespace {

[[noreturn]] void fail_rows(const ShapeRule& rule, std::string message, std::string expected,
                            std::string fix = "") {
  throw Error(ErrorKind::usage,
              at(rule.where, "parameters.shape", std::move(message), std::move(expected),
                 "vocabulary(" + rule.vocabulary + ")", std::move(fix)));
}

/// The vocabulary of a field in a run directory; the name is empty where the field has none.
struct VocabularyFile {
  std::string name;
  bool by_table = false;  // ids are counted from 1 in each column
};

VocabularyFile vocabulary_file(const RunConfig& config, const std::string& field) {
  VocabularyFile file;
  if (!config.data) return file;
  std::map<std::string, std::string> files;  // by the name of the vocabulary
  std::vector<std::string> taken;
  for (const FieldConfig& known : config.data->fields) {
    for (const Transform& function : known.as) {
      const std::string name = vocabulary_name(known, function);
      if (name.empty()) continue;
      if (!files.contains(name)) taken.push_back(files[name] = vocabulary_file_name(name, taken));
      if (known.name == field) file = {files[name], function.function->vocabulary()->by_table};
    }
  }
  return file;
}

/// Number of rows of a table for the lines of a vocabulary: the first line, which has words, counts
/// for id 0, and each other line for one id, of its column where each column has a table of its
/// own.
std::int64_t vocabulary_rows(std::string_view text, bool by_table) {
  if (!by_table) return std::count(text.begin(), text.end(), '\n');
  std::map<std::string_view, std::int64_t> ids;  // by column
  std::int64_t most = 0;
  for (std::size_t at = text.find('\n') + 1; at < text.size(); at = text.find('\n', at) + 1)
    most = std::max(most, ++ids[text.substr(at, text.find('\t', at) - at)]);
  return most + 1;
}

}  // namespace

std::vector<RowsRule> rows_rules(const RunConfig& config, const VocabularyRows& vocabulary_rows) {
  std::vector<RowsRule> rules;
  for (const ShapeRule& rule : config.parameters.shape) {
    const std::int64_t rows = rule.vocabulary.empty() ? rule.rows : vocabulary_rows(rule);
    rules.push_back({rule.at, rows, rule.where});
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
  const VocabularyFile file = vocabulary_file(config, rule.vocabulary);
  if (run_dir.empty() || file.name.empty()) return std::nullopt;
  const std::string path = run_dir + "/" + file.name;
  if (!path_exists(path)) return std::nullopt;
  const std::string text = read_file(path);
  if (text.empty() || text.back() != '\n') {
    throw Error(ErrorKind::data, Diagnostic{.message = "the vocabulary's file is cut",
                                            .file = path,
                                            .fix = "take a whole copy of the run directory"});
  }
  return vocabulary_rows(text, file.by_table);
}

// The name in the file may not identify a table that has a name only by its reader ("embed:weight"
// of onnx::Gather_12), and a later rule may override an earlier one by such a name.
std::int64_t trained_vocabulary_rows(const RunConfig& config, const std::string& run_dir,
                                     const std::vector<NamedTensor>& weights,
                                     const ShapeRule& rule) {
  std::set<std::int64_t> rows;  // found in the weights whose names the rule covers
  for (const NamedTensor& weight : weights) {
    const ShapeRule* last = nullptr;  // the rule that is in effect for this weight
    for (const ShapeRule& other : config.parameters.shape) {
      if (Selector(other.at).covers_parameter(importer::parameter_path(weight.name), weight.name))
        last = &other;
    }
    if (last == &rule && !weight.tensor.shape().empty()) rows.insert(weight.tensor.shape()[0]);
  }
  if (rows.size() == 1) return *rows.begin();
  if (const auto saved = saved_vocabulary_rows(config, run_dir, rule)) return *saved;
  if (!rows.empty()) return *rows.begin();
  if (run_dir.empty()) return prepared_vocabulary_rows(config, rule, {});
  fail_rows(rule, "neither a weight of this name nor the vocabulary is in the run", "",
            "take a whole copy of the run directory");
}

}  // namespace tandem::api
