// A description of the machine: versions, the GPU's properties, and the rates that times are
// compared with.
#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "kernels/cuda/libraries/cudnn.h"
#include "kernels/cuda/libraries/report.h"
#include "tests/cuda/gpu_check/stages.h"
#include "tests/cuda/gpu_check/timing.h"

namespace tandem::gpu_check {
namespace {

void tell_libraries(CheckGpu& gpu, Report& report) {
  const DeviceReport found = cuda::report_all(gpu.runtime(), gpu.libraries());
  gpu.check(gpu.runtime().set_gpu(gpu.gpu().gpu), "choosing the GPU");
  report.note("toolkit", found.toolkit);
  report.note("driver", found.driver);
  for (const FoundDevice& c : found.devices) {
    report.note(
        "card " + std::to_string(c.ordinal),
        Json{{"name", c.name},
             {"compute capability", std::to_string(c.major) + "." + std::to_string(c.minor)},
             {"memory bytes", c.memory_bytes},
             {"free bytes", c.free_bytes}});
    if (!c.problem.empty()) report.failed("card " + std::to_string(c.ordinal), c.problem);
  }
  for (const FoundLibrary& library : found.libraries) {
    report.note(library.name, Json{{"needed", library.needed},
                                   {"version", library.version},
                                   {"path", library.path},
                                   {"passed over", library.passed_over}});
    if (library.problem.empty()) {
      report.passed(library.name);
    } else {
      report.failed(library.name, library.problem + " (" + library.fix + ")");
    }
  }
  const cuda::GpuProperties& p = gpu.gpu().properties;
  report.note("properties", Json{{"multiprocessors", p.multiprocessors},
                                 {"shared bytes of a block", p.shared_bytes},
                                 {"L2 bytes", p.l2_bytes},
                                 {"copy engines", p.copy_engines}});
}

/// cuDNN's own description of the GPU, from which machines without a GPU can make plans.
std::string device_description(const cuda::Cudnn& cudnn, int ordinal) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  const auto check = [&](cudnnStatus_t status, const char* what) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    const std::string text = std::string(what) + ": " + cudnn.cudnnGetErrorString(status);
    if (descriptor != nullptr) cudnn.cudnnBackendDestroyDescriptor(descriptor);
    throw std::runtime_error(text);
  };
  check(cudnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &descriptor),
        "making a description");
  const std::int32_t id = ordinal;
  check(cudnn.cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_DEVICEPROP_DEVICE_ID,
                                       CUDNN_TYPE_INT32, 1, &id),
        "choosing the GPU");
  check(cudnn.cudnnBackendFinalize(descriptor), "finishing the description");
  std::int64_t length = 0;
  check(cudnn.cudnnBackendGetAttribute(descriptor, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                       CUDNN_TYPE_CHAR, 0, &length, nullptr),
        "asking for its length");
  std::string text(static_cast<std::size_t>(std::max<std::int64_t>(length, 0)), '\0');
  check(cudnn.cudnnBackendGetAttribute(descriptor, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                       CUDNN_TYPE_CHAR, length, &length, text.data()),
        "reading it");
  cudnn.cudnnBackendDestroyDescriptor(descriptor);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

void tell_device_description(CheckGpu& gpu, const Options& options, Report& report) {
  const std::string check = "cuDNN's description of the GPU";
  const cuda::Cudnn* const cudnn = gpu.libraries().cudnn();
  if (cudnn == nullptr) return report.skipped(check, "cuDNN cannot be used");
  try {
    const std::string text = device_description(*cudnn, gpu.gpu().gpu);
    const std::string path = options.out + "/cudnn_device.json";
    std::ofstream(path) << text << "\n";
    if (text.empty()) return report.failed(check, "it is empty");
    report.note(check, path);
  } catch (const std::exception& error) {
    report.failed(check, error.what());
  }
}

void tell_copies(CheckGpu& gpu, const Options& options, Report& report) {
  const std::size_t bytes = std::size_t{options.small ? 1u : 256u} << 20;
  cuda::Runtime& runtime = gpu.runtime();
  const Pinned host(gpu, bytes);
  gpu.operands().clear();
  void* const a = gpu.operands().room(bytes);
  void* const b = gpu.operands().room(bytes);
  struct Way {
    const char* name;
    void* to;
    const void* from;
    double times;  // how many times memory sees each byte
  };
  for (const Way& way :
       {Way{"pinned host to GPU", a, host.data(), 1}, Way{"GPU to pinned host", host.data(), a, 1},
        Way{"GPU to GPU, read and written", b, a, 2}}) {
    const double seconds = seconds_of(
        gpu, 10, [&] { gpu.check(runtime.copy(way.to, way.from, bytes, gpu.stream()), way.name); });
    report.value(way.name, way.times * static_cast<double>(bytes) / seconds * 1e-9, "GB/s");
  }
}

void tell_products(CheckGpu& gpu, const Options& options, Report& report) {
  const std::int64_t n = options.small ? 64 : 8192;
  for (const DType type : {DType::bfloat16, DType::float16, DType::float32}) {
    const std::string name = "product of " + std::string(name_of(type));
    try {
      const PreparedProduct product(gpu, n, n, n, type);
      const double seconds = seconds_of(gpu, 10, [&] { product.run(); });
      report.value(name + " by " + product.kernel(),
                   2e-12 * static_cast<double>(n) * static_cast<double>(n) *
                       static_cast<double>(n) / seconds,
                   "TFLOP/s");
    } catch (const std::exception& error) {
      report.failed(name, error.what());
    }
  }
}

}  // namespace

void run_environment(CheckGpu& gpu, const Options& options, Report& report) {
  tell_libraries(gpu, report);
  tell_device_description(gpu, options, report);
  tell_copies(gpu, options, report);
  tell_products(gpu, options, report);
}

}  // namespace tandem::gpu_check
