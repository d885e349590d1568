// `tandem data`: preparing text tables, and a look at all of the data.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/data_options.h"
#include "engine/training/config/config_names.h"
#include "engine/training/data/encode_files.h"
#include "engine/training/data/prepare_table.h"
#include "engine/training/data/table_file.h"
#include "engine/training/divergence/divergence_cause.h"
#include "placement/report/json.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

std::string number_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "-";
}

struct CheckedColumn {
  std::string name;
  std::int64_t values = 0, missing = 0, cut = 0, distinct = -1, bad_numbers = 0;
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
};
struct CheckedField {
  std::string name;
  TensorType sample;
  std::vector<CheckedColumn> columns;
};
struct CheckedSplit {
  std::string name;
  std::int64_t samples = 0, bad = 0;
  std::vector<CheckedField> fields;
};
struct Checked {
  std::vector<CheckedSplit> splits;
  std::vector<Diagnostic> problems;
  bool broken = false;  // a file as a whole
  Json vocabularies = Json::array();
};

// ---------------------------------------------------------------- tables

void check_vocabularies(const TablePlan& plan, const std::vector<ValueCounts>& all, Checked& to) {
  for (std::size_t v = 0; v < all.size(); ++v) {
    std::int64_t kept = 0, rare = 0, distinct = 0;
    for (std::int64_t i = 0; i < all[v].size(); ++i) {
      if (all[v].times(i) == 0) continue;  // in bad rows only
      ++distinct;
      const bool frequent = all[v].times(i) >= plan.vocabularies[v].least;
      kept += frequent;
      rare += frequent ? 0 : all[v].times(i);
    }
    to.vocabularies.push_back({{"name", plan.vocabularies[v].name},
                               {"rows", kept + 1},
                               {"distinct", distinct},
                               {"rare_values", rare}});
  }
}

void add_failure(const std::exception_ptr& failure, Checked& to) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    to.broken = true;
    to.problems.insert(to.problems.end(), error.diagnostics().begin(), error.diagnostics().end());
  }
}

/// Nothing to train or to evaluate on ends training as well.
void refuse_empty(const CheckedSplit& split, const std::vector<std::string>& paths, Checked& to) {
  if (split.samples > 0 || to.broken) return;
  to.broken = true;
  Diagnostic d{.message = "there are no samples"};
  if (!paths.empty()) d.file = paths[0];
  to.problems.push_back(std::move(d));
}

CheckedSplit check_files(const DataConfig& config, const TablePlan& plan, const SplitConfig& split,
                         const OpenOptions& options, Checked& to, std::vector<ValueCounts>& all) {
  constexpr std::size_t shown_of_a_file = 20;
  CheckedSplit result;
  std::vector<std::string> paths;
  for (const ArrayFiles& files : split.files) {
    paths.insert(paths.end(), files.paths.begin(), files.paths.end());
  }
  EncodeFilesOptions encode;
  encode.problems = shown_of_a_file;
  encode.reads_all = true;
  encode.threads = options.threads;
  EncodedFiles encoded = encode_files(config, plan, paths, encode);
  for (const TableField& field : plan.fields) {
    CheckedField& checked = result.fields.emplace_back();
    checked.name = field.name;
    checked.sample = {field.logical, field.stored.shape};
    for (const std::size_t column : field.columns) {
      checked.columns.emplace_back().name = plan.columns[column];
    }
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const EncodedFile& file = encoded.files[i];
    result.samples += file.rows;
    result.bad += file.bad;
    to.problems.insert(to.problems.end(), file.problems.begin(), file.problems.end());
    if (encoded.failures[i]) add_failure(encoded.failures[i], to);
    for (std::size_t f = 0; f < file.fields.size(); ++f) {
      for (std::size_t c = 0; c < file.fields[f].size(); ++c) {
        const ColumnStatistics& s = file.fields[f][c];
        CheckedColumn& column = result.fields[f].columns[c];
        column.values += s.values;
        column.missing += s.empty;
        column.cut += s.cut;
        column.least = std::min(column.least, s.least);
        column.greatest = std::max(column.greatest, s.greatest);
      }
    }
  }
  refuse_empty(result, paths, to);
  all = std::move(encoded.values);
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    const TableField& field = plan.fields[f];
    if (!field.vocabulary) continue;
    const ValueCounts& values = all[*field.vocabulary];
    std::vector<std::int64_t> distinct(plan.columns.size());
    for (std::int64_t n = 0; n < values.size(); ++n) {
      if (values.times(n) > 0) ++distinct[values.column(n)];
    }
    for (std::size_t c = 0; c < field.columns.size(); ++c) {
      if (plan.vocabularies[*field.vocabulary].by_value) continue;
      result.fields[f].columns[c].distinct = distinct[field.columns[c]];
    }
  }
  return result;
}

Checked check_table(const DataConfig& config, const OpenOptions& options) {
  Checked to;
  std::vector<Diagnostic> problems;
  std::string first;
  for (const SplitConfig* split : {&config.train, &config.eval}) {
    for (const ArrayFiles& files : split->files) {
      for (const std::string& path : files.paths) {
        if (first.empty()) first = path;
      }
    }
  }
  const TablePlan plan = plan_table(config, table_columns(config, first), problems);
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  std::vector<ValueCounts> values, held;
  to.splits.push_back(check_files(config, plan, config.train, options, to, values));
  to.splits.back().name = "train";
  check_vocabularies(plan, values, to);
  if (!config.eval.files.empty()) {
    to.splits.push_back(check_files(config, plan, config.eval, options, to, held));
    to.splits.back().name = "eval";
  }
  return to;
}

// ---------------------------------------------------------------- arrays

CheckedSplit check_source(const std::string& name, const DataSource& source,
                          std::vector<Diagnostic>& problems) {
  constexpr std::int64_t most_samples = 256, most_values = std::int64_t{1} << 18;
  constexpr std::size_t shown_of_a_field = 20;
  CheckedSplit split;
  split.name = name;
  split.samples = source.samples();
  for (std::size_t f = 0; f < source.fields().size(); ++f) {
    const DataField& field = source.fields()[f];
    CheckedColumn column;
    column.name = field.name;
    std::vector<std::int64_t> samples;
    const std::int64_t each = std::max<std::int64_t>(field.sample.elements(), 1);
    const std::int64_t piece = std::clamp<std::int64_t>(most_values / each, 1, most_samples);
    for (std::int64_t first = 0; first < source.samples(); first += piece) {
      samples.clear();
      for (std::int64_t i = first; i < std::min(first + piece, source.samples()); ++i) {
        samples.push_back(i);
      }
      TensorType type = field.sample;
      type.shape.insert(type.shape.begin(), static_cast<std::int64_t>(samples.size()));
      HostTensor values(type);
      source.fill(static_cast<int>(f), samples, nullptr, values.data());
      for (std::int64_t i = 0; i < type.elements(); ++i) {
        const double value = values.number(i);
        ++column.values;
        if (!std::isfinite(value)) {
          ++column.bad_numbers;
          continue;
        }
        column.least = std::min(column.least, value);
        column.greatest = std::max(column.greatest, value);
      }
    }
    split.fields.push_back({field.name, field.sample, {column}});
    const int index = static_cast<int>(f);
    const std::vector<Diagnostic> found =
        nan_diagnostics(source, index, source.nan_samples(index), shown_of_a_field);
    problems.insert(problems.end(), found.begin(), found.end());
  }
  return split;
}

Checked check_arrays(const DataConfig& config, const OpenOptions& options) {
  Checked to;
  const DataSets sets = open_data(config, options);
  to.splits.push_back(check_source("train", *sets.train, to.problems));
  if (sets.eval) to.splits.push_back(check_source("eval", *sets.eval, to.problems));
  return to;
}

// ---------------------------------------------------------------- what is said

std::string text_of(const Checked& checked) {
  std::string text;
  for (const CheckedSplit& split : checked.splits) {
    text += fmt::format("{}: {} samples", split.name, split.samples);
    if (split.bad > 0) text += fmt::format(", {} bad rows", split.bad);
    text += fmt::format("\n  {:<20} {:<16} {:>12} {:>10} {:>12} {:>12} {:>10}\n", "field", "column",
                        "values", "missing", "least", "greatest", "distinct");
    for (const CheckedField& field : split.fields) {
      for (const CheckedColumn& c : field.columns) {
        text += fmt::format("  {:<20} {:<16} {:>12} {:>10} {:>12} {:>12} {:>10}\n", field.name,
                            c.name == field.name ? "" : c.name, c.values, c.missing,
                            number_text(c.least), number_text(c.greatest),
                            c.distinct < 0 ? "-" : std::to_string(c.distinct));
        if (c.cut > 0) text += fmt::format("    {} values beyond `max` of split\n", c.cut);
        if (c.bad_numbers > 0) text += fmt::format("    {} are not finite\n", c.bad_numbers);
      }
      text += fmt::format("    {} a sample\n", to_string(field.sample));
    }
  }
  for (const Json& v : checked.vocabularies) {
    text += fmt::format("vocabulary {}: {} rows, of {} different values; {} values are rarer\n",
                        v["name"].get<std::string>(), v["rows"].get<std::int64_t>(),
                        v["distinct"].get<std::int64_t>(), v["rare_values"].get<std::int64_t>());
  }
  if (!checked.problems.empty()) text += "problems:\n";
  for (const Diagnostic& d : checked.problems) text += "  " + to_string(d) + "\n";
  if (!text.empty()) text.pop_back();
  return text;
}

Json json_of(const Checked& checked) {
  Json json;
  for (const CheckedSplit& split : checked.splits) {
    Json fields = Json::array();
    for (const CheckedField& field : split.fields) {
      Json columns = Json::array();
      for (const CheckedColumn& c : field.columns) {
        Json column{{"name", c.name},
                    {"values", c.values},
                    {"missing", c.missing},
                    {"cut", c.cut},
                    {"not_finite", c.bad_numbers}};
        if (c.least <= c.greatest) {
          column["least"] = c.least;
          column["greatest"] = c.greatest;
        }
        if (c.distinct >= 0) column["distinct"] = c.distinct;
        columns.push_back(std::move(column));
      }
      fields.push_back({{"name", field.name},
                        {"dtype", name_of(field.sample.dtype)},
                        {"shape", field.sample.shape},
                        {"columns", std::move(columns)}});
    }
    json[split.name] = {
        {"samples", split.samples}, {"bad", split.bad}, {"fields", std::move(fields)}};
  }
  json["vocabularies"] = checked.vocabularies;
  json["problems"] = Json::array();
  for (const Diagnostic& d : checked.problems) {
    json["problems"].push_back(diagnostic_json(d));
  }
  return json;
}

std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Report data_prepare(const std::string& config_path, const DataOptions& options) {
  const RunConfig config = config_with_data(config_path, options);
  if (!config.data->table()) {
    const std::string kind(config.data->kind_name());
    return {"nothing to prepare: " + kind + " files are read as they are",
            dumped(Json{{"prepared", false}, {"up_to_date", true}})};
  }
  const PreparedTable table = prepare_table(*config.data, data_opened_with(config, options));
  Json json{{"prepared", table.built}, {"up_to_date", !table.built}, {"folder", table.folder}};
  std::string text = table.built ? "prepared " : "up to date: ";
  text += fmt::format("{} rows to train on", table.train.rows());
  json["train"] = {{"samples", table.train.rows()}, {"bad", table.train.bad()}};
  if (!table.eval.files.empty()) {
    text += fmt::format(", {} held out", table.eval.rows());
    json["eval"] = {{"samples", table.eval.rows()}, {"bad", table.eval.bad()}};
  }
  text += ", in " + table.folder;
  json["vocabularies"] = Json::array();
  for (const SavedVocabulary& v : table.vocabularies) {
    text += fmt::format("\nvocabulary {}: {} rows", v.name, v.rows);
    json["vocabularies"].push_back(
        {{"name", v.name}, {"rows", v.rows}, {"path", v.path}, {"sha256", v.sha256}});
  }
  return {text, dumped(json)};
}

DataReport data_check(const std::string& config_path, const DataOptions& options) {
  const RunConfig config = config_with_data(config_path, options);
  const OpenOptions open = data_opened_with(config, options);
  const TextTable* table = config.data->table();
  const Checked checked =
      table ? check_table(*config.data, open) : check_arrays(*config.data, open);
  DataReport found;
  found.report = {text_of(checked), dumped(json_of(checked))};
  std::int64_t bad = 0;
  for (const CheckedSplit& split : checked.splits) bad += split.bad;
  found.bad = checked.broken || (bad > 0 && (!table || table->on_bad == OnBad::error));
  return found;
}

}  // namespace tandem::api
