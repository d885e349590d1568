// An entry of a StateStore: a state, and where it lies on its device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/host_pins.h"
#include "engine/runtime/state_store.h"

namespace tandem {

struct StateStore::Entry {
  std::string name;
  Derived derived;  // State::derived
  StateKind kind = StateKind::parameter;
  HeldBy held_by = HeldBy::checkpoint;
  TensorType type;
  Entry* tail = nullptr;  // for a split table: the entry with the rest of each float32
  TensorType whole;       // type of the table that the two make up
  std::optional<StateShard> shard;
  Layout layout;
  Device* device = nullptr;
  std::unique_ptr<Memory> memory;  // null for a value without elements
  HostPins pins;
  std::uint64_t writes = 0;  // launched steps of programs that write it
  std::uint64_t shown = 0;   // for a Mirror: how many `writes` of its master it has followed

  /// Copies the current value of its master into a Mirror. Blocking.
  void follow(const Entry& master);
  /// The type that callers of the store see.
  const TensorType& seen() const { return tail != nullptr ? whole : type; }
};

}  // namespace tandem
