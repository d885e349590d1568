// Lookups in tables, groupings of ids and updates of rows: how many ids a micro-batch has, how many
// rows they name and what the kernels move for these.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/steps/micro_batch_watch.h"

namespace tandem {

/// The work of a node in a micro-batch, as the mean over those that were counted.
struct TableUse {
  double ids = 0;
  double unique = 0;   // rows that occur
  double bytes = 0;    // that the node reads and writes for these rows, each operand once
  double cached = -1;  // for SplitIds: ids whose rows a cache holds
  /// Ids a row.
  double dedup() const { return unique > 0 ? ids / unique : 1; }
  double hit_rate() const { return ids > 0 ? cached / ids : 0; }
};

/// Counts the ids of the micro-batches that it watches.
class TableCounter final : public MicroBatchWatch {
 public:
  TableCounter();
  ~TableCounter() override;
  void after(Program& program, std::uint64_t ticket) override;
  /// Nothing where the node has nothing to do with rows of a table, where its ids are computed, or
  /// where no micro-batch of the program was watched.
  std::optional<TableUse> use(const Program& program, NodeId node) const;
  /// Forgets all micro-batches and programs.
  void clear();

 private:
  struct Tables;
  std::map<const Program*, std::unique_ptr<Tables>> programs_;
  std::map<std::string, std::vector<std::int64_t>> marked_;  // ids of the step so far, by state
};

}  // namespace tandem
