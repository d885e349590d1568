// A build without CUDA: kernels/cuda_devices.h says what is missing and how to get it.
#include "engine/graph/error.h"
#include "kernels/cuda_devices.h"

namespace tandem {
namespace {

const char* const problem = "this build has no CUDA";
const char* const fix =
    "build Tandem with the CUDA toolkit (cmake --preset cuda, see docs/cuda.md)";

}  // namespace

CudaReport cuda_report() {
  CudaReport report;
  report.problem = problem;
  report.fix = fix;
  return report;
}

CudaReport cuda_gpus() { return cuda_report(); }

std::unique_ptr<Device> make_cuda_device(const CudaOptions& options) {
  throw Error(ErrorKind::usage, Diagnostic{.message = problem, .got = options.name, .fix = fix});
}

}  // namespace tandem
