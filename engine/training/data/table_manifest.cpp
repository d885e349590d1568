#include "engine/training/data/table_manifest.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/formats/files.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json statistics_json(const ColumnStatistics& s) {
  Json json{{"values", s.values}, {"empty", s.empty}, {"cut", s.cut}, {"unknown", s.unknown}};
  if (s.least <= s.greatest) {
    json["least"] = s.least;
    json["greatest"] = s.greatest;
  }
  return json;
}

ColumnStatistics statistics_of(const Json& json) {
  ColumnStatistics s;
  s.values = json.at("values");
  s.empty = json.at("empty");
  s.cut = json.at("cut");
  s.unknown = json.at("unknown");
  if (json.contains("least")) {
    s.least = json.at("least");
    s.greatest = json.at("greatest");
  }
  return s;
}

Json split_json(const PreparedSplit& split) {
  Json json{{"files", Json::array()}, {"fields", Json::array()}};
  for (const PreparedFile& file : split.files) {
    json["files"].push_back({{"source", file.source},
                             {"rows", file.rows},
                             {"bad", file.bad},
                             {"first_bad", file.first_bad}});
  }
  for (const auto& field : split.fields) {
    Json columns = Json::array();
    for (const ColumnStatistics& s : field) columns.push_back(statistics_json(s));
    json["fields"].push_back(std::move(columns));
  }
  return json;
}

PreparedSplit split_of(const Json& json) {
  PreparedSplit split;
  for (const Json& file : json.at("files")) {
    split.files.push_back(
        {file.at("source"), file.at("rows"), file.at("bad"), file.at("first_bad")});
  }
  for (const Json& field : json.at("fields")) {
    auto& columns = split.fields.emplace_back();
    for (const Json& s : field) columns.push_back(statistics_of(s));
  }
  return split;
}

/// A manifest that was changed may still be one, of another table.
bool is_of(const TablePlan& plan, const PreparedSplit& split, std::size_t files) {
  return split.files.size() == files &&
         std::equal(split.fields.begin(), split.fields.end(), plan.fields.begin(),
                    plan.fields.end(), [](const auto& columns, const TableField& field) {
                      return columns.size() == field.columns.size();
                    });
}

bool has_arrays(const PreparedTable& table, bool eval) {
  const PreparedSplit& split = eval ? table.eval : table.train;
  for (std::size_t i = 0; i < split.files.size(); ++i) {
    const std::string prefix = table_prefix(table.folder, eval, i);
    const auto rows = static_cast<std::uint64_t>(split.files[i].rows);
    const auto fits = [&](const std::string& path, std::uint64_t row_bytes) {
      return path_exists(path) && file_size(path) == rows * row_bytes;
    };
    if (!fits(prefix + ".lines", sizeof(std::uint32_t))) return false;
    for (std::size_t f = 0; f < table.plan.fields.size(); ++f) {
      if (!fits(prefix + "." + std::to_string(f), table.plan.fields[f].stored.bytes()))
        return false;
    }
  }
  return true;
}

}  // namespace

std::int64_t PreparedSplit::rows() const {
  std::int64_t sum = 0;
  for (const PreparedFile& file : files) sum += file.rows;
  return sum;
}

std::int64_t PreparedSplit::bad() const {
  std::int64_t sum = 0;
  for (const PreparedFile& file : files) sum += file.bad;
  return sum;
}

std::string table_prefix(const std::string& folder, bool eval, std::size_t file) {
  return folder + (eval ? "/eval-" : "/train-") + std::to_string(file);
}

bool read_manifest(PreparedTable& table, std::size_t train_files, std::size_t eval_files) {
  const std::string path = table.folder + "/manifest.json";
  if (!path_exists(path)) return false;
  const Json json = Json::parse(read_file(path, 1u << 30), nullptr, false);
  if (json.is_discarded()) return false;
  try {
    if (json.at("format") != table_format) return false;
    table.train = split_of(json.at("train"));
    table.eval = split_of(json.at("eval"));
    table.vocabularies.clear();
    for (const Json& v : json.at("vocabularies")) {
      const std::string file = v.at("file");
      table.vocabularies.push_back(
          {v.at("name"), v.at("rows"), file, table.folder + "/" + file, v.at("sha256")});
      const SavedVocabulary& saved = table.vocabularies.back();
      if (!path_exists(saved.path) || hash_file(saved.path).sha256 != saved.sha256) return false;
    }
  } catch (const Json::exception&) {
    return false;
  }
  const bool fits = is_of(table.plan, table.train, train_files) &&
                    is_of(table.plan, table.eval, eval_files) &&
                    table.vocabularies.size() == table.plan.vocabularies.size();
  return fits && has_arrays(table, false) && has_arrays(table, true);
}

void write_manifest(const PreparedTable& table, const std::string& folder) {
  Json vocabularies = Json::array();
  for (const SavedVocabulary& v : table.vocabularies) {
    vocabularies.push_back(
        {{"name", v.name}, {"rows", v.rows}, {"file", v.file_name}, {"sha256", v.sha256}});
  }
  const Json json{{"format", table_format},
                  {"train", split_json(table.train)},
                  {"eval", split_json(table.eval)},
                  {"vocabularies", vocabularies}};
  write_file(folder + "/manifest.json",
             json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace tandem
