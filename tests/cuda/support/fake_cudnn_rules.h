// The attributes that the fake cuDNN's descriptors take.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <span>

namespace tandem::testing {

struct AttributeRule {
  cudnnBackendDescriptorType_t descriptor;
  int name;
  cudnnBackendAttributeType_t type;
  std::int64_t most = 1;    // number of values; at least 1
  bool is_required = true;  // must be set before the descriptor is finished
};

std::span<const AttributeRule> attribute_rules();
/// The rule for an attribute; null if the descriptor has no such attribute.
const AttributeRule* find_rule(cudnnBackendDescriptorType_t descriptor, int name);
/// Bytes of a value of that type; 0 if the fake does not know the type.
std::size_t bytes_of(cudnnBackendAttributeType_t type);

}  // namespace tandem::testing
