#include "engine/train/tables/row_counts.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "engine/operators/tables/split_ids.h"
#include "engine/train/tables/fed_integers.h"
#include "engine/train/tables/id_source.h"

namespace tandem {
namespace {

/// How often rows were named.
class Tally {
 public:
  explicit Tally(std::int64_t rows) {
    constexpr std::int64_t most_dense = std::int64_t{1} << 26;
    if (rows <= most_dense) dense_.resize(static_cast<std::size_t>(rows));
  }
  void add(std::int64_t row) {
    if (dense_.empty()) {
      ++sparse_[row];
    } else {
      ++dense_[static_cast<std::size_t>(row)];
    }
  }

  struct Named {
    std::int64_t row = 0;
    std::uint32_t times = 0;
    /// True for the row named more often, or as often and with the lower number.
    bool operator<(const Named& other) const {
      return times != other.times ? times > other.times : row < other.row;
    }
  };
  std::vector<Named> named() const {
    std::vector<Named> all;
    for (std::size_t row = 0; row < dense_.size(); ++row) {
      if (dense_[row] > 0) all.push_back({static_cast<std::int64_t>(row), dense_[row]});
    }
    for (const auto& [row, times] : sparse_) all.push_back({row, times});
    return all;
  }

 private:
  std::vector<std::uint32_t> dense_;  // by row
  std::unordered_map<std::int64_t, std::uint32_t> sparse_;
};

/// The rows named most often, ascending. Rows that were not named fill up, the lowest first.
std::vector<std::int64_t> most_named(const Tally& tally, std::int64_t count, std::int64_t rows) {
  std::vector<std::int64_t> chosen;
  if (count >= rows) {
    chosen.resize(static_cast<std::size_t>(rows));
    std::iota(chosen.begin(), chosen.end(), std::int64_t{0});
    return chosen;
  }
  std::vector<Tally::Named> named = tally.named();
  const auto wanted = static_cast<std::size_t>(count);
  if (named.size() > wanted) {
    std::nth_element(named.begin(), named.begin() + count, named.end());
    named.resize(wanted);
  }
  for (const Tally::Named& next : named) chosen.push_back(next.row);
  std::sort(chosen.begin(), chosen.end());
  if (chosen.size() == wanted) return chosen;
  std::vector<std::int64_t> fill;
  auto known = chosen.begin();
  for (std::int64_t row = 0; chosen.size() + fill.size() < wanted; ++row) {
    if (known != chosen.end() && *known == row) {
      ++known;
    } else {
      fill.push_back(row);
    }
  }
  std::vector<std::int64_t> all;
  std::merge(chosen.begin(), chosen.end(), fill.begin(), fill.end(), std::back_inserter(all));
  return all;
}

}  // namespace

std::map<std::string, std::int64_t> count_unique_rows(const Graph& forward,
                                                      const DataSource& source,
                                                      const Evaluator& evaluate) {
  FedIntegers fed(forward, source, evaluate);
  struct Group {  // lookups of equal tables by the same ids
    ValueId ids;
    std::int64_t rows = 0, sum = 0;
  };
  std::vector<Group> groups;
  const auto group_of = [&](const Lookup& lookup) {
    return std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.ids == lookup.ids && group.rows == lookup.rows;
    });
  };
  std::map<std::string, bool> known;
  const std::vector<Lookup> lookups = lookups_of(forward);
  for (const Lookup& lookup : lookups) {
    const auto [each, is_new] = known.emplace(lookup.parameter, true);
    each->second = fed.add(lookup.ids) && each->second;
    if (each->second && group_of(lookup) == groups.end()) {
      groups.push_back({lookup.ids, lookup.rows});
    }
  }
  const std::int64_t micro_batches = std::min(fed.micro_batches(), most_counted_micro_batches);
  if (micro_batches == 0) return {};
  for (std::int64_t p = 0; p < micro_batches; ++p) {
    fed.read(p);
    for (Group& group : groups) {
      std::vector<std::int64_t> named = named_rows(fed.value(group.ids), group.rows);
      group.sum += count_unique(named, group.rows);
    }
  }
  std::map<std::string, std::int64_t> sums;
  for (const Lookup& lookup : lookups) {
    if (known[lookup.parameter]) sums[lookup.parameter] += group_of(lookup)->sum;
  }
  for (auto& [parameter, rows] : sums) rows = (rows + micro_batches - 1) / micro_batches;
  return sums;
}

std::optional<HotRows> find_hot_rows(const Graph& forward, const DataSource& source,
                                     const Evaluator& evaluate, const std::string& parameter,
                                     std::int64_t count) {
  FedIntegers fed(forward, source, evaluate);
  std::vector<Lookup> lookups = lookups_of(forward);
  std::erase_if(lookups, [&](const Lookup& lookup) { return lookup.parameter != parameter; });
  if (lookups.empty()) return std::nullopt;
  for (const Lookup& lookup : lookups) {
    if (!fed.add(lookup.ids)) return std::nullopt;
  }
  const std::int64_t rows = lookups[0].rows;
  const std::int64_t micro_batches = std::min(fed.micro_batches(), most_counted_micro_batches);
  if (micro_batches == 0) return std::nullopt;
  const auto each_lookup = [&](const auto& visit) {
    for (std::int64_t p = 0; p < micro_batches; ++p) {
      fed.read(p);
      for (const Lookup& lookup : lookups) visit(named_rows(fed.value(lookup.ids), rows));
    }
  };
  Tally tally(rows);
  each_lookup([&](const std::vector<std::int64_t>& named) {
    for (const std::int64_t row : named) tally.add(row);
  });
  std::vector<std::int64_t> chosen = most_named(tally, count, rows);
  const CachedMarks marks(chosen, rows);
  const auto is_cold = [bits = marks.marks.as<std::int64_t>().data(),
                        ranks = marks.ranks.as<std::int32_t>().data()](std::int64_t row) {
    return cached_place(bits, ranks, row) < 0;
  };
  std::int64_t all = 0, cold = 0, different = 0;
  each_lookup([&](std::vector<std::int64_t> named) {
    all += static_cast<std::int64_t>(named.size());
    std::erase_if(named, [&](std::int64_t row) { return !is_cold(row); });
    cold += static_cast<std::int64_t>(named.size());
    different += count_unique(named, rows);
  });
  HotRows hot;
  hot.rows = std::make_shared<const std::vector<std::int64_t>>(std::move(chosen));
  hot.hit_rate = all > 0 ? static_cast<double>(all - cold) / static_cast<double>(all) : 0;
  hot.cold_rows = (different + micro_batches - 1) / micro_batches;
  return hot;
}

}  // namespace tandem
