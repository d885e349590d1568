#include "kernels/device_backend.h"

namespace tandem {

#define TANDEM_DEVICE_FAMILY(kind, ...) DeviceBackend kind##_backend();
#include "engine/device/device_families.inl"
#undef TANDEM_DEVICE_FAMILY

std::vector<DeviceBackend> device_backends() {
#define TANDEM_DEVICE_FAMILY(kind, ...) kind##_backend(),
  std::vector<DeviceBackend> all{
#include "engine/device/device_families.inl"
  };
#undef TANDEM_DEVICE_FAMILY
  for (std::size_t i = 0; i < all.size(); ++i) all[i].family = &device_families()[i];
  return all;
}

}  // namespace tandem
