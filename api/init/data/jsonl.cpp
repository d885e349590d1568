// Lines of JSON objects: numbers, texts and lists of those.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "api/init/data/column_texts.h"
#include "api/init/data/data_look.h"
#include "api/init/data/table_arrays.h"
#include "api/init/roles.h"
#include "engine/formats/delimited.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api::looks {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_keys = 1 << 12;

bool takes_jsonl(const std::string& path) { return has_ending(path, {".jsonl", ".ndjson"}); }

/// Facts about the values under one key.
struct KeyFacts {
  ArrayFacts array;
  std::map<std::int64_t, std::int64_t> lengths;  // number of lists by length
  EachOnce once;                                 // for single values
  bool has_lists = false, has_others = false;
  std::string refused;  // why the key makes no field
};

void add_item(const Json& value, const RowPlace& place, KeyFacts& key) {
  ArrayFacts& array = key.array;
  if (value.is_boolean()) {
    array.numbers.add(value.get<bool>() ? 1 : 0);
  } else if (value.is_number()) {
    array.numbers.add(value.get<double>());
    array.has_points = array.has_points || value.is_number_float();
  } else if (value.is_string()) {
    if (!array.is_text) array.first_text = text_in_row(value.get_ref<const std::string&>(), place);
    array.is_text = true;
  } else {
    key.refused = value.is_null() ? "lists with empty places" : "objects or lists in lists";
  }
}

/// The value in the form of a table's cell.
std::string cell_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  return value.is_null() ? "" : value.dump();
}

void add_value(const Json& value, const RowPlace& place, KeyFacts& key) {
  ++key.array.rows;
  if (value.is_null()) {
    ++key.array.missing;
    return;
  }
  if (!value.is_array()) {
    key.has_others = true;
    key.once.add(cell_of(value));
    add_item(value, place, key);
    return;
  }
  ++key.lengths[static_cast<std::int64_t>(value.size())];
  key.has_lists = true;
  for (const Json& item : value) add_item(item, place, key);
}

/// Calls `visit` with the objects of the files' lines, within the bounds.
template <class Visit>
TableBounds each_object(const std::vector<std::string>& paths, const Visit& visit) {
  TableBounds bounds;
  for (const std::string& path : paths) {
    DelimitedReader reader(path, '\n', false);
    while (reader.next()) {
      if (reader.is_empty_line()) continue;
      if (!bounds.take(reader.position())) return bounds;
      const std::string_view text = reader.fields()[0];
      const Json object = Json::parse(text.begin(), text.end(), nullptr, false);
      if (!object.is_object()) {
        throw Error(ErrorKind::data, Diagnostic{.message = "this line is no JSON object",
                                                .file = path,
                                                .line = static_cast<int>(reader.line()),
                                                .expected = "an object like {\"text\": \"…\", "
                                                            "\"label\": 3}"});
      }
      visit(object, RowPlace{path, reader.line()});
    }
    bounds.next_file();
  }
  return bounds;
}

void add_object(const Json& object, const RowPlace& place, std::map<std::string, KeyFacts>& keys) {
  for (const auto& [name, value] : object.items()) {
    if (keys.size() < most_keys || keys.contains(name)) add_value(value, place, keys[name]);
  }
}

void add_texts(const Json& object, const std::vector<ArrayFacts>& arrays, ColumnTexts& texts) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto found = object.find(arrays[i].name);
    if (found == object.end()) {
      texts.add(i, "");
    } else if (!found->is_array()) {
      texts.add(i, cell_of(*found));
    } else {
      for (const Json& item : *found) texts.add(i, cell_of(item));
    }
  }
}

/// Whether a line has what data.kind = "chat" reads.
bool is_chat(const Json& object) {
  const auto is_text = [&](const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string();
  };
  if (const auto messages = object.find("messages"); messages != object.end()) {
    return messages->is_array() && !messages->empty() && messages->front().is_object() &&
           messages->front().contains("role");
  }
  return is_text("prompt") && (is_text("completion") || is_text("answer") || is_text("response"));
}

/// A language model writes on: what a conversation has as texts is no input of another model, nor
/// where the data has labels of its own.
std::string_view chat_for(const std::vector<InputFacts>& inputs, const DataFacts& facts) {
  const bool has_decoder = std::any_of(inputs.begin(), inputs.end(), [](const InputFacts& input) {
    return is_decoders(input.name);
  });
  const bool takes_ids = std::any_of(inputs.begin(), inputs.end(), [](const InputFacts& input) {
    return role_of(input) == Role::none && is_integer(input.sample.dtype) &&
           input.sample.shape.size() == 1;
  });
  const bool has_labels = std::any_of(
      facts.arrays.begin(), facts.arrays.end(),
      [](const ArrayFacts& array) { return array.name != "answer" && names_label(array.name); });
  return facts.holds_chat && facts.said.fields.empty() && takes_ids && !has_decoder && !has_labels
             ? "chat"
             : "";
}

/// Makes an array of a key whose values all have one form.
void settle(const std::string& name, std::int64_t lines, KeyFacts key, DataFacts& facts) {
  if (!key.refused.empty() && (name == "conversations" || name == "conversation")) {
    facts.notes.push_back(fmt::format(
        "the key \"{}\" is left out: it holds conversations; write them as \"messages\", objects "
        "with \"role\" (system, user, assistant) and \"content\"",
        name));
    return;
  }
  if (!key.refused.empty() || (key.has_lists && key.has_others)) {
    facts.notes.push_back(
        fmt::format("the key \"{}\" is left out: it holds {}", name,
                    key.refused.empty() ? "lists and single values" : key.refused));
    return;
  }
  ArrayFacts& array = key.array;
  array.name = name;
  array.columns = {name};
  array.missing += lines - array.rows;
  array.rows = lines;
  array.is_identifier =
      key.once.holds() && !array.has_gaps() && (array.is_text || array.numbers.whole);
  array.sample.dtype = array.numbers.whole && !array.is_text ? DType::int64 : DType::float32;
  if (key.has_lists) {
    const std::int64_t shortest = key.lengths.begin()->first, longest = key.lengths.rbegin()->first;
    if (longest == 0 || longest > (1 << 20)) return;
    array.sample.shape = {longest};
    array.made_by = {fmt::format("split(',', max={})", longest)};
    if (shortest < longest) {
      array.is_ragged = true;
      array.lengths = std::move(key.lengths);
      facts.notes.push_back(fmt::format("lists of \"{}\" have {} to {} values: padded with 0", name,
                                        shortest, longest));
    }
  }
  facts.arrays.push_back(std::move(array));
}

void look_jsonl(const SplitPaths& paths, DataFacts& facts) {
  facts.train = {{"", paths.train, {}}};
  if (!paths.eval.empty()) facts.eval = {{"", paths.eval, {}}};
  std::map<std::string, KeyFacts> keys;
  const TableBounds bounds =
      each_object(paths.train, [&](const Json& object, const RowPlace& place) {
        facts.holds_chat |= keys.empty() && is_chat(object);
        add_object(object, place, keys);
      });
  take_bounds(bounds, paths.train, facts);
  for (auto& [name, key] : keys) {
    if (is_text(name)) settle(name, bounds.rows(), std::move(key), facts);
  }
  const auto holds_text = [](const ArrayFacts& array) { return array.is_text; };
  if (!std::any_of(facts.arrays.begin(), facts.arrays.end(), holds_text)) return;
  ColumnTexts texts;
  each_object(paths.train,
              [&](const Json& object, const RowPlace&) { add_texts(object, facts.arrays, texts); });
  texts.tell(facts.arrays, !bounds.is_over());
}

}  // namespace

DataLook jsonl() {
  return {.kind = "jsonl",
          .takes = takes_jsonl,
          .look = look_jsonl,
          .other_kind = chat_for,
          .fit = fit_table};
}

}  // namespace tandem::api::looks
