// How traits of samples (importer/batch/sample_traits.h) pass from operands to results.
#pragma once

#include <initializer_list>
#include <string_view>

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

/// Whether the node is one of these operators of ai.onnx.
bool is_one_of(const onnx::NodeProto& node, std::initializer_list<std::string_view> names);

std::int64_t number_attribute(const onnx::NodeProto& node, std::string_view name,
                              std::int64_t missing);

/// A list that is an attribute in older operator sets and input `i` in newer ones.
Ints known_list(const Scope& scope, const onnx::NodeProto& node, const char* name, int i);

/// Whether an axis of samples with that many entries each repeats those of the first one.
bool is_equal_in_samples(const HostTensor& tensor, std::size_t axis, std::int64_t entries);

/// Sets the traits of what the node has made, once it is lowered and where a batch is bound anew.
void follow_traits(const Session& session, Scope& scope, const onnx::NodeProto& node);

}  // namespace tandem::importer
