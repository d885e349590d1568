// The keys of [data] with kind = "chat".
#include "engine/config/keys/key_visitor.h"
#include "engine/config/kinds/tokenizer_key.h"
#include "engine/config/run_config.h"
#include "engine/data/chat/chat_template.h"

namespace tandem {
namespace {

constexpr std::int64_t longest_sample = 1 << 20;

std::string template_help() {
  std::string help = "how a conversation becomes text: ";
  for (const ChatTemplate& one : all_chat_templates()) help += one.name + " (" + one.models + "), ";
  return help + "or a text for each role";
}

/// A text in which a mark stands for the content of a message.
KeyForm pattern_text(std::string& member) {
  KeyForm text = form(member);
  text.read = [&member](const Found& found) {
    member = found.value.text;
    const std::size_t at = member.find(content_mark);
    if (at == std::string::npos || member.find(content_mark, at + 1) != std::string::npos) {
      found.report("{content} stands for the text of the message", "{content} once",
                   toml_string(member));
    }
  };
  return text;
}

/// A name, or texts for user and assistant.
void check_template(const TableReader& table) {
  const bool has_name = table.find("name") != nullptr;
  for (const char* role : {"system", "user", "assistant"}) {
    const ConfigValue* const text = table.find(role);
    if (text != nullptr && has_name)
      table.report(text->where, role, "either a name or texts for the roles", "", "",
                   "leave one out");
    if (text == nullptr && !has_name && std::string_view(role) != "system")
      table.report(table.where(), role, "this key is missing: without a name each role has a text",
                   "a text with {content} in it");
  }
}

void visit_template(KeyVisitor& v, ChatTemplateConfig& c) {
  v.key("name", text_or_none(c.name), one_of(chat_template_words()), by_default("(none)"),
        "the template of this name");
  v.key("system", pattern_text(c.system), by_default("(none)"), written_if(!c.system.empty()),
        "a text with {content} in it, for messages of this role");
  v.key("user", pattern_text(c.user), by_default("(none)"), written_if(!c.user.empty()),
        "the same for the user");
  v.key("assistant", pattern_text(c.assistant), by_default("(none)"),
        written_if(!c.assistant.empty()), "the same; {content} and what is behind it are learned");
  v.when_read(check_template);
}

void check_system(const TableReader& table, const ChatFiles& c) {
  const bool lacks_turn = c.style.name.empty() && c.style.system.empty();
  if (c.system.empty() || !lacks_turn) return;
  table.report(table.find("system")->where, "system", "data.template has no text for this role",
               "data.template.system");
}

}  // namespace

void visit(KeyVisitor& v, ChatFiles& c) {
  static const std::string help = template_help();
  v.key("tokenizer", tokenizer_path(c.tokenizer), required,
        "the model's tokenizer.json, or its folder");
  v.table(
      "template", [&](KeyVisitor& style) { visit_template(style, c.style); }, required,
      or_only("name", string_value), on_one_line, help);
  v.key("begin", c.begin, by_default("(the template's)"), written_if(c.begin.has_value()),
        "the text before the first message");
  v.key("system", c.system, written_if(!c.system.empty()),
        "the system message of conversations that begin without one; \"\": none");
  v.key("length", c.length, required, between(2, static_cast<double>(longest_sample)),
        "tokens of a sample");
  v.key("too_long", c.too_long,
        "a conversation of more tokens: its end is cut off, it is left out, or an error");
  v.key("pack", c.pack,
        "several conversations in a sample; needs fields made of `positions` and `attention`");
  v.key("pad", c.pad, at_least(0), by_default("(that of the tokenizer)"), written_if(c.pad >= 0),
        "the id that fills samples up; it is 0 in `mask`, and its target is -100");
  v.key("on_bad", c.on_bad, on_bad_help);
  v.when_read([&](const TableReader& table) {
    check_system(table, c);
    if (const ConfigValue* const pad = table.find("pad")) c.pad_where = pad->where;
  });
}

}  // namespace tandem
