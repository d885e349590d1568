#include "api/commands/page/text_difference.h"

#include <algorithm>

namespace tandem::api {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.emplace_back(text.substr(start, end - start));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    start = end + 1;
  }
  return lines;
}

/// common[i][j]: the most lines that a[i…] and b[j…] have in common in the same order.
std::vector<std::vector<int>> common_lines(const std::vector<std::string>& a,
                                           const std::vector<std::string>& b) {
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;)
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  }
  return common;
}

}  // namespace

std::vector<TextLine> text_difference(std::string_view before, std::string_view after) {
  std::vector<std::string> a = lines_of(before), b = lines_of(after);
  std::vector<TextLine> lines;
  std::size_t first = 0, last = 0;  // equal lines at both ends
  while (first < a.size() && first < b.size() && a[first] == b[first]) ++first;
  while (last < a.size() - first && last < b.size() - first &&
         a[a.size() - 1 - last] == b[b.size() - 1 - last])
    ++last;
  const auto add = [&](TextLine::Kind kind, std::size_t i, std::size_t j) {
    TextLine& line = lines.emplace_back();
    line.kind = kind;
    if (kind != TextLine::Kind::added) line.before = static_cast<int>(i) + 1;
    if (kind != TextLine::Kind::removed) line.after = static_cast<int>(j) + 1;
    line.text = kind == TextLine::Kind::added ? b[j] : a[i];
  };
  for (std::size_t i = 0; i < first; ++i) add(TextLine::Kind::same, i, i);
  const std::vector<std::string> x(a.begin() + static_cast<std::ptrdiff_t>(first),
                                   a.end() - static_cast<std::ptrdiff_t>(last));
  const std::vector<std::string> y(b.begin() + static_cast<std::ptrdiff_t>(first),
                                   b.end() - static_cast<std::ptrdiff_t>(last));
  constexpr std::size_t most_cells = 16'000'000;  // beyond that, all is replaced
  const bool is_small = (x.size() + 1) * (y.size() + 1) <= most_cells;
  const std::vector<std::vector<int>> common =
      is_small ? common_lines(x, y) : std::vector<std::vector<int>>();
  std::size_t i = 0, j = 0;
  while (i < x.size() || j < y.size()) {
    if (is_small && i < x.size() && j < y.size() && x[i] == y[j])
      add(TextLine::Kind::same, first + i++, first + j++);
    else if (i < x.size() && (j == y.size() || !is_small || common[i + 1][j] >= common[i][j + 1]))
      add(TextLine::Kind::removed, first + i++, 0);
    else
      add(TextLine::Kind::added, 0, first + j++);
  }
  for (std::size_t k = last; k > 0; --k) add(TextLine::Kind::same, a.size() - k, b.size() - k);
  return lines;
}

}  // namespace tandem::api
