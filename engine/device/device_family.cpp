#include "engine/device/device_family.h"

namespace tandem {
namespace {

constexpr DeviceModel cuda_models[] = {
#include "engine/device/cuda_models.inl"
};

#define TANDEM_DEVICE_FAMILY(kind_, ...) {.kind = #kind_, __VA_ARGS__},
constexpr DeviceFamily families[] = {
#include "engine/device/device_families.inl"
};
#undef TANDEM_DEVICE_FAMILY

}  // namespace

std::span<const DeviceFamily> device_families() { return families; }

const DeviceFamily* family_of_use(std::string_view use) {
  const std::size_t colon = use.find(':');
  if (colon == std::string_view::npos) return nullptr;
  for (const DeviceFamily& family : families) {
    if (family.kind == use.substr(0, colon)) return &family;
  }
  return nullptr;
}

}  // namespace tandem
