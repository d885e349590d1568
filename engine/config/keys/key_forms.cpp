#include "engine/config/keys/key_forms.h"

namespace tandem {
namespace {

template <class T>
KeyForm integer(T& member) {
  return {integer_value, [&](const Found& found) { member = static_cast<T>(found.value.integer); },
          [&] { return std::to_string(static_cast<std::int64_t>(member)); }};
}

KeyForm text(std::string& member, unsigned type) {
  return {type, [&](const Found& found) { member = found.value.text; },
          [&] { return toml_string(member); }};
}

}  // namespace

void Found::report(std::string message, std::string expected, std::string got,
                   std::string fix) const {
  table.report(value.where, key, std::move(message), std::move(expected), std::move(got),
               std::move(fix));
}

KeyForm form(bool& member) {
  return {boolean_value, [&](const Found& found) { member = found.value.boolean; },
          [&] { return std::string(member ? "true" : "false"); }};
}

KeyForm form(double& member) {
  return {number_value, [&](const Found& found) { member = found.value.number; },
          [&] { return toml_number(member); }};
}

KeyForm form(std::int64_t& member) { return integer(member); }
KeyForm form(int& member) { return integer(member); }
KeyForm form(std::uint64_t& member) { return integer(member); }
KeyForm form(std::string& member) { return text(member, string_value); }
KeyForm selector(std::string& member) { return text(member, selector_value); }

KeyForm text_or_none(std::string& member) {
  KeyForm result = text(member, string_value);
  result.write = [&] { return member.empty() ? std::string() : toml_string(member); };
  return result;
}

KeyForm path(std::string& member) {
  return {path_value,
          [&](const Found& found) {
            member = found.value.text.empty() ? "" : found.table.resolve(found.value);
          },
          text_or_none(member).write};
}

KeyForm form(std::vector<std::string>& member) {
  return {list_value,
          [&](const Found& found) {
            for (const ConfigValue& item : found.value.items) {
              if (item.kind == ConfigValue::Kind::string) member.push_back(item.text);
            }
          },
          [&] { return toml_list_of_strings(member); }};
}

KeyForm form(std::vector<double>& member) {
  return {number_value | list_value,
          [&](const Found& found) {
            if (found.value.kind != ConfigValue::Kind::list) member = {found.value.number};
            for (const ConfigValue& item : found.value.items) member.push_back(item.number);
          },
          [&] {
            std::vector<std::string> texts;
            for (const double value : member) texts.push_back(toml_number(value));
            return toml_list(texts);
          }};
}

KeyForm form(Duration& member) {
  return {duration_value,
          [&](const Found& found) { member = parse_duration(found.value.text).value_or(member); },
          [&] { return toml_string(to_string(member)); }};
}

KeyForm form(std::vector<Duration>& member) {
  return {list_value,
          [&](const Found& found) {
            member.clear();
            for (const ConfigValue& item : found.value.items) {
              if (item.kind == ConfigValue::Kind::string)
                member.push_back(parse_duration(item.text).value_or(Duration{}));
            }
          },
          [&] {
            std::vector<std::string> texts;
            for (const Duration& duration : member) texts.push_back(to_string(duration));
            return member.empty() ? std::string() : toml_list_of_strings(std::move(texts));
          }};
}

KeyForm word(std::string_view words, std::function<std::size_t()> number,
             std::function<void(std::size_t)> take) {
  return {string_value,
          [=, all = words_of(words)](const Found& found) {
            for (std::size_t i = 0; i < all.size(); ++i) {
              if (all[i] == found.value.text) take(i);
            }
          },
          [=, all = words_of(words)] { return toml_string(all[number()]); }, std::string(words)};
}

std::string toml_list(const std::vector<std::string>& values) {
  std::string text = "[";
  for (const std::string& value : values) text += (text.size() == 1 ? " " : ", ") + value;
  return text + (values.empty() ? "]" : " ]");
}

std::string toml_list_of_strings(std::vector<std::string> values) {
  for (std::string& value : values) value = toml_string(value);
  return toml_list(values);
}

std::string toml_table(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text = "{";
  for (const auto& [key, value] : values)
    text += (text.size() == 1 ? " " : ", ") + key + " = " + value;
  return text + (values.empty() ? "}" : " }");
}

}  // namespace tandem
