// A host and emulated accelerators that one monitor watches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/emulated/emulated_device.h"

namespace tandem::testing {

struct Machine {
  std::shared_ptr<OrderChecker> monitor = std::make_shared<OrderChecker>();
  std::unique_ptr<Device> cpu = make_cpu_device(1, monitor);
  std::vector<std::unique_ptr<Device>> accelerators;
  std::vector<Device*> devices{cpu.get()};

  explicit Machine(int count) {
    for (int i = 0; i < count; ++i) {
      EmulatedOptions options;
      options.name = "emulated:" + std::to_string(i);
      options.memory_bytes = std::size_t{64} << 20;
      options.monitor = monitor;
      accelerators.push_back(make_emulated_device(options));
      devices.push_back(accelerators.back().get());
    }
  }

  void synchronize() {
    for (Device* device : devices) device->synchronize();
  }
};

}  // namespace tandem::testing
