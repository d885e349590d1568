// Which parts of regular expressions Oniguruma and PCRE2 read alike.
#include <algorithm>

#include "engine/formats/tokenizer/pattern.h"

namespace tandem {
namespace {

constexpr std::size_t longest_pattern = 4096;

/// Whether both libraries have the category. Scripts do not count: PCRE2 also takes those that a
/// character is used in.
bool is_category(std::string_view name) {
  if (name.empty() || name.size() > 2) return false;
  constexpr std::string_view with[] = {"Llmotu", "Mcen", "Ndlo",  "Pcdefios",
                                       "Sckmo",  "Zlps", "Ccfnos"};
  return std::any_of(std::begin(with), std::end(with), [&](std::string_view all) {
    return name[0] == all[0] && (name.size() == 1 || all.substr(1).find(name[1]) != all.npos);
  });
}

class PatternReader {
 public:
  explicit PatternReader(std::string_view expression) : text_(expression) {}

  std::string problem() {
    if (text_.size() > longest_pattern)
      return "more than " + std::to_string(longest_pattern) + " bytes";
    while (at_ < text_.size() && problem_.empty()) step();
    return problem_;
  }

 private:
  bool follows(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void refuse(std::size_t from, std::size_t bytes) {
    problem_ = "`" + std::string(text_.substr(from, bytes)) +
               "` is not among the parts of expressions that are supported";
  }

  void step() {
    const char c = text_[at_];
    if (c == '\\') return escape();
    if (c == '[') return characters();
    if (c == '^' || c == '$') return refuse(at_, 1);
    if (c == '{' && at_ + 1 < text_.size() && text_[at_ + 1] == ',') return refuse(at_, 2);
    if (c == '{') {  // {n}? is {n} or nothing, or a lazy {n}
      const std::size_t end =
          std::min(text_.find_first_not_of("0123456789", at_ + 1), text_.size());
      if (end > at_ + 1 && text_.substr(end).starts_with("}?")) return refuse(at_, end + 2 - at_);
    }
    if (c == '}' && at_ + 1 < text_.size() && text_[at_ + 1] == '+') return refuse(at_, 2);
    if (c == '(' && (follows("(?") || follows("(*"))) {
      for (const std::string_view group : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}) {
        if (!follows(group)) continue;
        at_ += group.size();
        return;
      }
      return refuse(at_, 4);
    }
    ++at_;
  }

  void escape() {
    const std::size_t from = at_++;
    if (at_ == text_.size()) return refuse(from, 1);
    const char c = text_[at_++];
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_letter && !is_digit) return;
    if (c == 'p' || c == 'P') {
      const std::size_t end = text_.find('}', at_);
      if (at_ == text_.size() || text_[at_] != '{' || end == text_.npos) return refuse(from, 8);
      if (!is_category(text_.substr(at_ + 1, end - at_ - 1))) return refuse(from, end + 1 - from);
      at_ = end + 1;
      return;
    }
    if (std::string_view("sSdDrntfx").find(c) == std::string_view::npos) refuse(from, 2);
  }

  void characters() {
    ++at_;
    if (at_ < text_.size() && text_[at_] == '^') ++at_;
    bool first = true;
    while (at_ < text_.size() && (text_[at_] != ']' || first)) {
      if (!problem_.empty()) return;
      if (text_[at_] == '[' || text_[at_] == ']' || follows("&&")) return refuse(at_, 2);
      first = false;
      if (text_[at_] == '\\')
        escape();
      else
        ++at_;
    }
    ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string problem_;
};

}  // namespace

std::string unportable_part(std::string_view expression) {
  return PatternReader(expression).problem();
}

void for_all_of(std::string_view text, std::string_view literal,
                const std::function<void(const TextRange&)>& f) {
  for (std::size_t at = 0; (at = text.find(literal, at)) != std::string_view::npos;) {
    f({at, at + literal.size()});
    at += literal.size();
  }
}

void find_all_of(std::string_view text, std::string_view literal, std::vector<TextRange>& matches) {
  for_all_of(text, literal, [&](const TextRange& match) { matches.push_back(match); });
}

}  // namespace tandem
