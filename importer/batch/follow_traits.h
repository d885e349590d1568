// How traits of samples (importer/batch/sample_traits.h) pass from operands to results.
#pragma once

#include "importer/session.h"

namespace tandem::importer {

/// A name that a node reads or makes, under the file's batch and under this import's.
struct Seen {
  const Term* term = nullptr;
  const Shape* before = nullptr;
  bool is_tensor = false;  // known in both imports, of one rank
  Ints changed;            // axes whose extent follows the batch

  bool has_changed() const { return !changed.empty(); }
  bool is_unchanged() const { return is_tensor && changed.empty(); }
};
Seen seen(const Session& session, const Scope& scope, const std::string& name);

/// Operators whose operands are broadcast against each other.
bool is_element_wise(const onnx::NodeProto& node);

/// The axes that a reduction takes away, and whether it adds up; nothing where the node is none.
struct Reduction {
  SampleTraits::Total total = SampleTraits::Total::none;
  std::vector<std::size_t> axes;
};
Reduction reduction_of(const Scope& scope, const onnx::NodeProto& node, std::size_t rank);

/// Whether an axis of samples with that many entries each repeats those of the first one.
bool is_equal_in_samples(const HostTensor& tensor, std::size_t axis, std::int64_t entries);

/// Sets the traits of what the node has made, once it is lowered and where a batch is bound anew.
void follow_traits(const Session& session, Scope& scope, const onnx::NodeProto& node);

}  // namespace tandem::importer
