// What the ranks of a run exchange in a training graph: losses and gradients are sums over ranks,
// since each rank's share of a loss has the denominators of the whole step.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/gradient/row_gradient.h"
#include "engine/graph/builder.h"
#include "engine/operators/collectives/collective.h"
#include "engine/train/updates/add_update.h"

namespace tandem {

/// How a micro-batch is distributed. Ranks that train together compute equal shares, or some of
/// them one sample more.
struct RankShares {
  int ranks = 1;  // 1: only this process, and nothing is exchanged
  /// Samples that this rank computes, and the most that one does: rows of all ranks are gathered as
  /// if each had that many. 0: they are equal.
  std::int64_t own = 0, most = 0;
  int rank = 0;  // this one

  bool several() const { return ranks > 1; }
};

/// Elements of a tensor whose size follows the samples, on a rank with the most of them. Throws
/// Error{usage} where shares differ and it does not have as many for each sample.
std::int64_t most_elements(const Graph& graph, ValueId value, const RankShares& shares);

/// Adds the exchanges of one training graph; none for one rank.
class RankSums {
 public:
  RankSums(GraphBuilder& g, const RankShares& shares) : g_(g), shares_(shares) {}

  bool several() const { return shares_.several(); }
  /// The values, scalars of float32, and the flag that is fed by `stop` (a float32 scalar), summed
  /// as one; the flag's sum is the graph's output of that name.
  void add_losses(std::vector<std::pair<std::string, ValueId>>& values, const char* stop);
  /// Sums the gradient of an update, with the marks of its rows: before norms, loss scale and the
  /// update itself, which then are the same on all ranks. For a table sharded by rows each rank has
  /// the gradient of its own rows, from all samples.
  void sum(UpdateRequest& update);
  /// The sum over all ranks of a scalar that each has for its own part.
  ValueId sum_of_parts(ValueId own) { return all_reduced(own, sum_reduction); }
  /// How many ids the ranks have in all; the same on all of them. Throws Error{usage} where shares
  /// differ and a lookup does not have as many ids for each sample.
  std::int64_t gathered_ids(const RowGradient& rows) const;

 private:
  ValueId all_reduced(ValueId value, const char* reduction);
  /// The rows of all ranks, in the order of the ranks and so of the samples.
  RowGradient gathered(const RowGradient& rows);
  /// All ranks' elements, flat; `filler` fills up for the samples that a rank has fewer than
  /// others.
  ValueId gathered(ValueId value, double filler);

  GraphBuilder& g_;
  RankShares shares_;
  std::map<std::int32_t, ValueId> gathered_;  // by value: tables may share ids
};

}  // namespace tandem
