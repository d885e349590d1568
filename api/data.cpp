// `tandem data`: prepares text tables and checks data.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/commands/check/checked_data.h"
#include "api/data_options.h"
#include "api/program/data.h"
#include "engine/config/keys/config_names.h"
#include "engine/data/prepare_table.h"
#include "engine/formats/count_text.h"
#include "engine/formats/text_stream.h"
#include "placement/report/json.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

std::string number_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "-";
}

// ---------------------------------------------------------------- text of reports

double percent(std::int64_t part, std::int64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

/// How many tokens there are, what of them is learned or lost, and where the longest texts are.
std::string text_of(const TokenCounts& counts) {
  std::string text =
      fmt::format("  tokens: {} in {}, {:.1f} on average; {} are learned ({:.3g} %)\n",
                  counts.tokens, count_text(counts.texts, "text"),
                  static_cast<double>(counts.tokens) /
                      static_cast<double>(std::max<std::int64_t>(counts.texts, 1)),
                  counts.learned, percent(counts.learned, counts.tokens));
  text += fmt::format("    {} of {} tokens; {:.3g} % of them is padding\n",
                      count_text(counts.samples, "sample"), counts.places / counts.samples,
                      percent(counts.places - counts.kept(), counts.places));
  if (counts.cut_texts > 0)
    text += fmt::format("    {} tokens are cut off {} ({:.3g} %)\n", counts.cut_tokens,
                        count_text(counts.cut_texts, "text"),
                        percent(counts.cut_tokens, counts.tokens));
  if (counts.left_out > 0)
    text += fmt::format("    {} left out\n", count_text(counts.left_out, "line"));
  text += "    longest:";
  for (const TokenCounts::LongText& one : counts.longest)
    text += fmt::format("{} {} ({})", &one == counts.longest.data() ? "" : ",", one.tokens,
                        shown_path(one.place));
  return text + "\n";
}

std::string text_of(const CheckedData& checked) {
  std::string text;
  for (const CheckedSplit& split : checked.splits) {
    text += fmt::format("{}: {}", split.name, count_text(split.samples, "sample"));
    if (split.bad > 0) text += ", " + count_text(split.bad, "bad row");
    text += fmt::format("\n  {:<20} {:<16} {:>12} {:>10} {:>12} {:>12} {:>10}\n", "field", "column",
                        "values", "missing", "least", "greatest", "distinct");
    for (const CheckedField& field : split.fields) {
      for (const CheckedColumn& c : field.columns) {
        text += fmt::format("  {:<20} {:<16} {:>12} {:>10} {:>12} {:>12} {:>10}\n", field.name,
                            c.name == field.name ? "" : c.name, c.values, c.missing,
                            number_text(c.least), number_text(c.greatest),
                            c.distinct < 0 ? "-" : std::to_string(c.distinct));
        if (c.cut > 0) text += fmt::format("    {} {}\n", c.cut, c.limit);
        if (c.unknown > 0)
          text += fmt::format("    {} values are not in the vocabulary of training\n", c.unknown);
        if (c.bad_numbers > 0) text += fmt::format("    {} are not finite\n", c.bad_numbers);
      }
      text += fmt::format("    {} a sample\n", to_string(field.sample));
    }
    if (split.tokens) text += text_of(*split.tokens);
  }
  for (const Json& v : checked.vocabularies) {
    const auto name = v["name"].get<std::string>();
    const auto rows = v["rows"].get<std::int64_t>(), distinct = v["distinct"].get<std::int64_t>(),
               rare = v["rare_values"].get<std::int64_t>();
    text +=
        v["by"] == "table"
            ? fmt::format(
                  "vocabulary {}: {} different values in all columns; the largest of "
                  "the columns' tables has {} rows",
                  name, distinct, rows)
            : fmt::format("vocabulary {}: {} rows, of {} different values", name, rows, distinct);
    if (rare > 0) text += fmt::format("; {} values are rarer than min_count and share row 0", rare);
    text += "\n";
  }
  if (!checked.problems.empty()) text += "problems:\n";
  for (const Diagnostic& d : checked.problems) text += "  " + to_string(d) + "\n";
  for (const std::string& warning : checked.warnings) text += "warning: " + warning + "\n";
  for (const std::string& note : checked.notes) text += "note: " + note + "\n";
  if (!text.empty()) text.pop_back();
  return text;
}

Json json_of(const TokenCounts& counts) {
  Json longest = Json::array();
  for (const TokenCounts::LongText& one : counts.longest)
    longest.push_back({{"place", one.place}, {"tokens", one.tokens}});
  return {{"texts", counts.texts},         {"tokens", counts.tokens},
          {"learned", counts.learned},     {"places", counts.places},
          {"cut_texts", counts.cut_texts}, {"cut_tokens", counts.cut_tokens},
          {"left_out", counts.left_out},   {"longest", std::move(longest)}};
}

Json json_of(const CheckedData& checked) {
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
        if (c.unknown >= 0) column["unknown"] = c.unknown;
        columns.push_back(std::move(column));
      }
      fields.push_back({{"name", field.name},
                        {"dtype", name_of(field.sample.dtype)},
                        {"shape", field.sample.shape},
                        {"columns", std::move(columns)}});
    }
    json[split.name] = {
        {"samples", split.samples}, {"bad", split.bad}, {"fields", std::move(fields)}};
    if (split.tokens) json[split.name]["tokens"] = json_of(*split.tokens);
  }
  json["vocabularies"] = checked.vocabularies;
  json["problems"] = Json::array();
  for (const Diagnostic& d : checked.problems) {
    json["problems"].push_back(diagnostic_json(d));
  }
  json["warnings"] = checked.warnings;
  json["notes"] = checked.notes;
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
  const ImageFiles* images = config.data->images();
  const bool leaves_out = (table != nullptr && table->on_bad == OnBad::skip) ||
                          (images != nullptr && images->on_bad == OnBad::skip);
  const CheckedData checked = table ? check_table(config, open) : check_arrays(config, open);
  DataReport found;
  found.report = {text_of(checked), dumped(json_of(checked))};
  std::int64_t bad = 0;
  for (const CheckedSplit& split : checked.splits) bad += split.bad;
  found.bad = checked.broken || (bad > 0 && !leaves_out);
  return found;
}

}  // namespace tandem::api
