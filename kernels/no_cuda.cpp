// The backend of GPUs in a build without CUDA, which reports what is missing.
#include "engine/graph/error.h"
#include "kernels/device_backend.h"

namespace tandem {
namespace {

DeviceReport missing() {
  DeviceReport report;
  report.problem = "this build has no CUDA";
  report.fix = "build Tandem with the CUDA toolkit (cmake --preset cuda, see docs/cuda.md)";
  return report;
}

std::unique_ptr<Device> refuse(const DeviceRequest& request) {
  const DeviceReport report = missing();
  throw Error(ErrorKind::usage,
              Diagnostic{.message = report.problem, .got = request.name, .fix = report.fix});
}

}  // namespace

DeviceBackend cuda_backend() { return {.look = missing, .describe = missing, .open = refuse}; }

}  // namespace tandem
