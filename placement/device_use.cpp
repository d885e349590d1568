#include "placement/device_use.h"

#include <charconv>

#include "engine/graph/text.h"

namespace tandem {
namespace {

constexpr int largest_number = 63;
constexpr std::string_view own = "local";  // instead of a number

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string use_of(const DeviceFamily& family, std::string_view number) {
  return std::string(family.kind).append(":").append(number);
}

// "local" or the number of a use; "" where it is none of the family.
std::string_view number_in(const DeviceFamily& family, std::string_view use) {
  const std::string_view number = use.substr(family.kind.size() + 1);
  const bool is_own = number == own && !family.name.empty();
  return is_own || device_number(number) ? number : "";
}

// "a, b or c"
std::string alternatives(const std::vector<std::string>& texts) {
  std::string text;
  for (std::size_t i = 0; i < texts.size(); ++i)
    text += (i == 0 ? "" : i + 1 < texts.size() ? ", " : " or ") + texts[i];
  return text;
}

}  // namespace

std::optional<int> device_number(std::string_view text) {
  const bool padded = text.size() > 1 && text.front() == '0';
  if (!is_digits(text) || padded) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > largest_number) return std::nullopt;
  return number;
}

bool is_device_use(std::string_view text) {
  if (text == "cpu") return true;
  const DeviceFamily* family = family_of_use(text);
  return family && !number_in(*family, text).empty();
}

std::string builtin_use(std::string_view name) {
  if (name == "cpu") return "cpu";
  for (const DeviceFamily& family : device_families()) {
    if (family.name.empty()) {
      if (&family == family_of_use(name) && is_device_use(name)) return std::string(name);
    } else if (name.starts_with(family.name)) {
      const std::string_view number = name.substr(family.name.size());
      if (number.empty()) return use_of(family, own);
      if (device_number(number)) return use_of(family, number);
    }
  }
  return "";
}

std::string builtin_name(std::string_view use) {
  const DeviceFamily* family = family_of_use(use);
  if (!family || family->name.empty()) return "";
  const std::string_view number = number_in(*family, use);
  if (number.empty()) return "";
  return std::string(family->name).append(number == own ? "" : number);
}

std::string numbered_use(const std::string& use, int local) {
  const DeviceFamily* family = family_of_use(use);
  return family && number_in(*family, use) == own ? use_of(*family, std::to_string(local)) : use;
}

int number_of_use(std::string_view use) {
  return device_number(use.substr(use.find(':') + 1)).value_or(0);
}

std::optional<WrongNumber> wrong_number(std::string_view text,
                                        const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    if (!text.starts_with(prefix)) continue;
    std::string_view number = text.substr(prefix.size());
    if (device_number(number)) continue;
    const bool negative = number.starts_with('-');
    if (!is_digits(negative ? number.substr(1) : number)) continue;
    WrongNumber wrong{.prefix = prefix, .mended = ""};
    while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
    if (device_number(number)) wrong.mended = wrong.prefix + std::string(number);
    return wrong;
  }
  return std::nullopt;
}

std::vector<std::string> name_prefixes() {
  std::vector<std::string> prefixes;
  for (const DeviceFamily& family : device_families())
    prefixes.push_back(family.name.empty() ? use_of(family, "") : std::string(family.name));
  return prefixes;
}

std::vector<std::string> use_prefixes() {
  std::vector<std::string> prefixes;
  for (const DeviceFamily& family : device_families()) prefixes.push_back(use_of(family, ""));
  return prefixes;
}

std::vector<std::string> known_names() {
  std::vector<std::string> names{"cpu"};
  for (const DeviceFamily& family : device_families()) {
    if (!family.name.empty()) names.emplace_back(family.name);
    names.push_back(family.name.empty() ? use_of(family, "0") : std::string(family.name) + "0");
  }
  return names;
}

std::vector<std::string> known_uses() {
  std::vector<std::string> uses{"cpu"};
  for (const DeviceFamily& family : device_families()) {
    if (!family.name.empty()) uses.push_back(use_of(family, own));
    uses.push_back(use_of(family, "0"));
  }
  return uses;
}

std::string default_accelerator() {
  for (const DeviceFamily& family : device_families()) {
    if (!family.name.empty()) return std::string(family.name);
  }
  return "";
}

std::string use_without_hardware(int number) {
  for (const DeviceFamily& family : device_families()) {
    if (!family.is_hardware) return use_of(family, std::to_string(number));
  }
  return "";
}

std::string use_forms(const std::string& own_remark) {
  std::vector<std::string> forms{"cpu"};
  for (const DeviceFamily& family : device_families()) {
    if (!family.name.empty()) forms.push_back(use_of(family, own) + own_remark);
    forms.push_back(use_of(family, "N"));
  }
  return alternatives(forms);
}

std::string name_ranges() {
  std::vector<std::string> ranges;
  for (const DeviceFamily& family : device_families()) {
    const std::string name(family.name), first = name.empty() ? use_of(family, "") : name;
    if (!name.empty()) ranges.push_back("`" + name + "` (this process's own accelerator)");
    ranges.push_back("`" + first + "0` to `" + first + std::to_string(largest_number) + "`");
  }
  return joined(ranges);
}

std::string noun_with_article(const DeviceFamily& family) {
  const bool vowel = std::string_view("aeiou").find(family.noun.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + std::string(family.noun);
}

std::string nouns_of(bool DeviceFamily::*property, bool with_article) {
  std::vector<std::string> nouns;
  for (const DeviceFamily& family : device_families()) {
    if (family.*property)
      nouns.push_back(with_article ? noun_with_article(family) : std::string(family.noun));
  }
  return alternatives(nouns);
}

}  // namespace tandem
