#include "engine/data/functions/call.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace tandem {
namespace {

class CallParser {
 public:
  explicit CallParser(std::string_view text) : text_(text) {
    skip();
    text_.remove_prefix(at_);
    at_ = 0;
    while (text_.ends_with(' ')) text_.remove_suffix(1);
  }

  /// The whole call, without spaces around it.
  std::string text() const { return std::string(text_); }

  std::string name() {
    std::string word = identifier();
    if (word.empty()) throw std::invalid_argument("not a function");
    return word;
  }

  std::vector<Argument> arguments() {
    std::vector<Argument> result;
    if (!accept('(')) {
      finish();
      return result;
    }
    while (!accept(')')) {
      Argument argument;
      skip();
      const std::size_t before = at_;
      argument.name = identifier();
      if (!argument.name.empty() && !accept('=')) {
        throw std::invalid_argument("`" + argument.name + "` is not a number");
      }
      if (argument.name.empty()) at_ = before;
      skip();
      const std::size_t start = at_;
      if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
        argument.is_text = true;
        argument.text = quoted();
        argument.numbers.push_back(0);
      } else if (accept('[')) {
        argument.is_list = true;
        while (!accept(']')) {
          argument.numbers.push_back(number());
          if (accept(']')) break;
          expect(',');
        }
      } else {
        argument.numbers.push_back(number());
        argument.text = std::string(text_.substr(start, at_ - start));
      }
      result.push_back(std::move(argument));
      if (accept(')')) break;
      expect(',');
    }
    finish();
    return result;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw std::invalid_argument(std::string("a `") + c + "` is missing");
  }
  void finish() {
    skip();
    if (at_ < text_.size())
      throw std::invalid_argument("`" + std::string(text_.substr(at_)) + "` does not belong there");
  }
  std::string quoted() {
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) throw std::invalid_argument("a quote is not closed");
    std::string inside(text_.substr(at_, end - at_));
    at_ = end + 1;
    return inside;
  }
  std::string identifier() {
    skip();
    const std::size_t start = at_;
    const auto letter = [&](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
             (at_ > start && c >= '0' && c <= '9');
    };
    while (at_ < text_.size() && letter(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  double simple_number() {
    skip();
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range)
      throw std::invalid_argument("the number " + std::string(begin, end) + " is out of range");
    if (error != std::errc() || !std::isfinite(value))
      throw std::invalid_argument("a number is missing");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  double number() {
    const double value = simple_number();
    const std::size_t end = at_;
    if (!accept('/')) {
      at_ = end;  // spaces are no part of the number
      return value;
    }
    const double divisor = simple_number();
    if (divisor == 0) throw std::invalid_argument("division by zero");
    return value / divisor;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::int64_t whole(double value, std::int64_t least, const char* what) {
  if (value != std::floor(value) || std::abs(value) > 1e15 || value < static_cast<double>(least)) {
    throw std::invalid_argument(std::string(what) + " is a whole number, at least " +
                                std::to_string(least));
  }
  return static_cast<std::int64_t>(value);
}

Call::Call(std::string_view text) {
  CallParser parser(text);
  text_ = parser.text();
  name_ = parser.name();
  all_ = parser.arguments();
}

std::vector<Argument>::iterator Call::find(std::string_view name) {
  return std::find_if(all_.begin(), all_.end(), [&](const Argument& a) { return a.name == name; });
}

std::optional<double> Call::take_number(std::string_view name) {
  const auto found = find(name);
  if (found == all_.end()) return std::nullopt;
  if (found->is_list || found->is_text)
    throw std::invalid_argument("`" + found->name + "` is one number");
  const double value = found->numbers[0];
  all_.erase(found);
  return value;
}

std::optional<std::vector<double>> Call::take_numbers(std::string_view name) {
  const auto found = find(name);
  if (found == all_.end()) return std::nullopt;
  if (found->is_text)
    throw std::invalid_argument("`" + found->name + "` is a number, or a list of numbers");
  std::vector<double> numbers = std::move(found->numbers);
  all_.erase(found);
  return numbers;
}

std::optional<std::string> Call::take_text(std::string_view name) {
  const auto found = find(name);
  if (found == all_.end()) return std::nullopt;
  if (!found->is_text) throw std::invalid_argument("`" + found->name + "` is a text in quotes");
  std::string text = std::move(found->text);
  all_.erase(found);
  return text;
}

void Call::count(std::size_t least, std::size_t most, const std::string& usage,
                 bool takes_text) const {
  for (const Argument& argument : all_) {
    if (argument.is_text && argument.name.empty() && !takes_text)
      throw std::invalid_argument("a number is needed, not a text: write " + usage);
    if (!argument.name.empty())
      throw std::invalid_argument("unknown option `" + argument.name + "`: write " + usage);
  }
  if (all_.size() < least || all_.size() > most) throw std::invalid_argument("write " + usage);
}

double Call::number(std::size_t i) const {
  if (all_[i].is_list) throw std::invalid_argument("a number is needed, not a list");
  return all_[i].numbers[0];
}

std::vector<double> Call::numbers() const {
  std::vector<double> all;
  for (const Argument& argument : all_)
    all.insert(all.end(), argument.numbers.begin(), argument.numbers.end());
  return all;
}

std::string call_text(std::string_view name, const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const char quote = word.find('\'') == std::string::npos ? '\'' : '"';
    text += (text.empty() ? "" : ", ") + (quote + word + quote);
  }
  return std::string(name) + "(" + text + ")";
}

}  // namespace tandem
