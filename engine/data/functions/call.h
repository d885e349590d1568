// A function of a field as it is written, "scale(1/255)": its name and its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct Argument {
  std::string name;  // the name in name=value
  /// A quoted text has one number, which means nothing.
  std::vector<double> numbers;
  bool is_list = false, is_text = false;
  std::string text;  // between quotes; else as the number is written
};

/// A parsed call. What has a name is taken out; `count` then says what the rest has to be. All
/// throw std::invalid_argument, what is wrong.
class Call {
 public:
  explicit Call(std::string_view text);

  const std::string& name() const { return name_; }
  /// The whole call, without spaces around it.
  const std::string& text() const { return text_; }

  std::optional<double> take_number(std::string_view name);
  /// One number, or a list of them.
  std::optional<std::vector<double>> take_numbers(std::string_view name);
  std::optional<std::string> take_text(std::string_view name);
  /// Refuses all but `least` to `most` arguments without a name.
  void count(std::size_t least, std::size_t most, const std::string& usage,
             bool takes_text = false) const;

  std::size_t size() const { return all_.size(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  const Argument& operator[](std::size_t i) const { return all_[i]; }
  double number(std::size_t i) const;
  /// All numbers of all arguments, lists or not.
  std::vector<double> numbers() const;

 private:
  std::vector<Argument>::iterator find(std::string_view name);

  std::string name_, text_;
  std::vector<Argument> all_;
};

/// The number as an integer, of at least `least`.
std::int64_t whole(double value, std::int64_t least, const char* what);

/// As a configuration has a call with words: `classes('rose', "it's a lily")`. No word may hold
/// both kinds of quotes.
std::string call_text(std::string_view name, const std::vector<std::string>& words);

}  // namespace tandem
