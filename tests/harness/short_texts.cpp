// Texts of cases in short forms: escapes, repeated lines, what differs between machines.
#include <cstdint>
#include <sstream>

#include "tests/harness/expected_output.h"

namespace tandem::testing {

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (text.empty() || text.back() == separator) parts.emplace_back();
  return parts;
}

namespace {

/// "20+i%9*2": terms between + signs, each computed from the left.
std::int64_t computed(const std::string& formula, std::int64_t i) {
  std::int64_t sum = 0;
  for (const std::string& term : parts_of(formula, '+')) {
    std::int64_t value = 0;
    char operation = '*';
    for (std::size_t at = 0, first = 1; at < term.size(); first = 0) {
      std::size_t end = term.find_first_of("*/%", at);
      if (end == std::string::npos) end = term.size();
      const std::string factor = term.substr(at, end - at);
      const std::int64_t number = factor == "i" ? i : std::stoll(factor);
      value = first != 0         ? number
              : operation == '*' ? value * number
              : operation == '/' ? value / number
                                 : value % number;
      if (end < term.size()) operation = term[end];
      at = end + 1;
    }
    sum += value;
  }
  return sum;
}

std::string filled_in(const std::string& line, std::int64_t i) {
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = line[at] == '<' ? line.find('>', at) : std::string::npos;
    if (end == std::string::npos) {
      text += line[at++];
      continue;
    }
    const std::string inside = line.substr(at + 1, end - at - 1);
    const std::vector<std::string> words = parts_of(inside, '|');
    text += words.size() > 1 ? words[static_cast<std::size_t>(i) % words.size()]
                             : std::to_string(computed(inside, i));
    at = end + 1;
  }
  return text;
}

}  // namespace

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      plain += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'n':
        plain += '\n';
        break;
      case 'r':
        plain += '\r';
        break;
      case 't':
        plain += '\t';
        break;
      case '\n':
        break;
      case 'x':
        plain += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
        i += 2;
        break;
      default:
        plain += text[i];
    }
  }
  return plain;
}

std::string repeated(const std::string& text) {
  if (!text.starts_with("repeat ") && text.find("\nrepeat ") == std::string::npos) return text;
  std::string all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("repeat ") || colon == std::string::npos) {
      all += line + "\n";
      continue;
    }
    const std::int64_t count = std::stoll(line.substr(7, colon - 7));
    for (std::int64_t i = 0; i < count; ++i) all += filled_in(line.substr(colon + 2), i) + "\n";
  }
  return all;
}

std::string with_all(std::string text, std::string_view part, std::string_view replacement) {
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos;
       at += replacement.size())
    text.replace(at, part.size(), replacement);
  return text;
}

}  // namespace tandem::testing
