#include "engine/training/tables/row_counts.h"

#include <algorithm>

#include "engine/training/tables/fed_integers.h"
#include "engine/training/tables/id_source.h"

namespace tandem {

std::map<std::string, std::int64_t> count_unique_rows(const Graph& pass, const DataSource& source,
                                                      const Evaluator& evaluate) {
  FedIntegers fed(pass, source, evaluate);
  struct Group {  // look-ups of equal tables by the same ids
    ValueId ids;
    std::int64_t rows = 0, sum = 0;
  };
  std::vector<Group> groups;
  const auto group_of = [&](const LookUp& look_up) {
    return std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.ids == look_up.ids && group.rows == look_up.rows;
    });
  };
  std::map<std::string, bool> known;
  const std::vector<LookUp> look_ups = look_ups_of(pass);
  for (const LookUp& look_up : look_ups) {
    const auto [each, is_new] = known.emplace(look_up.parameter, true);
    each->second = fed.add(look_up.ids) && each->second;
    if (each->second && group_of(look_up) == groups.end()) {
      groups.push_back({look_up.ids, look_up.rows});
    }
  }
  const std::int64_t passes = std::min(fed.passes(), most_counted_passes);
  if (passes == 0) return {};
  for (std::int64_t p = 0; p < passes; ++p) {
    fed.read(p);
    for (Group& group : groups) {
      std::vector<std::int64_t> named = named_rows(fed.value(group.ids), group.rows);
      group.sum += count_unique(named, group.rows);
    }
  }
  std::map<std::string, std::int64_t> sums;
  for (const LookUp& look_up : look_ups) {
    if (known[look_up.parameter]) sums[look_up.parameter] += group_of(look_up)->sum;
  }
  for (auto& [parameter, rows] : sums) rows = (rows + passes - 1) / passes;
  return sums;
}

}  // namespace tandem
