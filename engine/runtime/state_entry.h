// One thing in a StateStore: where it lies on its device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/host_pins.h"
#include "engine/runtime/program.h"

namespace tandem {

struct StateStore::Entry {
  std::string name;
  Derived derived;  // State::derived
  StateKind kind = StateKind::parameter;
  HeldBy held_by = HeldBy::checkpoint;
  TensorType type;
  Entry* tail = nullptr;  // of a split table: where the rest of each float32 is
  TensorType whole;       // what the two make
  std::optional<StateShard> shard;
  Layout layout;
  Device* device = nullptr;
  std::unique_ptr<Memory> memory;  // null for a value without elements
  HostPins pins;
  std::uint64_t writes = 0;  // launched steps of programs that write it
  std::uint64_t shown = 0;   // of a Mirror: `writes` of its master that it has seen

  /// A Mirror takes what its master holds now. Blocking.
  void follow(const Entry& master);
  /// What others see.
  const TensorType& seen() const { return tail != nullptr ? whole : type; }
};

}  // namespace tandem
