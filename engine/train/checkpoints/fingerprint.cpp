#include "engine/train/checkpoints/fingerprint.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/formats/json_file.h"
#include "engine/formats/run_format.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint_format.h"

namespace tandem {

const char* const fingerprint_file = "fingerprint.json";

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_parts_bytes = 32u << 20;  // in a checkpoint
constexpr std::uint64_t most_file_bytes = 64u << 20;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// [id, name, fact, ...]
std::string text_of(const RecordedPart& part, const std::string& name) {
  Json json = Json::array({part.id, name});
  for (const std::string& fact : part.facts) json.push_back(fact);
  return dump(json);
}

/// A list with a line for each part.
std::string text_of(const std::vector<RecordedPart>& parts) {
  std::string text;
  for (const RecordedPart& part : parts) {
    text += (text.empty() ? "\n    " : ",\n    ") + text_of(part, part.name);
  }
  return "[" + text + "]";
}

std::vector<RecordedPart> parts_of(const JsonItem& json) {
  std::vector<RecordedPart> parts;
  for (const JsonItem& item : json.list()) {
    const std::vector<JsonItem> texts = item.list();
    if (texts.size() < 2) item.refuse("not a part", "[id, name, fact, ...]");
    RecordedPart& part = parts.emplace_back();
    part.id = texts[0].any_text();
    part.name = texts[1].any_text();
    for (std::size_t i = 2; i < texts.size(); ++i) part.facts.push_back(texts[i].any_text());
  }
  return parts;
}

std::map<std::string, std::string> texts_of(const JsonItem& json) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : json.object()) texts[name] = text.any_text();
  return texts;
}

}  // namespace

ModelStructure structure_of(std::vector<RecordedPart> parts,
                            std::map<std::string, std::string> values) {
  ModelStructure model;
  Sha256 hash;
  for (const RecordedPart& part : parts) {
    const std::string line = text_of(part, "") + "\n";
    hash.update(line.data(), line.size());
  }
  model.count = parts.size();
  model.parts = std::move(parts);
  model.values = std::move(values);
  model.sha256 = hash.finish();
  return model;
}

std::optional<Difference> first_difference(const ModelStructure& before,
                                           const ModelStructure& now) {
  if (before.sha256 != now.sha256) {
    if (before.parts.size() == before.count) {
      if (auto difference = first_difference("", before.parts, now.parts)) return difference;
    }
    constexpr const char* hash = "structure of sha256 ";
    return Difference{"graph, which is too large to be listed",
                      hash + before.sha256.substr(0, 16) + "…",
                      hash + now.sha256.substr(0, 16) + "…"};
  }
  for (const auto& [name, made_by] : before.values) {
    const auto found = now.values.find(name);
    if (found == now.values.end() || found->second == made_by) continue;
    return Difference{"value " + name, "made by " + made_by, "made by " + found->second};
  }
  return std::nullopt;
}

WrittenFile write_fingerprint(const std::string& path, const Fingerprint& f) {
  std::string parts = text_of(f.model.parts);
  if (parts.size() > most_parts_bytes) parts = "[]";
  Json accepted = Json::array();
  for (const AcceptedChange& change : f.accepted)
    accepted.push_back({{"step", change.step}, {"change", change.text}});
  const std::string text = fmt::format(
      "{{\n  \"format\": {},\n  \"program\": {},\n  \"model\": {{\n    \"sha256\": \"{}\",\n"
      "    \"count\": {},\n    \"values\": {},\n    \"parts\": {}\n  }},\n"
      "  \"data\": {{\n    \"train\": {},\n    \"eval\": {},\n    \"fields\": {}\n  }},\n"
      "  \"accepted\": {}\n}}\n",
      run_format, dump(f.program), f.model.sha256, f.model.count, dump(Json(f.model.values)), parts,
      text_of(f.data.train), text_of(f.data.eval), dump(Json(f.data.fields)), dump(accepted));
  return write_file(path + "/" + fingerprint_file, text);
}

FingerprintPtr read_fingerprint(const std::string& path) {
  const std::string file = path + "/" + fingerprint_file;
  const JsonFile json(file, {.bytes = most_file_bytes, .values = std::size_t{1} << 23, .depth = 8});
  const JsonItem root = json.root();
  expect_run_format(root);
  Fingerprint result;
  result.program = root.at("program").text();
  const JsonItem model = root.at("model"), data = root.at("data");
  result.model = {parts_of(model.at("parts")), texts_of(model.at("values")),
                  model.at("sha256").sha256(), model.at("count").natural()};
  result.data = {parts_of(data.at("train")), parts_of(data.at("eval")),
                 texts_of(data.at("fields"))};
  for (const JsonItem& change : root.at("accepted").list())
    result.accepted.push_back({change.at("step").natural(), change.at("change").any_text()});
  return std::make_shared<const Fingerprint>(std::move(result));
}

const Fingerprint& fingerprint_in(const FingerprintPtr& fingerprint, const std::string& path) {
  if (fingerprint) return *fingerprint;
  throw Error(ErrorKind::data,
              {.message = "the checkpoint lacks this file", .file = path + "/" + fingerprint_file});
}

std::string accept_or_refuse(const std::optional<Difference>& difference, const ChangedPart& part,
                             bool accepts) {
  if (!difference) return "";
  const std::string message = fmt::format("the {} has changed since {}", part.part, part.since);
  if (accepts) return fmt::format("accepted: {}: {}", message, to_string(*difference));
  throw Error(ErrorKind::usage,
              Diagnostic{.message = message,
                         .file = part.file,
                         .path = difference->where,
                         .expected = difference->before.empty() ? "none" : difference->before,
                         .got = difference->now.empty() ? "none" : difference->now,
                         .fix = part.fix + ", or accept the change with --accept-changes"});
}

}  // namespace tandem
