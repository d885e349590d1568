#include "engine/graph/selector.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <regex>

#include "engine/graph/error.h"

namespace tandem {
namespace {

bool is_border(char c) { return c == '.' || c == ':'; }

struct Token;
using Sequence = std::vector<Token>;

struct Token {
  enum class Kind : std::uint8_t {
    literal,
    one,             // ?
    star,            // *
    everything,      // ** as the whole path, or before or after a `:`
    leading_parts,   // **. at the start of a part: nothing, or anything that ends in `.`
    trailing_parts,  // .** at the end: nothing, or `.` or `:` and anything
    middle_parts,    // .**. : `.`, or `.` anything `.`
    range,
    set,
  };
  Kind kind = Kind::literal;
  std::string text;  // a literal's characters
  std::uint64_t low = 0, high = 0;
  std::vector<Sequence> choices;
};

[[noreturn]] void fail(std::string_view selector, std::string message, std::string fix = "") {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .path = std::string(selector),
                                           .fix = std::move(fix)});
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Sequence parse() {
    if (text_.empty()) fail(text_, "an empty selector matches nothing", "`**` means everything");
    return sequence(text_, 0);
  }

 private:
  Sequence sequence(std::string_view text, int depth) const {
    if (depth > 8) fail(text_, "sets are nested too deeply");
    Sequence tokens;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '*' && text.substr(i, 2) == "**") {
        double_star(text, i, tokens);
        ++i;
        if (i + 1 < text.size() && text[i + 1] == '.') ++i;  // belongs to the token
      } else if (c == '*') {
        tokens.push_back({.kind = Token::Kind::star});
      } else if (c == '?') {
        tokens.push_back({.kind = Token::Kind::one});
      } else if (c == '{') {
        const std::size_t end = closing(text, i);
        tokens.push_back(braces(text.substr(i + 1, end - i - 1), depth));
        i = end;
      } else if (c == '}') {
        fail(text_, "a } without its {");
      } else {
        if (tokens.empty() || tokens.back().kind != Token::Kind::literal)
          tokens.push_back({.kind = Token::Kind::literal});
        tokens.back().text += c;
      }
    }
    return tokens;
  }

  // `at` is where ** stands; the literal `.` before it is already in `tokens`.
  void double_star(std::string_view text, std::size_t at, Sequence& tokens) const {
    const bool starts = at == 0, ends = at + 2 == text.size();
    const char previous = starts ? 0 : text[at - 1], next = ends ? 0 : text[at + 2];
    if ((!starts && !is_border(previous)) || (!ends && !is_border(next))) {
      fail(text_, "** must be a whole part between dots", "use * inside a part");
    }
    Token::Kind kind = Token::Kind::everything;
    if (next == '.') kind = Token::Kind::leading_parts;
    if (previous == '.') {
      std::string& before = tokens.back().text;
      if (before.size() > 1) {
        before.pop_back();
      } else {  // the whole literal, or a ** that the dot belongs to
        tokens.pop_back();
      }
      kind = next == '.' ? Token::Kind::middle_parts : Token::Kind::trailing_parts;
    }
    tokens.push_back({.kind = kind});
  }

  std::size_t closing(std::string_view text, std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
      depth += text[i] == '{';
      depth -= text[i] == '}';
      if (depth == 0) return i;
    }
    fail(text_, "a { without its }");
  }

  Token braces(std::string_view inside, int depth) const {
    const std::size_t dots = inside.find("..");
    if (dots != std::string_view::npos && inside.find_first_of(",{") == std::string_view::npos) {
      Token token{.kind = Token::Kind::range};
      const auto low = number(inside.substr(0, dots)), high = number(inside.substr(dots + 2));
      if (!low || !high || *low > *high) {
        fail(text_, "a range is two numbers, the smaller one first", "like {0..5}");
      }
      token.low = *low;
      token.high = *high;
      return token;
    }
    Token token{.kind = Token::Kind::set};
    std::size_t start = 0;
    int nesting = 0;
    for (std::size_t i = 0; i <= inside.size(); ++i) {
      if (i < inside.size()) {
        nesting += inside[i] == '{';
        nesting -= inside[i] == '}';
        if (inside[i] != ',' || nesting > 0) continue;
      }
      token.choices.push_back(sequence(inside.substr(start, i - start), depth + 1));
      start = i + 1;
    }
    return token;
  }

  static std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size())
      return std::nullopt;
    return value;
  }

  std::string_view text_;
};

// All places in a path that a pattern can have reached: time and memory stay linear in pattern
// times path.
using Places = std::vector<bool>;

Places advance(const Sequence& tokens, Places places, std::string_view path);

void advance_literal(const std::string& text, const Places& from, std::string_view path,
                     Places& to) {
  for (std::size_t i = 0; i + text.size() <= path.size(); ++i) {
    if (from[i] && path.compare(i, text.size(), text) == 0) to[i + text.size()] = true;
  }
}

Places advance(const Token& token, const Places& from, std::string_view path) {
  const std::size_t end = path.size();
  Places to(end + 1);
  switch (token.kind) {
    case Token::Kind::literal:
      advance_literal(token.text, from, path, to);
      break;
    case Token::Kind::one:
      for (std::size_t i = 0; i < end; ++i) to[i + 1] = from[i] && !is_border(path[i]);
      break;
    case Token::Kind::star:
      to = from;
      for (std::size_t i = 0; i < end; ++i) to[i + 1] = to[i + 1] || (to[i] && !is_border(path[i]));
      break;
    case Token::Kind::everything:
    case Token::Kind::leading_parts:
    case Token::Kind::trailing_parts:
    case Token::Kind::middle_parts: {
      const bool needs_start =
          token.kind == Token::Kind::trailing_parts || token.kind == Token::Kind::middle_parts;
      const bool needs_end =
          token.kind == Token::Kind::leading_parts || token.kind == Token::Kind::middle_parts;
      if (token.kind != Token::Kind::middle_parts) to = from;
      bool inside = false;
      for (std::size_t i = 0; i <= end; ++i) {
        if (inside && (!needs_end || path[i - 1] == '.')) to[i] = true;
        const bool border = i < end && (path[i] == '.' || (path[i] == ':' && !needs_end));
        inside = inside || (from[i] && (!needs_start || border));
      }
      break;
    }
    case Token::Kind::range:
      for (std::size_t i = 0; i < end; ++i) {
        if (!from[i]) continue;
        std::uint64_t value = 0;
        for (std::size_t j = i; j < end && j < i + 19 && path[j] >= '0' && path[j] <= '9'; ++j) {
          value = value * 10 + static_cast<std::uint64_t>(path[j] - '0');
          if (value >= token.low && value <= token.high) to[j + 1] = true;
          if (value == 0) break;  // no leading zeros
        }
      }
      break;
    case Token::Kind::set:
      for (const Sequence& choice : token.choices) {
        if (choice.size() == 1 && choice[0].kind == Token::Kind::literal) {
          advance_literal(choice[0].text, from, path, to);
          continue;
        }
        const Places reached = advance(choice, from, path);
        for (std::size_t i = 0; i <= end; ++i) to[i] = to[i] || reached[i];
      }
      break;
  }
  return to;
}

Places advance(const Sequence& tokens, Places places, std::string_view path) {
  for (const Token& token : tokens) places = advance(token, places, path);
  return places;
}

}  // namespace

struct Selector::Pattern {
  std::string prefix;  // the literal characters in front; most paths fail there
  Sequence tokens;     // what follows
  std::optional<std::regex> regex;
};

constexpr std::size_t longest_expression = 1000;
// Limit of an expression's length times all its {n} counts: the automaton's states grow with it.
constexpr std::size_t largest_expression = 4000;

// The product of the largest numbers in the expression's braces, up to a bound.
std::size_t product_of_counts(std::string_view expression) {
  std::size_t product = 1;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] == '\\') {
      ++i;
    } else if (expression[i] == '{') {
      std::size_t count = 1;
      for (++i; i < expression.size() && expression[i] != '}'; ++i) {
        std::size_t number = 0;
        const auto [end, error] =
            std::from_chars(expression.data() + i, expression.data() + expression.size(), number);
        if (error == std::errc::result_out_of_range) number = largest_expression;
        count = std::max(count, number);
        if (end != expression.data() + i) i = static_cast<std::size_t>(end - expression.data()) - 1;
      }
      product *= std::min(count, largest_expression);
      if (product > largest_expression) return product;
    }
  }
  return product;
}

// Whether one look-ahead is inside of another one. The automaton starts the inner one again at
// every place that the outer one reaches: with a depth of n the time is the path's length to the
// power of n.
bool nests_look_aheads(std::string_view expression) {
  std::vector<bool> groups;  // the open ones: whether it is a look-ahead
  bool is_class = false;     // inside of []
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '\\') {
      ++i;
    } else if (is_class || c == '[') {
      is_class = c != ']';
    } else if (c == ')') {
      if (!groups.empty()) groups.pop_back();
    } else if (c == '(') {
      const std::string_view kind = expression.substr(i, 3);
      const bool is_look_ahead = kind == "(?=" || kind == "(?!";
      if (is_look_ahead && std::find(groups.begin(), groups.end(), true) != groups.end())
        return true;
      groups.push_back(is_look_ahead);
    }
  }
  return false;
}

// libstdc++'s automaton without back-tracking: time is linear in the path's length, however the
// expression is nested. It refuses back-references, which cannot be matched in linear time.
std::regex linear_time_regex(std::string_view expression) {
  return std::regex(expression.begin(), expression.end(),
                    std::regex::ECMAScript | std::regex_constants::__polynomial);
}

Selector::Selector(std::string_view text) : text_(text) {
  auto pattern = std::make_shared<Pattern>();
  if (text.starts_with("re:")) {
    std::string_view expression = text.substr(3);
    if (expression.size() >= 2 && expression.front() == '\'' && expression.back() == '\'') {
      expression = expression.substr(1, expression.size() - 2);
    }
    if (expression.size() > longest_expression)  // std::regex recurses, per character and group
      fail(text.substr(0, 40), "the regular expression has more than 1000 characters");
    if (expression.size() * product_of_counts(expression) > largest_expression)
      fail(text, "the regular expression repeats too much: matching it could take very long",
           "smaller numbers in {}, or * and +");
    if (nests_look_aheads(expression))
      fail(text,
           "a look-ahead inside another one is not supported: matching it could take very long",
           "write them one after the other, or use two rules");
    try {
      pattern->regex = linear_time_regex(expression);
    } catch (const std::regex_error& error) {
      if (error.code() == std::regex_constants::error_complexity ||
          error.code() == std::regex_constants::error_backref) {
        fail(text, "back-references are not supported: matching them could take very long",
             "write the repeated part out, or use two rules");
      }
      fail(text, std::string("the regular expression cannot be read: ") + error.what());
    }
    for (std::size_t i = 0; i < expression.size(); ++i) {  // (?: does not name a role
      names_role_ = names_role_ || (expression[i] == ':' && (i == 0 || expression[i - 1] != '?'));
    }
  } else {
    Sequence& tokens = pattern->tokens = Parser(text).parse();
    if (tokens[0].kind == Token::Kind::literal) {
      pattern->prefix = tokens[0].text;
      tokens.erase(tokens.begin());
    }
    names_role_ = text.find(':') != std::string_view::npos;
  }
  pattern_ = std::move(pattern);
}

bool Selector::matches(std::string_view path) const {
  if (pattern_->regex) return std::regex_match(path.begin(), path.end(), *pattern_->regex);
  if (!path.starts_with(pattern_->prefix)) return false;
  Places places(path.size() + 1);
  places[pattern_->prefix.size()] = true;
  return advance(pattern_->tokens, std::move(places), path).back();
}

bool Selector::covers_parameter(std::string_view path, std::string_view raw_name,
                                std::span<const std::string> readers) const {
  if (text_ == raw_name || (!path.empty() && matches(path))) return true;
  if (!raw_name.empty() && matches(raw_name)) return true;
  if (names_role_) return false;
  const std::size_t colon = path.rfind(':');
  if (colon != std::string_view::npos && matches(path.substr(0, colon))) return true;
  return !readers.empty() &&
         std::all_of(readers.begin(), readers.end(),
                     [&](const std::string& reader) { return matches(reader); });
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view wanted, std::span<const std::string> names) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(wanted.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    const std::size_t least =
        name.size() > wanted.size() ? name.size() - wanted.size() : wanted.size() - name.size();
    if (least >= best_distance) continue;
    const std::size_t distance = edit_distance(wanted, name);
    if (distance < best_distance && distance < std::max(name.size(), wanted.size())) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

}  // namespace tandem
