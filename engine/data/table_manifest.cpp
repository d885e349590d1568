#include "engine/data/table_manifest.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/formats/json_file.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t manifest_count(const JsonItem& json) {
  return static_cast<std::int64_t>(json.natural());
}

Json statistics_json(const ColumnStatistics& s) {
  Json json{{"values", s.values}, {"empty", s.empty}, {"cut", s.cut}, {"unknown", s.unknown}};
  if (s.dates > 0) json["dates"] = s.dates;
  if (s.small_times > 0) json["small_times"] = s.small_times;
  if (!s.unknown_examples.empty()) json["unknown_examples"] = s.unknown_examples;
  if (s.least <= s.greatest) {
    json["least"] = s.least;
    json["greatest"] = s.greatest;
  }
  return json;
}

ColumnStatistics statistics_of(const JsonItem& json) {
  constexpr double lowest = std::numeric_limits<double>::lowest(), most = -lowest;
  ColumnStatistics s;
  s.values = manifest_count(json.at("values"));
  s.empty = manifest_count(json.at("empty"));
  s.cut = manifest_count(json.at("cut"));
  s.unknown = manifest_count(json.at("unknown"));
  if (const auto dates = json.find("dates")) s.dates = manifest_count(*dates);
  if (const auto times = json.find("small_times")) s.small_times = manifest_count(*times);
  if (const auto examples = json.find("unknown_examples")) {
    for (const JsonItem& word : examples->list()) s.unknown_examples.push_back(word.any_text());
  }
  if (const auto least = json.find("least")) {
    s.least = least->number(lowest, most);
    s.greatest = json.at("greatest").number(s.least, most);
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

PreparedSplit split_of(const JsonItem& json) {
  PreparedSplit split;
  std::int64_t rows = 0;
  for (const JsonItem& file : json.at("files").list()) {
    const std::int64_t more = manifest_count(file.at("rows"));
    if (__builtin_add_overflow(rows, more, &rows)) file.refuse("more rows than 64 bits count");
    split.files.push_back({file.at("source").any_text(), more, manifest_count(file.at("bad")),
                           file.at("first_bad").any_text()});
  }
  for (const JsonItem& field : json.at("fields").list()) {
    auto& columns = split.fields.emplace_back();
    for (const JsonItem& s : field.list()) columns.push_back(statistics_of(s));
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
      if (!path_exists(path)) return false;
      const std::uint64_t bytes = file_size(path);  // rows * row_bytes may be too large a number
      return row_bytes == 0 ? bytes == 0 : bytes % row_bytes == 0 && bytes / row_bytes == rows;
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
  try {
    const JsonLimits limits{.bytes = std::uint64_t{1} << 30, .values = std::size_t{1} << 24};
    const JsonFile file(path, limits);
    const JsonItem json = file.root();
    if (json.at("format").as_natural() != std::uint64_t{table_format}) return false;
    table.train = split_of(json.at("train"));
    table.eval = split_of(json.at("eval"));
    table.vocabularies.clear();
    for (const JsonItem& v : json.at("vocabularies").list()) {
      const std::string file_name = v.at("file").text();
      if (file_name.empty() || file_name.find('/') != std::string::npos) return false;
      table.vocabularies.push_back({v.at("name").any_text(), manifest_count(v.at("rows")),
                                    file_name, table.folder + "/" + file_name,
                                    v.at("sha256").sha256()});
      const SavedVocabulary& saved = table.vocabularies.back();
      if (!path_exists(saved.path) || hash_file(saved.path).sha256 != saved.sha256) return false;
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::data) return false;
    throw;
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
