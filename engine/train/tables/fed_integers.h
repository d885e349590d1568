// Ids of lookups before a run: computed from the data's fields, micro-batch by micro-batch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/graph/graph.h"
#include "engine/passes/pass.h"

namespace tandem {

/// At most this many micro-batches from the start of the data are read.
constexpr std::int64_t most_counted_micro_batches = 32;

struct Lookup {
  std::string parameter;
  ValueId ids;
  std::int64_t rows = 0;  // the table's rows
};
/// All lookups of rows of parameters.
std::vector<Lookup> lookups_of(const Graph& graph);

/// Integers of the graph that depend only on the data. All three outlive it.
class FedIntegers {
 public:
  FedIntegers(const Graph& graph, const DataSource& source, const Evaluator& evaluate);

  /// Whether `value` can be computed; from here on `read` does so. All have one extent of axis 0.
  bool add(ValueId value);
  /// Micro-batches that the data fills.
  std::int64_t micro_batches() const { return samples_ == 0 ? 0 : source_.samples() / samples_; }
  void read(std::int64_t micro_batch);
  /// As many as `samples()`.
  void read(std::span<const std::int64_t> samples);
  /// The samples of a micro-batch; 0 where no added value depends on the data.
  std::int64_t samples() const { return samples_; }
  /// The fields of the source that are read.
  std::vector<int> fields() const;
  const HostTensor& value(ValueId id) const { return values_[id.index]; }

 private:
  enum class Known : std::uint8_t { open, no, yes };
  struct Input {
    ValueId value;
    int field = -1;
    bool needed = false;
  };

  const Graph& graph_;
  const DataSource& source_;
  const Evaluator& evaluate_;
  std::vector<Known> known_;        // by value
  std::vector<HostTensor> values_;  // by value
  std::vector<Input> inputs_;       // that fields of their type feed
  std::vector<NodeId> nodes_;       // in the order to compute them
  std::int64_t samples_ = 0;        // in a micro-batch
};

/// The rows of a table that the ids name, one for each; absent ids and those outside, which are
/// refused when the run checks its data, are left out.
std::vector<std::int64_t> named_rows(const HostTensor& ids, std::int64_t rows);

}  // namespace tandem
