// Programs of graphs that differ from batch to batch.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/train/staged/forward_graph.h"
#include "engine/train/steps/micro_batch_programs.h"

namespace tandem {

/// The programs that were used most recently, by the key of their graph.
class StagedPrograms {
 public:
  struct Entry {
    std::string key;
    BoundProgram bound;
    std::uint64_t ticket = 0;
  };

  /// The entry of this key; a new one with the result of `make` where there is none.
  template <class Make>
  Entry& get(const std::string& key, const Make& make) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i]->key != key) continue;
      std::rotate(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(i),
                  entries_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return *entries_[0];
    }
    auto entry = std::make_unique<Entry>();
    entry->key = key;
    if (entries_.size() >= most) entries_.pop_back();
    entry->bound = make();
    entries_.insert(entries_.begin(), std::move(entry));
    return *entries_[0];
  }

 private:
  static constexpr std::size_t most = 8;
  std::vector<std::unique_ptr<Entry>> entries_;
};

/// Copies values into the inputs of a program for `ticket`, by their names; the first list that has
/// one of the input's type counts.
void feed_inputs(Program& program, const std::vector<const BatchTensors*>& lists,
                 std::uint64_t ticket);

/// A copy of an output by its name, which the program has.
HostTensor output_of(const BoundProgram& bound, const std::string& name, std::uint64_t ticket);

/// The outputs that are fed or constant, and so need no program, by their names; the graph keeps
/// the others. States are not among them.
BatchTensors take_given_outputs(Graph& graph, const std::vector<const BatchTensors*>& lists);

/// Types of what may be fed to graphs of a batch.
FieldTypes types_of(const std::vector<const BatchTensors*>& lists);

/// Samples `first` to `first + count - 1` of all fields of a source, or of those with these names.
BatchTensors batch_of(const DataSource& source, std::int64_t first, std::int64_t count,
                      const std::vector<std::string>* names = nullptr);

/// Ring sizes of programs that run once for each batch.
RunParts with_single_slots(RunParts parts);

}  // namespace tandem
