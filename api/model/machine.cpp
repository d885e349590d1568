#include "api/model/machine.h"

#include <algorithm>
#include <cassert>

namespace tandem::api {

Machine::Machine(std::vector<DeviceBackend> backends)
    : backends_(std::move(backends)),
      found_(std::make_shared<std::map<const DeviceFamily*, DeviceReport>>()) {}

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
  const auto found = found_->find(asked.family);
  if (found != found_->end()) return found->second;
  return found_->emplace(asked.family, asked.look ? asked.look() : DeviceReport()).first->second;
}

}  // namespace tandem::api
