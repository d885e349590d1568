#include "engine/data/json_row.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tandem {

static constexpr int most_row_depth = 16;

/// Receives the values of a line one after the other. A value that it does not accept ends the
/// reading.
class JsonRow::Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Reader(JsonRow& row) : row_(row) {}
  Problem problem;

  bool null() override { return add("", false); }
  bool boolean(bool value) override { return add(value ? "1" : "0", false); }
  bool number_integer(number_integer_t value) override { return add(std::to_string(value), false); }
  bool number_unsigned(number_unsigned_t value) override {
    return add(std::to_string(value), false);
  }
  bool number_float(number_float_t, const string_t& text) override { return add(text, false); }
  bool string(string_t& text) override { return add(text, true); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (depth_ > 0 && key_ >= 0) return refuse("an object, where a cell is wanted");
    return enter();
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return refuse("not an object");
    if (depth_ > 1 && key_ >= 0) return refuse("a list in a list, where a cell is wanted");
    return enter();
  }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (depth_ > 1) return true;
    const auto found = std::find(row_.keys_.begin(), row_.keys_.end(), name);
    key_ = found == row_.keys_.end() ? -1 : found - row_.keys_.begin();
    first_ = true;
    if (key_ < 0) return true;
    char& is_there = row_.found_[static_cast<std::size_t>(key_)];
    if (is_there != 0) return refuse("this key is there twice");
    is_there = 1;
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::json::exception& error) override {
    const bool is_text = dynamic_cast<const nlohmann::json::parse_error*>(&error) != nullptr;
    problem.message = is_text ? "this line is not JSON (at byte " + std::to_string(byte) + " of it)"
                              : "this line is not JSON: a number is out of range";
    return false;
  }

 private:
  bool refuse(std::string message) {
    problem.message = std::move(message);
    if (key_ >= 0) {
      problem.message += ": key `" + row_.keys_[static_cast<std::size_t>(key_)] + "`";
      problem.expected = "a number, a text, or a list of those";
    }
    return false;
  }
  bool enter() {
    if (++depth_ > most_row_depth) return refuse("the line is nested too deeply");
    return true;
  }
  bool leave() {
    if (--depth_ == 1) key_ = -1;
    return true;
  }
  bool add(std::string_view text, bool is_string) {
    if (depth_ == 0) return refuse("not an object");
    if (key_ < 0) return true;
    std::string& cell = row_.texts_[static_cast<std::size_t>(key_)];
    if (depth_ == 1) {
      cell = text;
      key_ = -1;
      return true;
    }
    if (is_string && text.find(',') != std::string_view::npos)
      return refuse("a text with a comma in a list, whose values commas separate");
    if (!first_) cell += ',';
    first_ = false;
    cell += text;
    return true;
  }

  JsonRow& row_;
  int depth_ = 0;
  std::ptrdiff_t key_ = -1;  // index of the key of the next value; -1: it is not needed
  bool first_ = true;        // the value is the first of its list
};

JsonRow::JsonRow(std::vector<std::string> keys, std::vector<char> may_lack)
    : keys_(std::move(keys)), may_lack_(std::move(may_lack)) {
  may_lack_.resize(keys_.size());
  texts_.resize(keys_.size());
  found_.resize(keys_.size());
  cells_.resize(keys_.size());
}

JsonRow::Problem JsonRow::take(std::string_view line) {
  std::fill(found_.begin(), found_.end(), char{0});
  for (std::string& text : texts_) text.clear();
  std::fill(cells_.begin(), cells_.end(), std::string_view());
  Reader reader(*this);
  const bool is_whole = nlohmann::json::sax_parse(line.begin(), line.end(), &reader);
  if (!is_whole && reader.problem.message.empty()) reader.problem.message = "this line is not JSON";
  if (!is_whole) return std::move(reader.problem);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (found_[i] == 0 && may_lack_[i] == 0)
      return {"the object has no key `" + keys_[i] + "`", "", ""};
    cells_[i] = texts_[i];
  }
  return {};
}

}  // namespace tandem
