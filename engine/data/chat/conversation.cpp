#include "engine/data/chat/conversation.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "engine/data/cells/cell_number.h"
#include "engine/formats/json_file.h"
#include "engine/formats/tokenizer/utf8.h"

namespace tandem {
namespace {

constexpr JsonLimits line_limits{
    .bytes = std::uint64_t{16} << 20, .values = std::size_t{1} << 18, .depth = 32};
constexpr std::string_view role_names[] = {"system", "user", "assistant"};
constexpr const char* conversation_form =
    R"({"messages": [{"role": "user", "content": "…"}, …]}, or {"prompt": "…", "completion": "…"})";

std::optional<JsonItem> find_set(const JsonItem& object, std::string_view key) {
  std::optional<JsonItem> found = object.find(key);
  return found && !found->is_null() ? found : std::nullopt;
}

std::string text_of(const JsonItem& item) {
  std::optional<std::string> text = item.as_text();
  if (!text) item.refuse("not a text", "a text");
  return *std::move(text);
}

ChatRole role_of(const JsonItem& item) {
  const std::string name = text_of(item);
  const auto found = std::find(std::begin(role_names), std::end(role_names), name);
  if (found == std::end(role_names)) item.refuse("an unknown role", "system, user or assistant");
  return static_cast<ChatRole>(found - std::begin(role_names));
}

void take_messages(const JsonItem& messages, Conversation& to) {
  if (!messages.is_list()) messages.refuse("not a list of messages", conversation_form);
  if (messages.size() == 0) messages.refuse("there are no messages");
  for (const JsonItem& message : messages.items()) {
    if (!message.is_object())
      message.refuse("not a message", R"({"role": "user", "content": "…"})");
    to.push_back({role_of(message.at("role")), text_of(message.at("content"))});
  }
}

void take_pair(const JsonItem& line, Conversation& to) {
  std::optional<JsonItem> answer;
  for (const char* key : {"completion", "answer", "response"}) {
    const std::optional<JsonItem> found = find_set(line, key);
    if (found && answer) found->refuse("a second answer", "one of completion, answer, response");
    if (found) answer = found;
  }
  const std::optional<JsonItem> prompt = find_set(line, "prompt");
  if (!prompt && !answer) line.refuse("not a conversation", conversation_form);
  if (!prompt) line.refuse("there is no prompt", conversation_form);
  if (!answer) line.refuse("there is no answer", "the key completion, answer or response");
  if (const auto system = find_set(line, "system"))
    to.push_back({ChatRole::system, text_of(*system)});
  to.push_back({ChatRole::user, text_of(*prompt)});
  to.push_back({ChatRole::assistant, text_of(*answer)});
}

/// The text of the last answer, of a line that has one.
JsonItem last_answer(const JsonItem& line) {
  std::optional<JsonItem> answer;
  if (const auto messages = line.find("messages")) {
    for (const JsonItem& message : messages->items()) {
      if (role_of(message.at("role")) == ChatRole::assistant) answer.emplace(message.at("content"));
    }
    return *answer;
  }
  for (const char* key : {"completion", "answer", "response"}) {
    if (const auto found = find_set(line, key)) answer.emplace(*found);
  }
  return *answer;
}

Conversation conversation_of(const JsonItem& line) {
  Conversation all;
  if (!line.is_object()) line.refuse("not a conversation", conversation_form);
  if (const auto messages = line.find("messages"))
    take_messages(*messages, all);
  else
    take_pair(line, all);
  const auto is_answer = [](const ChatMessage& m) { return m.role == ChatRole::assistant; };
  if (std::none_of(all.begin(), all.end(), is_answer))
    line.refuse("there is no answer", "a message of the role assistant");
  const bool is_any = std::any_of(all.begin(), all.end(), [&](const ChatMessage& m) {
    return is_answer(m) && !is_blank(m.content);
  });
  if (!is_any) last_answer(line).refuse("the answer is empty", "a text that is to be learned");
  return all;
}

}  // namespace

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::string_view name_of(ChatRole role) { return role_names[static_cast<std::size_t>(role)]; }

Conversation read_conversation(const std::string& file, std::int64_t line, std::string_view text) {
  try {
    if (const std::size_t at = invalid_utf8(text); at != std::string_view::npos) {
      throw Error(ErrorKind::data, Diagnostic{.message = "no text in UTF-8, at byte " +
                                                         std::to_string(at + 1) + " of the line",
                                              .file = file,
                                              .fix = remedy_of_bytes});
    }
    const JsonFile json(JsonSource{.file = file, .what = "the line"}, text, line_limits);
    return conversation_of(json.root());
  } catch (const Error& error) {
    std::vector<Diagnostic> problems = error.diagnostics();
    for (Diagnostic& problem : problems) problem.line = static_cast<int>(line);
    throw Error(error.kind(), std::move(problems));
  }
}

}  // namespace tandem
