#include "engine/data/cells/cut_tokens.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace tandem {

std::vector<std::string> cut_token_notes(const TablePlan& plan,
                                         const std::vector<std::vector<ColumnStatistics>>& fields) {
  std::vector<std::string> notes;
  std::set<std::pair<std::size_t, std::int64_t>> told;  // column and length
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    const TableField& field = plan.fields[f];
    if (!field.tokenizer) continue;
    for (std::size_t c = 0; c < field.columns.size(); ++c) {
      const ColumnStatistics& found = fields[f][c];
      if (found.cut == 0 || !told.emplace(field.columns[c], field.most).second) continue;
      const std::int64_t all = found.values + found.cut;
      notes.push_back(fmt::format(
          "{} of {} tokens of `{}` ({:.3g} %) are left out: texts are cut to the {} tokens of "
          "data.fields.{}, tokens(length={})",
          found.cut, all, plan.columns[field.columns[c]],
          100 * static_cast<double>(found.cut) / static_cast<double>(all), field.most, field.name,
          field.most));
    }
  }
  return notes;
}

}  // namespace tandem
