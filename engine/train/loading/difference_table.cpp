// The table of what a file of weights and a model do not have in common.
#include <algorithm>
#include <array>
#include <utility>

#include "engine/train/loading/weights_match.h"

namespace tandem {
namespace {

using Kind = WeightsDifference::Kind;
using Row = std::array<std::string, 5>;

constexpr std::size_t most_rows = 20, longest_name = 60;

constexpr std::pair<Kind, std::string_view> kind_words[] = {{Kind::missing, "missing in the file"},
                                                            {Kind::other_shape, "another shape"},
                                                            {Kind::unexpected, "not in the model"},
                                                            {Kind::same_name, "a name twice"}};

std::string_view word_of(Kind kind) {
  for (const auto& [known, word] : kind_words) {
    if (known == kind) return word;
  }
  return "";
}

/// The end of a long name, its most informative part.
std::string shortened(const std::string& name) {
  if (name.empty()) return "-";
  return name.size() <= longest_name ? name : "..." + name.substr(name.size() - longest_name + 3);
}

std::string shown_shape(const std::optional<Shape>& shape) {
  return shape ? to_string(*shape) : "-";
}

Row row_of(const WeightsDifference& d) {
  std::string what(word_of(d.kind));
  if (!d.hint.empty()) what += "; " + d.hint;
  return {shortened(d.in_file), shown_shape(d.file_shape), shortened(d.parameter),
          shown_shape(d.shape), std::move(what)};
}

}  // namespace

std::string difference_table(const std::vector<WeightsDifference>& differences) {
  std::vector<Row> rows{{"name in file", "shape", "parameter", "shape", "what"}};
  const std::size_t shown = std::min(differences.size(), most_rows);
  for (std::size_t i = 0; i < shown; ++i) rows.push_back(row_of(differences[i]));
  std::array<std::size_t, 4> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    if (!text.empty()) text += "\n";
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += row[i] + std::string(widths[i] - row[i].size(), ' ') + " | ";
    }
    text += row.back();
  }
  if (shown == differences.size()) return text;
  std::string more;
  for (const auto& [kind, word] : kind_words) {
    const auto count =
        std::count_if(differences.begin() + static_cast<std::ptrdiff_t>(shown), differences.end(),
                      [kind = kind](const WeightsDifference& d) { return d.kind == kind; });
    if (count == 0) continue;
    more += (more.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(word);
  }
  return text + "\nand " + std::to_string(differences.size() - shown) + " more: " + more;
}

}  // namespace tandem
