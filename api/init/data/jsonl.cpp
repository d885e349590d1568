// Lines of JSON objects: numbers, texts and lists of those.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "api/init/data/data_look.h"
#include "api/init/data/table_arrays.h"
#include "engine/formats/delimited.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api::looks {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t most_lines = 100'000;  // that are read for their ranges
constexpr std::size_t most_keys = 1 << 12;

bool takes_jsonl(const std::string& path) { return has_ending(path, {".jsonl", ".ndjson"}); }

/// What the lines have under a key.
struct KeyFacts {
  ArrayFacts array;
  std::map<std::int64_t, std::int64_t> lengths;  // of its lists
  bool has_lists = false, has_others = false;
  std::string refused;  // why it makes no field
};

void add_item(const Json& value, KeyFacts& key) {
  if (value.is_boolean())
    key.array.numbers.add(value.get<bool>() ? 1 : 0);
  else if (value.is_number())
    key.array.numbers.add(value.get<double>());
  else if (value.is_string())
    key.array.take_text(value.get_ref<const std::string&>());
  else
    key.refused = value.is_null() ? "lists with empty places" : "objects or lists in lists";
}

void add_value(const Json& value, KeyFacts& key) {
  ++key.array.rows;
  if (value.is_null()) {
    key.array.has_gaps = true;
    return;
  }
  if (!value.is_array()) {
    key.has_others = true;
    add_item(value, key);
    return;
  }
  ++key.lengths[static_cast<std::int64_t>(value.size())];
  key.has_lists = true;
  for (const Json& item : value) add_item(item, key);
}

void add_line(const std::string& path, std::int64_t line, std::string_view text,
              std::map<std::string, KeyFacts>& keys) {
  const Json object = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!object.is_object()) {
    throw Error(ErrorKind::data, Diagnostic{.message = "this line is no JSON object",
                                            .file = path,
                                            .line = static_cast<int>(line),
                                            .expected = "an object like {\"text\": \"…\", "
                                                        "\"label\": 3}"});
  }
  for (const auto& [name, value] : object.items()) {
    if (keys.size() < most_keys || keys.contains(name)) add_value(value, keys[name]);
  }
}

/// A key as an array, where all of its values have one form.
void settle(const std::string& name, std::int64_t lines, KeyFacts key, DataFacts& facts) {
  if (!key.refused.empty() || (key.has_lists && key.has_others)) {
    facts.notes.push_back(
        fmt::format("the key \"{}\" is left out: it holds {}", name,
                    key.refused.empty() ? "lists and single values" : key.refused));
    return;
  }
  ArrayFacts& array = key.array;
  array.name = name;
  array.columns = {name};
  array.has_gaps = array.has_gaps || array.rows < lines;
  array.rows = lines;
  array.sample.dtype = array.numbers.whole && !array.is_text ? DType::int64 : DType::float32;
  if (key.has_lists) {
    const std::int64_t shortest = key.lengths.begin()->first, longest = key.lengths.rbegin()->first;
    if (longest == 0 || longest > (1 << 20)) return;
    array.sample.shape = {longest};
    array.made_by = {fmt::format("split(',', max={})", longest)};
    if (shortest < longest) {
      array.is_ragged = true;
      array.lengths = std::move(key.lengths);
      facts.notes.push_back(fmt::format("lists of \"{}\" have {} to {} values: filled up with 0",
                                        name, shortest, longest));
    }
  }
  facts.arrays.push_back(std::move(array));
}

void look_jsonl(const SplitPaths& paths, DataFacts& facts) {
  facts.train = {{"", paths.train, {}}};
  if (!paths.eval.empty()) facts.eval = {{"", paths.eval, {}}};
  std::map<std::string, KeyFacts> keys;
  std::int64_t lines = 0;
  for (const std::string& path : paths.train) {
    DelimitedReader reader(path, '\n', false);
    while (lines < most_lines && reader.next()) {
      if (reader.is_empty_line()) continue;
      ++lines;
      add_line(path, reader.line(), reader.fields()[0], keys);
    }
  }
  if (lines == most_lines) facts.rows_read = lines;
  for (auto& [name, key] : keys) {
    if (is_text(name) && name == on_one_line(name)) settle(name, lines, std::move(key), facts);
  }
  if (lines > 0) add_stacks(facts);
}

}  // namespace

DataLook jsonl() {
  return {.kind = "jsonl", .takes = takes_jsonl, .look = look_jsonl, .fit = add_token_arrays};
}

}  // namespace tandem::api::looks
