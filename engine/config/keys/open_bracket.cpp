#include "engine/config/keys/open_bracket.h"

#include <string>
#include <vector>

namespace tandem {
namespace {

class Scan {
 public:
  Scan(std::string_view text, int line, int column)
      : text_(text), end_line_(line), end_column_(column) {}

  std::optional<OpenBracket> run() {
    while (!is_at_end()) {
      const char c = text_[at_];
      if (c == '#') {
        while (!is_at_end() && text_[at_] != '\n') step();
      } else if (c == '"' || c == '\'') {
        const OpenBracket quote{c, line_, column_};
        if (!skip_string(c)) return quote;
      } else {
        if (c == '[' || c == '{') open_.push_back({c, line_, column_});
        if ((c == ']' || c == '}') && !open_.empty()) open_.pop_back();
        step();
      }
    }
    if (open_.empty()) return std::nullopt;
    return open_.back();
  }

 private:
  bool is_at_end() const {
    return at_ >= text_.size() || line_ > end_line_ ||
           (line_ == end_line_ && column_ >= end_column_);
  }

  void step() {
    if (text_[at_++] == '\n') {
      ++line_;
      column_ = 1;
    } else {
      ++column_;
    }
  }

  // False where it does not end before the place, or its line does.
  bool skip_string(char quote) {
    const std::string three(3, quote);
    const bool is_long = text_.substr(at_, 3) == three;
    const std::size_t length = is_long ? 3 : 1;
    for (std::size_t i = 0; i < length && !is_at_end(); ++i) step();
    while (!is_at_end()) {
      if (quote == '"' && text_[at_] == '\\') {
        step();
        if (!is_at_end()) step();
      } else if (is_long ? text_.substr(at_, 3) == three : text_[at_] == quote) {
        for (std::size_t i = 0; i < length && !is_at_end(); ++i) step();
        return true;
      } else if (!is_long && text_[at_] == '\n') {
        return false;
      } else {
        step();
      }
    }
    return false;
  }

  std::string_view text_;
  int end_line_, end_column_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
  std::vector<OpenBracket> open_;
};

}  // namespace

std::optional<OpenBracket> open_bracket(std::string_view text, int line, int column) {
  return Scan(text, line, column).run();
}

}  // namespace tandem
