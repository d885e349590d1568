// The states of a run between its steps, by name.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/lower/lowered.h"

namespace tandem {

/// Extent of axis 0; a scalar is one row.
inline std::int64_t row_count(const TensorType& type) {
  return type.shape.empty() ? 1 : type.shape[0];
}

/// Parameters, buffers, moments and counters, in the layout and on the device that the first
/// training program chose. Shared by all programs of a run; addresses never change. A table of
/// which a device caches rows is one state under its own name: reading and writing it goes to the
/// cache for these. A split table is one float32 state as well. For a state that is sharded over
/// ranks this is the rank's own part: types, rows and values are those of the part.
class StateStore {
 public:
  StateStore();
  ~StateStore();
  StateStore(StateStore&&) noexcept;
  StateStore& operator=(StateStore&&) noexcept;

  bool has(const std::string& name) const;
  /// In order of creation, without states derived from others: weights apart from their masters,
  /// cached rows, rows that were fetched for the next step.
  std::vector<std::string> names() const;
  const TensorType& type(const std::string& name) const;
  StateKind kind(const std::string& name) const;
  HeldBy held_by(const std::string& name) const;
  /// Which part of which whole the state is; null where it is whole.
  const StateShard* shard(const std::string& name) const;
  /// Row-major copies; blocking, between steps only. Any write discards the rows that were fetched
  /// for the next step.
  HostTensor read(const std::string& name) const;
  void write(const std::string& name, const HostTensor& value);
  /// `rows` rows of axis 0 from `first` on (a scalar is one row), row-major: a table never needs a
  /// second copy of itself. Blocking, between steps only; several threads may take different rows
  /// of a state at a time. A state in another layout than row-major is copied as a whole first.
  void read_rows(const std::string& name, std::int64_t first, std::int64_t rows, void* to) const;
  void write_rows(const std::string& name, std::int64_t first, std::int64_t rows, const void* from);
  /// Whether rows are reached without a whole copy.
  bool has_direct_rows(const std::string& name) const;

  struct Entry;
  Entry* find(const std::string& name) const;
  Entry& create(const State& state, const StateLayout& layout, Device& device);

 private:
  /// Rows of an entry's own memory as others see them: halves of a split table are joined and split
  /// range by range.
  void load_rows(const Entry& entry, std::int64_t first, std::int64_t rows, void* to) const;
  void store_rows(const Entry& entry, std::int64_t first, std::int64_t rows, const void* from);
  void load_memory(const Entry& entry, std::int64_t first, std::int64_t rows, void* to) const;
  void store_memory(const Entry& entry, std::int64_t first, std::int64_t rows, const void* from);
  static void write_memory(const Entry& entry, const HostTensor& value);
  static HostTensor read_memory(const Entry& entry);
  void forget_ahead(const Entry& written);
  /// Reads those of the table's rows that caches hold (state_caches.cpp); others in `to` stay.
  void read_cached(const std::string& table, std::int64_t first, std::int64_t rows, void* to) const;
  void write_cached(const std::string& table, std::int64_t first, std::int64_t rows,
                    const void* from);
  /// Copies what the table holds into a new cache.
  void fill_cache(const Entry& cache);

  std::vector<std::unique_ptr<Entry>> entries_;
  std::unique_ptr<std::mutex> turn_;  // held by a row copy to or from an accelerator
};

}  // namespace tandem
