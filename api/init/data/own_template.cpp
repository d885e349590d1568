#include "api/init/data/own_template.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/init/data/template_match.h"
#include "api/init/fields.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string text_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json json_of_file(const fs::path& path) {
  return Json::parse(text_of_file(path), nullptr, /*allow_exceptions=*/false);
}

/// A text, or the content of a token's object; "" for all else.
std::string text_at(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  return found->is_object() ? text_at(*found, "content") : "";
}

/// The template of a file's JSON: a text, or the one named "default" of a list.
std::string template_in(const Json& json) {
  const std::string text = text_at(json, "chat_template");
  if (!text.empty() || !json.is_object() || !json.contains("chat_template")) return text;
  const Json& list = json["chat_template"];
  if (!list.is_array()) return "";
  for (const Json& one : list) {
    if (text_at(one, "name") == "default") return text_at(one, "template");
  }
  return "";
}

}  // namespace

OwnTemplate own_template(const std::string& tokenizer_file) {
  const fs::path folder = fs::path(tokenizer_file).parent_path();
  const Json config = json_of_file(folder / "tokenizer_config.json");
  OwnTemplate own;
  std::string jinja;
  const std::pair<const char*, std::string> texts[] = {
      {"chat_template.jinja", text_of_file(folder / "chat_template.jinja")},
      {"chat_template.json", template_in(json_of_file(folder / "chat_template.json"))},
      {"tokenizer_config.json", template_in(config)}};
  for (const auto& [file, text] : texts) {
    if (text.empty()) continue;
    own.file = file;
    jinja = text;
    break;
  }
  if (jinja.empty()) return own;
  own.shown = shown_text(jinja);
  match_template(jinja, text_at(config, "bos_token"), text_at(config, "eos_token"), own);
  return own;
}

std::string end_token(const std::string& tokenizer_file, const Tokenizer& tokenizer) {
  const fs::path folder = fs::path(tokenizer_file).parent_path();
  const std::string named = text_at(json_of_file(folder / "tokenizer_config.json"), "eos_token");
  if (!named.empty()) return named;
  for (const char* usual : {"<|endoftext|>", "</s>", "<eos>", "<|end_of_text|>"}) {
    if (tokenizer.find(usual)) return usual;
  }
  return "";
}

}  // namespace tandem::api
