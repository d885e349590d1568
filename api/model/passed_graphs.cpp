#include "api/model/passed_graphs.h"

#include <algorithm>

namespace tandem::api {
namespace {

constexpr std::size_t most_kept = 4;  // for each import

}  // namespace

std::shared_ptr<PassedGraph> PassedGraphs::find(const Key& key, const MayMerge& may_merge,
                                                const std::function<Graph(const MayMerge&)>& run) {
  std::vector<Kept>& kept = kept_[key];
  for (std::size_t i = kept.size(); i-- > 0;) {
    const bool holds = std::all_of(kept[i].answers.begin(), kept[i].answers.end(),
                                   [&](const std::pair<const Paths, bool>& asked) {
                                     return may_merge(asked.first) == asked.second;
                                   });
    if (!holds) continue;
    std::rotate(kept.begin() + static_cast<std::ptrdiff_t>(i),
                kept.begin() + static_cast<std::ptrdiff_t>(i) + 1, kept.end());
    return kept.back().passed;
  }
  Kept fresh;
  fresh.passed = std::make_shared<PassedGraph>();
  fresh.passed->graph = run([&](const Paths& paths) {
    const bool answer = may_merge(paths);
    fresh.answers.emplace(paths, answer);
    return answer;
  });
  if (kept.size() == most_kept) kept.erase(kept.begin());
  kept.push_back(std::move(fresh));
  return kept.back().passed;
}

}  // namespace tandem::api
