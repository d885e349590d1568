#include "api/init/data/own_template.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/init/fields.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// What Jinja texts do that named templates do not.
constexpr std::pair<const char*, const char*> further_parts[] = {
    {"<think>", "thoughts of earlier answers"},
    {"Cutting Knowledge Date", "dates in the system message"}};

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

bool has(const std::string& jinja, const std::string& part) {
  return jinja.find(part) != std::string::npos;
}

const ChatTemplate* template_with_signs(const std::string& jinja) {
  const auto is_there = [&](const std::string& sign) { return has(jinja, sign); };
  for (const ChatTemplate& one : all_chat_templates()) {
    if (std::all_of(one.signs.begin(), one.signs.end(), is_there) &&
        std::none_of(one.foreign_signs.begin(), one.foreign_signs.end(), is_there))
      return &one;
  }
  return nullptr;
}

/// The text between the marks of a system message, where that is no expression. Jinja texts write
/// line ends as they are, or as \n.
std::string system_in(const std::string& jinja, const ChatTemplate& known) {
  if (known.system_place != SystemPlace::own_turn) return "";
  std::string escaped;
  for (const char c : known.system.before) escaped += c == '\n' ? "\\n" : std::string(1, c);
  for (const std::string& before : {known.system.before, escaped}) {
    for (std::size_t at = jinja.find(before); at != std::string::npos;
         at = jinja.find(before, at + 1)) {
      const std::size_t begin = at + before.size();
      const std::size_t end = jinja.find(known.system.behind, begin);
      if (end == std::string::npos) break;
      const std::string text = jinja.substr(begin, end - begin);
      if (!text.empty() && text.find_first_of("'\"{}\\") == std::string::npos) return text;
    }
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
  own.known = template_with_signs(jinja);
  if (own.known == nullptr) return own;
  const std::string& usual = own.known->begin;
  const std::string begin = has(jinja, "bos_token")               ? text_at(config, "bos_token")
                            : !usual.empty() && has(jinja, usual) ? usual
                                                                  : "";
  if (begin != usual) own.begin = begin;
  own.system = system_in(jinja, *own.known);
  for (const auto& [sign, what] : further_parts) {
    if (has(jinja, sign)) own.more.emplace_back(what);
  }
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
