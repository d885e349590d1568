#include "engine/train/loop/run.h"

#include <algorithm>

namespace tandem {

ForwardKey Run::micro_batch() const {
  return {std::min(data.epoch_samples(), config.micro_batch_size()), true};
}

std::uint64_t Run::copied_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t d = 1; d < parts.devices.size(); ++d) {
    parts.devices[d]->synchronize();
    const DeviceCounters counters = parts.devices[d]->counters();
    bytes += counters.bytes_to_device + counters.bytes_to_host;
  }
  return bytes;
}

}  // namespace tandem
