// Opens the emulated devices that policies name.
#include "kernels/device_backend.h"
#include "kernels/emulated/emulated_device.h"

namespace tandem {
namespace {

std::unique_ptr<Device> open_emulated(const DeviceRequest& request) {
  EmulatedOptions options;
  options.name = request.name;
  if (request.memory_bytes) options.memory_bytes = *request.memory_bytes;
  if (request.bytes_per_second) options.bytes_per_second = *request.bytes_per_second;
  if (request.latency_seconds) options.latency_seconds = *request.latency_seconds;
  options.monitor = request.monitor;
  std::unique_ptr<Device> device = make_emulated_device(options);
  device->join(request.ranks->make_communicator());
  return device;
}

}  // namespace

DeviceBackend emulated_backend() {
  return {.memory_bytes = EmulatedOptions{}.memory_bytes, .open = open_emulated};
}

}  // namespace tandem
