#include "api/model/machine.h"

#include <algorithm>
#include <cassert>

namespace tandem::api {

Machine::Machine(std::vector<DeviceBackend> backends)
    : backends_(std::move(backends)), found_(std::make_shared<Found>()) {}

const DeviceBackend& Machine::backend(std::string_view use) const {
  const DeviceFamily* const family = family_of_use(use);
  const auto found =
      std::find_if(backends_.begin(), backends_.end(),
                   [&](const DeviceBackend& backend) { return backend.family == family; });
  assert(found != backends_.end());
  return *found;
}

const DeviceReport& Machine::report(std::string_view use) const {
  const DeviceBackend& asked = backend(use);
  const std::lock_guard lock(found_->mutex);
  const auto found = found_->reports.find(asked.family);
  if (found != found_->reports.end()) return found->second;
  return found_->reports.emplace(asked.family, asked.look ? asked.look() : DeviceReport())
      .first->second;
}

}  // namespace tandem::api
