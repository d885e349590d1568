#include "engine/data/chat/chat_template.h"

#include <algorithm>
#include <iterator>

#include "engine/formats/tokenizer/utf8.h"

namespace tandem {
namespace chat_templates {
#define TEMPLATE(name) ChatTemplate name();
#include "engine/data/chat/templates/all_templates.inl"
#undef TEMPLATE
}  // namespace chat_templates

namespace {

/// What Python's str.strip leaves out, as the filter `trim` of Jinja does.
bool is_stripped(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

std::string_view stripped(std::string_view text) {
  std::size_t begin = text.size(), end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    if (is_stripped(next_character(text, at))) continue;
    begin = std::min(begin, from);
    end = at;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

Diagnostic refused(std::size_t message, std::string what, std::string expected, std::string got) {
  return {.message = std::move(what),
          .path = "messages[" + std::to_string(message) + "].role",
          .expected = std::move(expected),
          .got = std::move(got)};
}

const ChatTurn& turn_of(const ChatTemplate& style, ChatRole role) {
  return role == ChatRole::system ? style.system
         : role == ChatRole::user ? style.user
                                  : style.assistant;
}

ChatTurn turn_of_pattern(const std::string& pattern) {
  const std::size_t at = pattern.find(content_mark);
  if (at == std::string::npos) return {};
  return {.before = pattern.substr(0, at), .behind = pattern.substr(at + content_mark.size())};
}

}  // namespace

std::span<const ChatTemplate> all_chat_templates() {
#define TEMPLATE(name) chat_templates::name(),
  static const ChatTemplate all[] = {
#include "engine/data/chat/templates/all_templates.inl"
  };
#undef TEMPLATE
  return all;
}

const ChatTemplate* find_chat_template(std::string_view name) {
  const std::span<const ChatTemplate> all = all_chat_templates();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const ChatTemplate& t) { return t.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const std::string& chat_template_words() {
  static const std::string words = [] {
    std::string all;
    for (const ChatTemplate& one : all_chat_templates()) all += (all.empty() ? "" : "|") + one.name;
    return all;
  }();
  return words;
}

ChatTemplate chat_template_of(const ChatFiles& config) {
  ChatTemplate style;
  if (const ChatTemplate* const named = find_chat_template(config.style.name)) {
    style = *named;
  } else {
    style.name = "of data.template";
    style.system = turn_of_pattern(config.style.system);
    style.user = turn_of_pattern(config.style.user);
    style.assistant = turn_of_pattern(config.style.assistant);
    if (config.style.system.empty()) style.system_place = SystemPlace::refused;
  }
  if (config.begin) style.begin = *config.begin;
  return style;
}

std::optional<Diagnostic> misfit_of_roles(const ChatTemplate& style, const Conversation& messages) {
  const bool is_joined =
      style.system_place == SystemPlace::first_user || style.system_place == SystemPlace::last_user;
  std::size_t turn = 0;  // without system messages
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const ChatRole role = messages[i].role;
    const std::string got(name_of(role));
    if (role == ChatRole::system && style.system_place == SystemPlace::refused)
      return refused(i, "the template " + style.name + " has no such role", "user or assistant",
                     got);
    if (role == ChatRole::system && is_joined && i > 0)
      return refused(i, "the template " + style.name + " takes a system message only as the first",
                     "user or assistant", got);
    if (role == ChatRole::system) continue;
    const ChatRole wanted = turn++ % 2 == 0 ? ChatRole::user : ChatRole::assistant;
    if (style.alternates && role != wanted)
      return refused(i, "the template " + style.name + " takes the roles in turn",
                     std::string(name_of(wanted)), got);
  }
  return std::nullopt;
}

namespace {

/// The beginning and the messages, without the end.
void render_messages(const ChatTemplate& style, const Conversation& messages, RenderedChat& to) {
  const auto is_user = [](const ChatMessage& m) { return m.role == ChatRole::user; };
  const ChatMessage* joined = nullptr;  // with the system message
  if (style.system_place == SystemPlace::first_user) {
    const auto first = std::find_if(messages.begin(), messages.end(), is_user);
    if (first != messages.end()) joined = &*first;
  } else if (style.system_place == SystemPlace::last_user) {
    const auto last = std::find_if(messages.rbegin(), messages.rend(), is_user);
    if (last != messages.rend()) joined = &*last;
  }
  std::optional<std::string_view> system;
  to.answers.clear();
  to.text = style.begin;
  for (const ChatMessage& message : messages) {
    const ChatTurn& turn = turn_of(style, message.role);
    if (message.role == ChatRole::system && style.system_place != SystemPlace::own_turn) {
      system = message.content;
      continue;
    }
    to.text += turn.before;
    const std::size_t begin = to.text.size();
    to.text += turn.lead;
    if (&message == joined && system) to.text.append(*system).append("\n\n");
    to.text += turn.trims ? stripped(message.content) : std::string_view(message.content);
    to.text += turn.behind;
    if (message.role == ChatRole::assistant && to.text.size() > begin)
      to.answers.push_back({begin, to.text.size()});
    to.text += turn.gap;
  }
}

}  // namespace

void render_chat(const ChatTemplate& style, const Conversation& messages, RenderedChat& to) {
  render_messages(style, messages, to);
  to.text += style.end;
}

std::string render_prompt(const ChatTemplate& style, const Conversation& messages) {
  RenderedChat chat;
  render_messages(style, messages, chat);
  return chat.text + style.assistant.before;
}

}  // namespace tandem
