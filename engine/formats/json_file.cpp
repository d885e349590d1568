#include "engine/formats/json_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include <fmt/format.h>

#include "engine/formats/files.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

[[noreturn]] void fail_json(const JsonSource& source, std::string keys, std::string message,
                            std::string expected = "", std::string got = "", int line = 0) {
  throw Error(source.kind, {.message = std::move(message),
                            .file = source.file,
                            .line = line,
                            .path = std::move(keys),
                            .expected = std::move(expected),
                            .got = std::move(got),
                            .fix = source.fix});
}

// Looks at a text before anything is made of it: counts and compares, so that nothing grows beyond
// the limits. The parser's own callback looks through an object whenever one inside of it ends.
class Watch final : public nlohmann::json_sax<Json> {
 public:
  Watch(const JsonSource& source, std::string_view text, const JsonLimits& limits)
      : source_(source), text_(text), limits_(limits) {}

  bool null() override { return see_value(); }
  bool boolean(bool) override { return see_value(); }
  bool number_integer(number_integer_t) override { return see_value(); }
  bool number_unsigned(number_unsigned_t) override { return see_value(); }
  bool number_float(number_float_t, const string_t&) override { return see_value(); }
  bool string(string_t&) override { return see_value(); }
  bool binary(binary_t&) override { return see_value(); }
  bool start_object(std::size_t) override {
    see_value();
    ++depth_;
    names_.emplace_back();
    return true;
  }
  bool end_object() override {
    --depth_;
    names_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    see_value();
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (!names_.back().insert(name).second)
      fail_json(source_, name, source_.what + " has this name twice");
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const Json::exception& error) override {
    if (dynamic_cast<const Json::parse_error*>(&error) == nullptr)  // no type holds it
      fail_json(source_, "", source_.what + " is not JSON: a number is out of range");
    const std::size_t at = std::min(byte, text_.size());
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    fail_json(source_, "",
              fmt::format("{} is not JSON (at byte {})", source_.what, source_.offset + byte), "",
              "",
              source_.offset == 0 ? static_cast<int>(std::min<std::ptrdiff_t>(line, 1 << 30)) : 0);
  }

 private:
  bool see_value() {
    if (depth_ > limits_.depth) fail_json(source_, "", source_.what + " is nested too deeply");
    if (++values_ > limits_.values) {
      fail_json(source_, "", source_.what + " has too many values",
                fmt::format("at most {}", limits_.values));
    }
    return true;
  }

  const JsonSource& source_;
  std::string_view text_;
  const JsonLimits& limits_;
  int depth_ = 0;  // objects and lists around
  std::size_t values_ = 0;
  std::vector<std::set<std::string>> names_;
};

Json parsed(const JsonSource& source, std::string_view text, const JsonLimits& limits) {
  Watch watch(source, text, limits);
  Json::sax_parse(text.begin(), text.end(), &watch);
  return Json::parse(text.begin(), text.end());
}

const Json& json_of(const void* value) { return *static_cast<const Json*>(value); }

std::string in_quotes(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Without control characters, which would end or hide a line.
bool is_plain(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string range_text(double least, double most) {
  return fmt::format("a number from {:g} to {:g}", least, most);
}

}  // namespace

struct JsonFile::Document {
  JsonSource source;
  Json root;
};

JsonFile::JsonFile(const std::string& path, const JsonLimits& limits)
    : JsonFile(JsonSource{.file = path}, read_file(path, limits.bytes), limits) {}

JsonFile::JsonFile(JsonSource source, std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    fail_json(source, "", source.what + " is too large",
              fmt::format("at most {} bytes", limits.bytes), fmt::format("{} bytes", text.size()));
  }
  Json root = parsed(source, text, limits);
  document_ = std::make_unique<const Document>(Document{std::move(source), std::move(root)});
}

JsonFile::~JsonFile() = default;
JsonFile::JsonFile(JsonFile&&) noexcept = default;
JsonFile& JsonFile::operator=(JsonFile&&) noexcept = default;

JsonItem JsonFile::root() const { return {&document_->source, &document_->root, ""}; }

bool JsonItem::is_object() const { return json_of(value_).is_object(); }
bool JsonItem::is_list() const { return json_of(value_).is_array(); }
bool JsonItem::is_null() const { return json_of(value_).is_null(); }
std::size_t JsonItem::size() const {
  return json_of(value_).is_structured() ? json_of(value_).size() : 0;
}

std::string JsonItem::shown() const {
  constexpr std::size_t longest = 60;
  if (json_of(value_).is_object()) return "an object";
  if (json_of(value_).is_array()) return "a list";
  if (json_of(value_).is_string()) {
    const std::string& whole = json_of(value_).get_ref<const std::string&>();
    std::string text = in_quotes(whole.substr(0, longest));
    return whole.size() > longest ? text + "…" : text;
  }
  return json_of(value_).dump();
}

JsonItem JsonItem::below(const std::string& key, const void* value) const {
  const std::string shown = is_plain(key) ? key : in_quotes(key);
  return {source_, value, keys_.empty() ? shown : keys_ + "." + shown};
}

std::optional<JsonItem> JsonItem::find(std::string_view key) const {
  if (!json_of(value_).is_object()) return std::nullopt;
  const auto found = json_of(value_).find(key);
  if (found == json_of(value_).end()) return std::nullopt;
  return below(std::string(key), &*found);
}

std::optional<std::uint64_t> JsonItem::as_natural() const {
  if (!json_of(value_).is_number_unsigned()) return std::nullopt;
  return json_of(value_).get<std::uint64_t>();
}

std::optional<double> JsonItem::as_number() const {
  if (!json_of(value_).is_number()) return std::nullopt;
  return json_of(value_).get<double>();
}

std::optional<std::string> JsonItem::as_text() const {
  if (!json_of(value_).is_string()) return std::nullopt;
  return json_of(value_).get<std::string>();
}

std::vector<JsonItem> JsonItem::items() const {
  std::vector<JsonItem> result;
  if (!json_of(value_).is_array()) return result;
  for (const Json& value : json_of(value_)) {
    result.push_back({source_, &value, fmt::format("{}[{}]", keys_, result.size())});
  }
  return result;
}

std::vector<std::pair<std::string, JsonItem>> JsonItem::members() const {
  std::vector<std::pair<std::string, JsonItem>> result;
  if (!json_of(value_).is_object()) return result;
  for (const auto& [name, value] : json_of(value_).items())
    result.emplace_back(name, below(name, &value));
  return result;
}

JsonItem JsonItem::at(std::string_view key) const {
  if (!is_object()) refuse("not an object");
  if (std::optional<JsonItem> found = find(key)) return *found;
  fail_json(*source_, keys_.empty() ? std::string(key) : keys_ + "." + std::string(key),
            source_->what + " lacks this value");
}

std::uint64_t JsonItem::natural(std::uint64_t least, std::uint64_t most) const {
  const std::optional<std::uint64_t> value = as_natural();
  if (!value || *value < least || *value > most) {
    refuse("not a value that can be here", fmt::format("an integer from {} to {}", least, most));
  }
  return *value;
}

double JsonItem::number(double least, double most) const {
  const std::optional<double> value = as_number();
  if (!value || !(*value >= least && *value <= most))
    refuse("not a value that can be here", range_text(least, most));
  return *value;
}

bool JsonItem::boolean() const {
  if (!json_of(value_).is_boolean()) refuse("not a value that can be here", "true or false");
  return json_of(value_).get<bool>();
}

std::string JsonItem::text(std::size_t most_bytes) const {
  std::optional<std::string> value = as_text();
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (!value || value->size() > most_bytes ||
      std::any_of(value->begin(), value->end(), is_control)) {
    refuse("not a value that can be here",
           fmt::format("a text of at most {} bytes, without control characters", most_bytes));
  }
  return std::move(*value);
}

std::string JsonItem::any_text() const {
  std::optional<std::string> value = as_text();
  if (!value) refuse("not a value that can be here", "a text");
  return std::move(*value);
}

std::string JsonItem::sha256() const {
  std::optional<std::string> value = as_text();
  if (!value || value->size() != 64 ||
      value->find_first_not_of("0123456789abcdef") != std::string::npos) {
    refuse("not a hash", "64 hexadecimal digits");
  }
  return std::move(*value);
}

std::vector<JsonItem> JsonItem::list() const {
  if (!is_list()) refuse("not a value that can be here", "a list");
  return items();
}

std::vector<std::pair<std::string, JsonItem>> JsonItem::object() const {
  if (!is_object()) refuse("not a value that can be here", "an object");
  return members();
}

void JsonItem::refuse(std::string message, std::string expected) const {
  fail_json(*source_, keys_, std::move(message), std::move(expected), shown());
}

}  // namespace tandem
