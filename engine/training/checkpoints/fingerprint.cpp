#include "engine/training/checkpoints/fingerprint.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/formats/json_file.h"
#include "engine/graph/error.h"
#include "engine/training/checkpoints/checkpoint_format.h"

namespace tandem {

const char* const fingerprint_file = "fingerprint.json";

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_records_bytes = 32u << 20;  // in a checkpoint
constexpr std::uint64_t most_file_bytes = 64u << 20;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Json json_of(const StructureRecord& record) {
  Json facts = Json::array();  // in the order in which they are compared
  for (const auto& [name, text] : record.facts) facts.push_back(Json::array({name, text}));
  return Json::array({record.id, record.name, std::move(facts)});
}

const std::string* fact_of(const StructureRecord& record, const std::string& name) {
  const auto found = std::find_if(record.facts.begin(), record.facts.end(),
                                  [&](const auto& fact) { return fact.first == name; });
  return found == record.facts.end() ? nullptr : &found->second;
}

constexpr std::string_view operator_id = "operator ";

/// "%3" outside of quotes as the name of that operator.
std::string with_names(const std::string& text, const ModelStructure& model) {
  std::map<std::string, std::string> names;
  for (const StructureRecord& record : model.records) {
    if (record.id.starts_with(operator_id))
      names[record.id.substr(operator_id.size())] = record.name;
  }
  std::string result;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\' && i + 1 < text.size()) result += text[i++];
    if (text[i] == '"') quoted = !quoted;
    if (quoted || text[i] != '%') {
      result += text[i];
      continue;
    }
    const std::size_t end = std::min(text.find(", ", i), text.size());
    std::string id = text.substr(i + 1, end - i - 1);
    auto name = names.find(id);
    if (name == names.end()) name = names.find(id.substr(0, id.rfind(':')));  // a later result
    result += name == names.end() ? "%" + id : name->second;
    i = end - 1;
  }
  return result;
}

std::string label(const StructureRecord& record) {
  if (record.name.empty() || record.id.ends_with(" " + record.name)) return record.id;
  return record.id + " (" + record.name + ")";
}

/// "Conv" of an operator, else what it is.
std::string kind_of(const StructureRecord& record) {
  const std::string* op = fact_of(record, "operator");
  return op != nullptr ? *op : record.id.substr(0, record.id.find(' '));
}

std::optional<Difference> first_difference(const StructureRecord& a, const StructureRecord& b,
                                           const ModelStructure& before,
                                           const ModelStructure& now) {
  if (a.id != b.id) return Difference{label(b), "this part of the model", label(a), label(b)};
  const auto compare = [&](const std::string& name) -> std::optional<Difference> {
    const std::string *then = fact_of(a, name), *is = fact_of(b, name);
    if (then != nullptr && is != nullptr && *then == *is) return std::nullopt;
    if (then == nullptr && is == nullptr) return std::nullopt;
    const auto text = [&](const std::string* fact, const ModelStructure& model) {
      return fact == nullptr ? std::string("not set") : with_names(*fact, model);
    };
    return Difference{label(b), name, text(then, before), text(is, now)};
  };
  for (const auto& [name, text] : a.facts) {
    if (auto difference = compare(name)) return difference;
  }
  for (const auto& [name, text] : b.facts) {
    if (auto difference = compare(name)) return difference;
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- the file

Json json_of(const SplitFingerprint& split) {
  Json files = Json::array();
  for (const FileFingerprint& file : split.files)
    files.push_back(
        {{"array", file.array}, {"name", file.name}, {"bytes", file.bytes}, {"ends", file.ends}});
  return {{"samples", split.samples}, {"files", std::move(files)}};
}

SplitFingerprint split_of(const JsonItem& json) {
  SplitFingerprint split;
  split.samples = static_cast<std::int64_t>(json.at("samples").natural());
  for (const JsonItem& file : json.at("files").list()) {
    split.files.push_back({file.at("array").any_text(), file.at("name").any_text(),
                           file.at("bytes").natural(), file.at("ends").text()});
  }
  return split;
}

std::map<std::string, std::string> texts_of(const JsonItem& json) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : json.object()) texts[name] = text.any_text();
  return texts;
}

/// The items of a list of `count`.
std::vector<JsonItem> items_of(const JsonItem& json, std::size_t count) {
  std::vector<JsonItem> items = json.list();
  if (items.size() != count) json.refuse("not as long as it has to be", std::to_string(count));
  return items;
}

Fingerprint parse(const JsonItem& json) {
  expect_run_format(json);
  Fingerprint result;
  result.program = json.at("program").text();
  const JsonItem model = json.at("model");
  result.model.sha256 = model.at("sha256").sha256();
  result.model.count = model.at("count").natural();
  result.model.values = texts_of(model.at("values"));
  for (const JsonItem& record : model.at("records").list()) {
    const std::vector<JsonItem> parts = items_of(record, 3);
    StructureRecord& added = result.model.records.emplace_back();
    added.id = parts[0].any_text();
    added.name = parts[1].any_text();
    for (const JsonItem& fact : parts[2].list()) {
      const std::vector<JsonItem> pair = items_of(fact, 2);
      added.facts.emplace_back(pair[0].any_text(), pair[1].any_text());
    }
  }
  const JsonItem data = json.at("data");
  result.data.train = split_of(data.at("train"));
  result.data.eval = split_of(data.at("eval"));
  result.data.fields = texts_of(data.at("fields"));
  for (const JsonItem& change : json.at("accepted").list())
    result.accepted.push_back({change.at("step").natural(), change.at("change").any_text()});
  return result;
}

}  // namespace

ModelStructure structure_of(std::vector<StructureRecord> records,
                            std::map<std::string, std::string> values) {
  ModelStructure model;
  Sha256 hash;
  for (const StructureRecord& record : records) {
    StructureRecord nameless = record;
    nameless.name.clear();
    const std::string line = dump(json_of(nameless)) + "\n";
    hash.update(line.data(), line.size());
  }
  model.count = records.size();
  model.records = std::move(records);
  model.values = std::move(values);
  model.sha256 = hash.finish();
  return model;
}

std::optional<Difference> first_difference(const ModelStructure& before,
                                           const ModelStructure& now) {
  if (before.sha256 != now.sha256) {
    const std::size_t both = std::min(before.records.size(), now.records.size());
    for (std::size_t i = 0; i < both; ++i) {
      if (auto difference = first_difference(before.records[i], now.records[i], before, now)) {
        return difference;
      }
    }
    if (before.records.size() > both || now.records.size() > both) {
      const bool gone = before.records.size() > both && before.records.size() == before.count;
      if (gone) {
        const StructureRecord& record = before.records[both];
        return Difference{label(record), "this part of the model", kind_of(record), ""};
      }
      if (now.records.size() > both && both > 0) {
        const StructureRecord& record = now.records[both];
        return Difference{label(record), "this part of the model", "", kind_of(record)};
      }
    }
    return Difference{"graph", "sha256 of its structure, which is too large to be listed",
                      before.sha256.substr(0, 16) + "…", now.sha256.substr(0, 16) + "…"};
  }
  for (const auto& [name, made_by] : before.values) {
    const auto found = now.values.find(name);
    if (found == now.values.end() || found->second == made_by) continue;
    return Difference{"value " + name, "made by", with_names(made_by, before),
                      with_names(found->second, now)};
  }
  return std::nullopt;
}

WrittenFile write_fingerprint(const std::string& path, const Fingerprint& f) {
  std::string records;
  for (const StructureRecord& record : f.model.records) {
    records += (records.empty() ? "\n    " : ",\n    ") + dump(json_of(record));
    if (records.size() > most_records_bytes) break;
  }
  if (records.size() > most_records_bytes) records.clear();
  Json accepted = Json::array();
  for (const AcceptedChange& change : f.accepted)
    accepted.push_back({{"step", change.step}, {"change", change.text}});
  const Json data{
      {"train", json_of(f.data.train)}, {"eval", json_of(f.data.eval)}, {"fields", f.data.fields}};
  const std::string text = fmt::format(
      "{{\n  \"format\": {},\n  \"program\": {},\n  \"model\": {{\n    \"sha256\": \"{}\",\n"
      "    \"count\": {},\n    \"values\": {},\n    \"records\": [{}]\n  }},\n  \"data\": {},\n"
      "  \"accepted\": {}\n}}\n",
      run_format, dump(f.program), f.model.sha256, f.model.count, dump(Json(f.model.values)),
      records, dump(data), dump(accepted));
  return write_file(path + "/" + fingerprint_file, text);
}

FingerprintPtr read_fingerprint(const std::string& path) {
  const std::string file = path + "/" + fingerprint_file;
  const JsonFile json(file, {.bytes = most_file_bytes, .values = std::size_t{1} << 23, .depth = 8});
  return std::make_shared<const Fingerprint>(parse(json.root()));
}

const Fingerprint& fingerprint_in(const FingerprintPtr& fingerprint, const std::string& path) {
  if (fingerprint) return *fingerprint;
  throw Error(ErrorKind::data,
              {.message = "the checkpoint lacks this file", .file = path + "/" + fingerprint_file});
}

std::string accept_or_refuse(const std::optional<Difference>& difference, const ChangedPart& part,
                             bool accepts) {
  if (!difference) return "";
  if (accepts)
    return fmt::format("accepted: the {} has changed since {}: {}", part.part, part.since,
                       to_string(*difference));
  throw Error(ErrorKind::usage,
              Diagnostic{.message = fmt::format("the {} has changed since {}: {}", part.part,
                                                part.since, difference->what),
                         .file = part.file,
                         .path = difference->where,
                         .expected = difference->before.empty() ? "none" : difference->before,
                         .got = difference->now.empty() ? "none" : difference->now,
                         .fix = part.fix + ", or go on knowingly with --accept-changes"});
}

}  // namespace tandem
