#include "kernels/cuda/libraries/report.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <string_view>

#include "kernels/cuda/libraries/library_file.h"

namespace tandem {
namespace cuda {
namespace {

constexpr int toolkit_major = CUDART_VERSION / 1000;

/// 13000 is 13.0.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string newer_driver() {
  std::string text = "NVIDIA's driver for CUDA " + std::to_string(toolkit_major) + " or newer";
  if constexpr (toolkit_major == 13) text += " (580 or newer)";
  return text;
}

void no_driver(DeviceReport& report) {
  report.problem = "this machine has no NVIDIA driver (libcuda.so.1)";
  report.fix = "install " + newer_driver() + "; a container has to be started with --gpus all";
}

void broken_driver(DeviceReport& report, const std::string& path, const std::string& why) {
  report.problem = "the NVIDIA driver's library " + path + " cannot be used: " + why;
  report.fix = "remove that file, or its folder from LD_LIBRARY_PATH; install " + newer_driver();
}

void old_driver(DeviceReport& report) {
  report.problem = "the driver is for CUDA " + report.driver + ", this build needs " +
                   std::to_string(toolkit_major) + ".0 or newer";
  report.fix = "install " + newer_driver();
}

void no_gpu(DeviceReport& report) {
  report.problem = "the driver sees no GPU";
  report.fix = "see what nvidia-smi says, and what CUDA_VISIBLE_DEVICES hides";
}

bool has_code(const FoundDevice& gpu) {
  return runs_on(TANDEM_CUDA_ARCHITECTURES, gpu.major, gpu.minor);
}

FoundDevice look_at(Runtime& runtime, int ordinal) {
  FoundDevice gpu;
  gpu.ordinal = ordinal;
  GpuProperties properties;
  if (const cudaError_t error = runtime.properties(ordinal, properties); error != cudaSuccess) {
    gpu.problem = "the driver does not describe it: " + runtime.error_text(error);
    return gpu;
  }
  gpu.name = properties.name;
  gpu.memory_bytes = properties.memory_bytes;
  gpu.major = properties.major;
  gpu.minor = properties.minor;
  if (!has_code(gpu)) {
    gpu.problem = "compute capability " + std::to_string(gpu.major) + "." +
                  std::to_string(gpu.minor) +
                  ": this build has code for the architectures " TANDEM_CUDA_ARCHITECTURES;
  }
  return gpu;
}

void find_gpus(Runtime& runtime, DeviceReport& report) {
  int driver = 0;
  if (runtime.driver_version(driver) != cudaSuccess || driver <= 0) return no_driver(report);
  report.driver = version_text(driver);
  if (driver / 1000 < toolkit_major) return old_driver(report);
  int count = 0;
  const cudaError_t error = runtime.gpu_count(count);
  if (error == cudaErrorInsufficientDriver) return old_driver(report);
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) return no_gpu(report);
  if (error != cudaSuccess) {
    report.problem = "the driver does not start: " + runtime.error_text(error);
    report.fix = "see what nvidia-smi says";
    return;
  }
  for (int gpu = 0; gpu < count; ++gpu) report.devices.push_back(look_at(runtime, gpu));
}

void say_if_none_is_usable(DeviceReport& report) {
  const bool any = std::any_of(report.devices.begin(), report.devices.end(),
                               [](const FoundDevice& gpu) { return gpu.problem.empty(); });
  if (any || report.devices.empty()) return;
  const FoundDevice& first = report.devices[0];
  report.problem = (first.name.empty() ? "GPU 0" : first.name) + ": " + first.problem;
  report.fix = "see what nvidia-smi says";
  if (first.name.empty() || has_code(first)) return;
  report.fix = "a build with -DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(first.major) +
               std::to_string(first.minor) + " has code for it, where the toolkit still knows it";
}

void ask_for_memory(Runtime& runtime, FoundDevice& gpu) {
  std::size_t total = 0;
  cudaError_t error = runtime.set_gpu(gpu.ordinal);
  if (error == cudaSuccess) error = runtime.free_bytes(gpu.free_bytes, total);
  if (error != cudaSuccess) gpu.problem = "it does not start: " + runtime.error_text(error);
}

struct Architecture {
  int number = 0;        // 90 of "90a-real"
  bool one_gpu = false;  // "90a": features that other GPUs lack
  bool code = true, translated = true;
};

/// False where the text is none of a number.
bool read(std::string_view text, Architecture& to) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, to.number);
  if (error != std::errc()) return false;
  std::string_view kind(rest, static_cast<std::size_t>(end - rest));
  to.one_gpu = kind.starts_with('a');
  const bool one_family = kind.starts_with('f');
  if (to.one_gpu || one_family) kind.remove_prefix(1);
  if (!kind.empty() && kind != "-real" && kind != "-virtual") return false;
  to.code = kind != "-virtual" || one_family;
  to.translated = kind != "-real" && !one_family;
  return true;
}

}  // namespace

bool runs_on(const std::string& architectures, int major, int minor) {
  const int gpu = major * 10 + minor;
  const std::string_view text = architectures;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    Architecture of;
    if (!read(text.substr(start, end - start), of)) return true;
    const bool own_code = of.code && of.number / 10 == major && of.number <= gpu;
    const bool fits = own_code || (of.translated && of.number <= gpu);
    if (of.one_gpu ? of.number == gpu : fits) return true;
    start = end + 1;
  }
  return false;
}

DeviceReport report_gpus(Runtime& runtime) {
  DeviceReport report;
  report.toolkit = version_text(CUDART_VERSION);
  find_gpus(runtime, report);
  say_if_none_is_usable(report);
  return report;
}

DeviceReport report_all(Runtime& runtime, Libraries& libraries) {
  DeviceReport report = report_gpus(runtime);
  for (FoundDevice& gpu : report.devices) {
    if (gpu.problem.empty()) ask_for_memory(runtime, gpu);
  }
  say_if_none_is_usable(report);
  report.libraries = libraries.report();
  return report;
}

void name_missing_folders(DeviceReport& report, const LibraryPlaces& places) {
  for (const std::string& folder : missing_folders(places)) {
    report.fix += (report.fix.empty() ? "" : "; ") + ("take " + folder) +
                  " out of TANDEM_CUDA_LIBRARIES: it is no folder";
  }
}

DeviceReport with_driver_at(const std::string& path, const std::function<DeviceReport()>& look) {
  const std::string problem = path.empty() ? "" : file_problem(path);
  if (!problem.empty()) {
    DeviceReport report;
    report.toolkit = version_text(CUDART_VERSION);
    broken_driver(report, path, problem);
    report.fix += "; cuBLASLt, cuDNN, NVRTC and NCCL are looked at once that is done";
    return report;
  }
  DeviceReport report = look();
  if (!path.empty() && report.driver.empty())
    broken_driver(report, path, "the CUDA runtime finds no driver in it");
  return report;
}

}  // namespace cuda

namespace {

template <class Ask>
DeviceReport without_throwing(Ask ask) {
  try {
    return cuda::with_driver_at(cuda::loader_file("libcuda.so.1"),
                                [&] { return ask(*cuda::make_real_runtime()); });
  } catch (const std::exception& error) {
    DeviceReport report;
    report.toolkit = cuda::version_text(CUDART_VERSION);
    report.problem = error.what();
    return report;
  }
}

}  // namespace

DeviceReport cuda_report() {
  DeviceReport report = without_throwing([](cuda::Runtime& runtime) {
    return cuda::report_all(runtime, *cuda::make_real_libraries());
  });
  cuda::name_missing_folders(report, cuda::library_places());
  return report;
}

DeviceReport cuda_gpus() {
  return without_throwing([](cuda::Runtime& runtime) { return cuda::report_gpus(runtime); });
}

}  // namespace tandem
