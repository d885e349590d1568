// The rules of fine-tuning: last layers of another width, adapters, what trains next to them.
#pragma once

#include <cstdint>
#include <string>

#include "engine/graph/structures/where.h"

namespace tandem {

/// A last layer and how many outputs it is to have: its weight and bias start anew.
struct LayerRule {
  std::int64_t classes = 1;
  std::string at;  // a selector of its weight; "": the layer that makes the outputs of the graph
  Where where;
  bool operator==(const LayerRule&) const = default;
};

struct AdapterKind;  // engine/passes/adapters/adapter_kind.h

/// Which weights get adapters, of which kind and with which settings.
struct AdapterRule {
  std::string at;         // a selector of parameters, or all_linear; the last rule counts
  std::int64_t rank = 8;  // r
  double alpha = 8;       // the adapters' part is multiplied by alpha / r, or as the kind says
  double dropout = 0;     // probability, for what the adapters read; only in training
#define TANDEM_ADAPTER(name) bool name = false;
#include "engine/passes/adapters/all_adapters.inl"
  Where where;

  /// Plain adapters, with what the kinds that the rule chooses change in them.
  AdapterKind kind() const;
  /// What the adapters' part is multiplied by.
  double scale() const;
  bool operator==(const AdapterRule&) const = default;
};

/// Parameters that train as well as the adapters; also recognised buffers that are to train.
struct TrainRule {
  std::string at;
  Where where;
  bool operator==(const TrainRule&) const = default;
};

}  // namespace tandem
