#include "kernels/cuda/device/cuda_device.h"

#include <cstdlib>
#include <thread>

#include "kernels/cuda/collectives/nccl_communicator.h"
#include "kernels/cuda/device/cuda_memory.h"
#include "kernels/cuda/device/cuda_stream.h"
#include "kernels/cuda/libraries/report.h"

namespace tandem::cuda {
namespace {

[[noreturn]] void cannot_use(const CudaOptions& options, const std::string& why,
                             const std::string& fix) {
  throw Error(ErrorKind::usage,
              Diagnostic{.message = options.name + " cannot be used: " + why, .fix = fix});
}

// Refuses a device without a usable GPU or without cuBLASLt: without products there is nothing to
// train. Where another library is missing, the kernels that need it refuse by its name.
void check_usable(const CudaOptions& options, Runtime& runtime, Libraries& libraries) {
  const DeviceReport report = report_gpus(runtime);
  const auto count = static_cast<int>(report.devices.size());
  if (report.devices.empty()) cannot_use(options, report.problem, report.fix);
  if (options.ordinal < 0 || options.ordinal >= count) {
    cannot_use(options, "there is no GPU " + std::to_string(options.ordinal),
               count == 1 ? "the only GPU is cuda:0"
                          : "the GPUs are cuda:0 to cuda:" + std::to_string(count - 1));
  }
  const FoundDevice& gpu = report.devices[static_cast<std::size_t>(options.ordinal)];
  if (!gpu.problem.empty()) cannot_use(options, gpu.name + ": " + gpu.problem, report.fix);
  for (const FoundLibrary& library : libraries.report()) {
    if (library.name == "cuBLASLt" && !library.problem.empty())
      cannot_use(options, library.name + ": " + library.problem, library.fix);
  }
}

std::vector<std::string> features_of(const GpuProperties& gpu) {
  std::vector<std::string> features{"float16"};
  if (gpu.major >= 8) {
    features.push_back("bfloat16");
    features.push_back("tf32");
  }
  features.push_back("sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor));
  return features;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(const CudaOptions& options, std::shared_ptr<Runtime> runtime,
             std::shared_ptr<Libraries> libraries)
      : shared_(std::make_shared<DeviceShared>(options, std::move(runtime), std::move(libraries))),
        kernels_(cuda_kernels(shared_->gpu)) {
    facts_.kind = "cuda";
    facts_.features = features_of(shared_->gpu->properties);
    facts_.threads = 1;
  }

  const std::string& name() const override { return shared_->name(); }
  const DeviceFacts& facts() const override { return facts_; }
  const KernelList& kernels() const override { return kernels_; }
  std::size_t memory_bytes() const override { return shared_->limit; }
  DeviceCounters counters() const override {
    DeviceCounters c;
    c.bytes_in_use = shared_->bytes_in_use();
    c.peak_bytes = shared_->peak_bytes();
    c.bytes_to_device = shared_->bytes_to_device;
    c.bytes_to_host = shared_->bytes_to_host;
    c.copies = shared_->copies;
    return c;
  }

  std::unique_ptr<Memory> allocate(std::size_t bytes) override {
    shared_->refuse_in_capture("the host allocates");
    return std::make_unique<CudaMemory>(shared_, bytes);
  }
  std::unique_ptr<Memory> reserve(std::size_t) override {
    shared_->refuse_in_capture("the host allocates");
    return nullptr;
  }
  // Where another GPU has pinned it already, nothing is left to do.
  std::unique_ptr<PinnedRange> pin(void* address, std::size_t bytes) override {
    shared_->refuse_in_capture("the host pins memory");
    if (bytes == 0) return nullptr;
    shared_->choose();
    if (shared_->runtime->pin(address, bytes) != cudaSuccess) return nullptr;
    return std::make_unique<CudaPinnedRange>(shared_, address);
  }
  std::unique_ptr<Stream> make_stream(StreamKind kind, const std::string& name) override {
    const char* const kinds[] = {"compute", "copy_in", "copy_out"};
    return std::make_unique<CudaStream>(
        shared_, name.empty() ? this->name() + "." + kinds[static_cast<int>(kind)] : name);
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<CudaEvent>(shared_); }

  void to_device(void* to, const void* from, std::size_t bytes) override {
    copy_now(to, from, bytes, to, true);
  }
  void to_host(void* to, const void* from, std::size_t bytes) override {
    copy_now(to, from, bytes, from, false);
  }
  void synchronize() override {
    const std::lock_guard lock(shared_->streams_mutex);
    for (CudaStream* stream : shared_->streams) stream->synchronize();
  }
  void on_lane(const std::function<void()>& f) override {
    // The caller keeps the GPU that it has chosen.
    std::thread([&] {
      (void)shared_->runtime->set_gpu(shared_->options.ordinal);
      f();
    }).join();
  }
  LaneMonitor* monitor() const override { return shared_->monitor(); }

 private:
  // An operation of the host lane that takes no virtual time.
  void copy_now(void* to, const void* from, std::size_t bytes, const void* here, bool write) {
    shared_->refuse_in_capture("the host copies");
    if (!shared_->contains(here))
      broken_rule(name(), "the host copies an address that is not in the memory of this device");
    synchronize();
    if (LaneMonitor* monitor = shared_->monitor()) {
      const ByteAccess access{here, bytes, write};
      monitor->operation(LaneMonitor::host_lane,
                         {write ? "to_device" : "to_host", 0, std::span(&access, 1)}, bytes);
    }
    if (bytes == 0) return;
    shared_->choose();
    shared_->check(shared_->runtime->copy_now(to, from, bytes), "a copy");
  }

  std::shared_ptr<DeviceShared> shared_;
  DeviceFacts facts_;
  KernelList kernels_;
};

}  // namespace

std::unique_ptr<Device> make_device(const CudaOptions& options, std::shared_ptr<Runtime> runtime,
                                    std::shared_ptr<Libraries> libraries) {
  check_usable(options, *runtime, *libraries);
  return std::make_unique<CudaDevice>(options, std::move(runtime), std::move(libraries));
}

std::string own_cache_folder() {
  if (const char* caches = std::getenv("XDG_CACHE_HOME"); caches != nullptr && *caches != '\0')
    return std::string(caches) + "/tandem/cuda";
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.cache/tandem/cuda";
}

}  // namespace tandem::cuda

namespace tandem {

std::unique_ptr<Device> make_cuda_device(const CudaOptions& options) {
  // Looked at before the runtime opens the driver, which a file that was cut short does not
  // survive.
  const DeviceReport report = cuda_gpus();
  if (report.devices.empty()) cuda::cannot_use(options, report.problem, report.fix);
  CudaOptions with_cache = options;
  if (with_cache.cache_folder.empty()) with_cache.cache_folder = cuda::own_cache_folder();
  const std::shared_ptr<cuda::Runtime> runtime = cuda::make_real_runtime();
  const std::shared_ptr<cuda::Libraries> libraries = cuda::make_real_libraries();
  std::unique_ptr<Device> device = cuda::make_device(with_cache, runtime, libraries);
  if (options.ranks->ranks() > 1) {
    const cuda::NcclOptions nccl{.device = options.name, .gpu = options.ordinal};
    device->join(cuda::make_nccl_communicator(nccl, options.ranks, runtime, libraries));
  }
  return device;
}

}  // namespace tandem
