// One thing in a StateStore: where it lies on its device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/host_pins.h"
#include "engine/runtime/program.h"

namespace tandem {

struct StateStore::Entry {
  std::string name;
  std::string mirror_of;  // of a weight away from its master: the master's name
  std::string cache_of;   // of rows of a table that live here and not there: the table's name
  std::shared_ptr<const std::vector<std::int64_t>> cached_rows;  // which, ascending
  std::string ahead_of;  // of what is fetched for the next step: the table
  std::string tail_of;   // of the low halves of a split table: the table's name
  StateKind kind = StateKind::parameter;
  TensorType type;
  Entry* tail = nullptr;  // of a split table: where the rest of each float32 is
  TensorType whole;       // what the two make
  Layout layout;
  Device* device = nullptr;
  std::unique_ptr<Memory> memory;  // null for a value without elements
  HostPins pins;

  /// What others see.
  const TensorType& seen() const { return tail != nullptr ? whole : type; }
};

}  // namespace tandem
