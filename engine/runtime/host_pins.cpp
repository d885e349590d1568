#include "engine/runtime/host_pins.h"

#include <algorithm>

namespace tandem {

void HostPins::pin(const std::vector<Device*>& devices, void* address, std::size_t bytes) {
  for (Device* device : devices) {
    auto pin = std::find_if(pins_.begin(), pins_.end(),
                            [&](const Pin& known) { return known.device == device; });
    if (pin == pins_.end()) pin = pins_.insert(pins_.end(), Pin{device});
    if (pin->bytes >= bytes) continue;
    pin->range.reset();
    pin->range = device->pin(address, bytes);
    pin->bytes = bytes;
  }
}

bool HostPins::covers(const std::vector<Device*>& devices, std::size_t bytes) const {
  return std::all_of(devices.begin(), devices.end(), [&](const Device* device) {
    return std::any_of(pins_.begin(), pins_.end(),
                       [&](const Pin& pin) { return pin.device == device && pin.bytes >= bytes; });
  });
}

std::vector<char> copied_host_buffers(const Plan& plan) {
  std::vector<char> copied(plan.buffers.size(), 0);
  for (const Queue& queue : plan.queues) {
    for (const Instruction& instruction : queue.instructions) {
      if (instruction.kind != Instruction::Kind::copy) continue;
      for (const Access& access : instruction.accesses) {
        if (plan.buffers[access.buffer].device == 0) copied[access.buffer] = 1;
      }
    }
  }
  return copied;
}

}  // namespace tandem
