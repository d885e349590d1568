#include "engine/runtime/arenas.h"

#include <algorithm>

#include "engine/graph/error.h"
#include "engine/runtime/named_memory.h"
#include "engine/runtime/program.h"

namespace tandem {
namespace {

constexpr const char* what = "the arena of activations, gradients and workspace";
constexpr const char* smaller = "use a smaller batch or more micro-batches";

}  // namespace

void* Arenas::ensure(Device& device, std::size_t bytes) {
  for (Region& region : regions_) {
    if (region.device != &device) continue;
    if (bytes <= region.bytes || region.memory->grow(bytes)) {
      region.bytes = std::max(region.bytes, bytes);
      return region.memory->address();
    }
  }
  if (bytes > device.memory_bytes()) {
    Diagnostic d;
    d.message = std::string(what) + " does not fit into the memory of " + device.name();
    d.expected = "at most " + std::to_string(device.memory_bytes()) + " bytes";
    d.got = std::to_string(bytes) + " bytes";
    d.fix = smaller;
    throw Error(ErrorKind::does_not_fit, std::move(d));
  }
  Region region{&device, device.reserve(device.memory_bytes()), bytes, {}};
  if (!region.memory || !region.memory->grow(bytes)) {
    region.memory = allocate_for({"", what, smaller}, device, bytes);
  }
  regions_.push_back(std::move(region));
  return regions_.back().memory->address();
}

void Arenas::pin(Device& host, const std::vector<Device*>& devices) {
  for (Region& region : regions_) {
    if (region.device != &host || region.pins.covers(devices, region.bytes)) continue;
    take(nullptr, {});  // ends the copies of the current user
    region.pins.pin(devices, region.memory->address(), region.bytes);
  }
}

std::size_t Arenas::bytes(const Device& device) const {
  std::size_t sum = 0;
  for (const Region& region : regions_) {
    if (region.device == &device) sum += region.bytes;
  }
  return sum;
}

bool Arenas::take(const void* user, std::function<void()> drain) {
  if (user == user_) return false;
  if (drain_) drain_();
  user_ = user;
  drain_ = std::move(drain);
  return true;
}

void Arenas::leave(const void* user) {
  if (user != user_) return;
  user_ = nullptr;
  drain_ = {};
}

std::shared_ptr<Arenas> make_arenas() { return std::make_shared<Arenas>(); }

}  // namespace tandem
