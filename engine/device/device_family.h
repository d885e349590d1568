// The properties of a family of accelerators that are known without hardware.
#pragma once

#include <span>
#include <string_view>

namespace tandem {

/// What the vendor states of a model of accelerator; cuda_models.inl gives the units.
struct DeviceModel {
  const char* name;  // as --profile names it
  double float32, tf32, float16, bfloat16;
  double bandwidth, memory, link_bandwidth;
};

/// Bytes per second in each direction between the host and a device without a profile.
inline constexpr double assumed_link_bandwidth = 25e9;

struct DeviceFamily {
  /// DeviceFacts::kind, and the first part of what `use` names: "cuda:0" to "cuda:63".
  std::string_view kind;
  std::string_view noun;  // in messages
  /// Names that need no declaration: "gpu" for "cuda:local" (this process's own device) and "gpu0"
  /// for "cuda:0". If it is empty, there is no own device, and "emulated:0" names itself.
  std::string_view name = {};
  std::string_view version = {};  // which version of a device the reports give
  bool is_hardware = false;   // a machine may lack it; otherwise the monitor checks every access
  bool has_set_link = false;  // `bandwidth` and `latency` of a binding are those of its link
  bool has_tf32 = false;
  bool has_nccl = false;  // it carries out operations over all ranks
  std::span<const DeviceModel> models = {};
};

/// The families of device_families.inl, in its order.
std::span<const DeviceFamily> device_families();
/// The family of a use such as "cuda:0"; null for "cpu" and anything else.
const DeviceFamily* family_of_use(std::string_view use);

}  // namespace tandem
