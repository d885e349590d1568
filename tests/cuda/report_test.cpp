// The report about driver and GPUs on machines that have none, an old one, or several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "kernels/cuda/libraries/report.h"
#include "tests/cuda/support/given_libraries.h"
#include "tests/cuda/support/small_libraries.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using cuda::GpuProperties;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int own_driver = CUDART_VERSION;
constexpr std::size_t gibibyte = std::size_t{1} << 30;

/// Answers questions about GPUs; any other call is an error that the test does not expect.
class GpusAlone final : public cuda::Runtime {
 public:
  int driver = own_driver;
  cudaError_t driver_error = cudaSuccess, count_error = cudaSuccess, set_error = cudaSuccess;
  std::vector<GpuProperties> gpus;
  int current = -1;  // the last `set_gpu`

  cudaError_t gpu_count(int& count) override {
    count = static_cast<int>(gpus.size());
    return count_error;
  }
  cudaError_t driver_version(int& version) override {
    version = driver;
    return driver_error;
  }
  cudaError_t properties(int gpu, GpuProperties& to) override {
    to = gpus.at(static_cast<std::size_t>(gpu));
    return to.name.empty() ? cudaErrorUnknown : cudaSuccess;
  }
  cudaError_t set_gpu(int gpu) override {
    current = gpu;
    return set_error;
  }
  cudaError_t free_bytes(std::size_t& free, std::size_t& total) override {
    total = gpus.at(static_cast<std::size_t>(current)).memory_bytes;
    free = total - static_cast<std::size_t>(current + 1) * gibibyte;
    return cudaSuccess;
  }
  std::string error_text(cudaError_t error) override {
    return "error " + std::to_string(static_cast<int>(error));
  }

  cudaError_t allocate(void*&, std::size_t) override { return unexpected(); }
  cudaError_t release(void*) override { return unexpected(); }
  cudaError_t allocate_pinned(void*&, std::size_t) override { return unexpected(); }
  cudaError_t release_pinned(void*) override { return unexpected(); }
  cudaError_t pin(void*, std::size_t) override { return unexpected(); }
  cudaError_t unpin(void*) override { return unexpected(); }
  cudaError_t make_stream(cudaStream_t&) override { return unexpected(); }
  cudaError_t destroy_stream(cudaStream_t) override { return unexpected(); }
  cudaError_t synchronize(cudaStream_t) override { return unexpected(); }
  cudaError_t synchronize_gpu() override { return unexpected(); }
  cudaError_t make_event(cudaEvent_t&) override { return unexpected(); }
  cudaError_t destroy_event(cudaEvent_t) override { return unexpected(); }
  cudaError_t record(cudaEvent_t, cudaStream_t) override { return unexpected(); }
  cudaError_t wait(cudaStream_t, cudaEvent_t) override { return unexpected(); }
  cudaError_t synchronize(cudaEvent_t) override { return unexpected(); }
  cudaError_t query(cudaEvent_t) override { return unexpected(); }
  cudaError_t make_timer(cudaEvent_t&) override { return unexpected(); }
  cudaError_t milliseconds(float&, cudaEvent_t, cudaEvent_t) override { return unexpected(); }
  cudaError_t copy(void*, const void*, std::size_t, cudaStream_t) override { return unexpected(); }
  cudaError_t copy_now(void*, const void*, std::size_t) override { return unexpected(); }
  cudaError_t fill(void*, int, std::size_t, cudaStream_t) override { return unexpected(); }
  cudaError_t launch(const cuda::Launch&, cudaStream_t) override { return unexpected(); }
  cudaError_t begin_capture(cudaStream_t) override { return unexpected(); }
  cudaError_t end_capture(cudaStream_t, cudaGraphExec_t&) override { return unexpected(); }
  cudaError_t launch_graph(cudaGraphExec_t, cudaStream_t) override { return unexpected(); }
  cudaError_t destroy_graph(cudaGraphExec_t) override { return unexpected(); }
  cudaError_t load_library(cudaLibrary_t&, const void*) override { return unexpected(); }
  cudaError_t unload_library(cudaLibrary_t) override { return unexpected(); }
  cudaError_t find_kernel(const void*&, cudaLibrary_t, const char*) override {
    return unexpected();
  }

 private:
  static cudaError_t unexpected() {
    ADD_FAILURE() << "a report makes no such call";
    return cudaErrorNotSupported;
  }
};

GpuProperties named_gpu(const std::string& name, int major, int minor, std::size_t gibibytes) {
  GpuProperties properties;
  properties.name = name;
  properties.major = major;
  properties.minor = minor;
  properties.memory_bytes = gibibytes * gibibyte;
  return properties;
}
const GpuProperties h100 = named_gpu("NVIDIA H100", 9, 0, 80);
const GpuProperties kepler = named_gpu("Tesla K40", 3, 5, 12);  // CUDA 13 does not support it

TEST(CudaReport, NoDriver) {
  GpusAlone runtime;
  runtime.driver = 0;
  runtime.count_error = cudaErrorInsufficientDriver;
  DeviceReport report = cuda::report_gpus(runtime);
  EXPECT_EQ(report.toolkit, std::to_string(CUDART_VERSION / 1000) + "." +
                                std::to_string(CUDART_VERSION % 1000 / 10));
  EXPECT_EQ(report.driver, "");
  EXPECT_EQ(report.problem, "this machine has no NVIDIA driver (libcuda.so.1)");
  EXPECT_THAT(report.fix, StartsWith("install NVIDIA's driver"));
  EXPECT_THAT(report.devices, IsEmpty());
  runtime.driver = own_driver;
  runtime.driver_error = cudaErrorUnknown;
  EXPECT_EQ(cuda::report_gpus(runtime).problem, report.problem);
}

TEST(CudaReport, ADriverThatIsBroken) {
  TemporaryFolder folder;
  const std::string path = folder / "libcuda.so.1";
  std::ofstream(path) << "no library";
  DeviceReport report = cuda::with_driver_at(path, [] {
    ADD_FAILURE() << "the runtime would open the file";
    return DeviceReport();
  });
  EXPECT_EQ(report.problem,
            "the NVIDIA driver's library " + path + " cannot be used: it is no shared library");
  EXPECT_THAT(report.fix, StartsWith("remove that file, or its folder from LD_LIBRARY_PATH"));
  EXPECT_NE(report.toolkit, "");
  EXPECT_THAT(report.libraries, IsEmpty()) << "they open the driver, too";

  GpusAlone runtime;
  runtime.gpus = {h100};
  const auto look = [&] { return cuda::report_gpus(runtime); };
  compile_library(path, "int number;");
  EXPECT_EQ(cuda::with_driver_at(path, look).problem, "");
  EXPECT_EQ(cuda::with_driver_at("", look).problem, "");
  runtime.driver = 0;
  report = cuda::with_driver_at(path, look);
  EXPECT_EQ(report.problem, "the NVIDIA driver's library " + path +
                                " cannot be used: the CUDA runtime finds no driver in it");
  EXPECT_EQ(cuda::with_driver_at("", look).problem,
            "this machine has no NVIDIA driver (libcuda.so.1)");
}

TEST(CudaReport, FoldersThatAreNone) {
  TemporaryFolder folder;
  DeviceReport report;
  cuda::name_missing_folders(report, {{folder.path()}, true, {"/nowhere"}});
  EXPECT_EQ(report.fix, "");
  cuda::name_missing_folders(report, {{folder / "none", folder.path()}, true, {}});
  EXPECT_EQ(report.fix,
            "take " + (folder / "none") + " out of TANDEM_CUDA_LIBRARIES: it is no folder");
}

TEST(CudaReport, AnOldDriver) {
  GpusAlone runtime;
  runtime.gpus = {h100};
  runtime.driver = CUDART_VERSION / 1000 * 1000 - 1000 + 80;
  const DeviceReport report = cuda::report_gpus(runtime);
  const std::string before = std::to_string(CUDART_VERSION / 1000 - 1);
  EXPECT_EQ(report.driver, before + ".8");
  EXPECT_THAT(report.problem,
              StartsWith("the driver is for CUDA " + before + ".8, this build needs"));
  EXPECT_THAT(report.devices, IsEmpty());
}

TEST(CudaReport, ADriverOfTheSameSeriesWillDo) {
  GpusAlone runtime;
  runtime.gpus = {h100};
  for (const int driver :
       {CUDART_VERSION / 1000 * 1000, CUDART_VERSION + 20, CUDART_VERSION + 1000}) {
    runtime.driver = driver;
    EXPECT_EQ(cuda::report_gpus(runtime).problem, "") << driver;
  }
}

TEST(CudaReport, NoGpu) {
  GpusAlone runtime;
  runtime.count_error = cudaErrorNoDevice;
  const DeviceReport report = cuda::report_gpus(runtime);
  EXPECT_EQ(report.problem, "the driver sees no GPU");
  EXPECT_THAT(report.fix, HasSubstr("CUDA_VISIBLE_DEVICES"));
  EXPECT_NE(report.driver, "");
  runtime.count_error = cudaSuccess;
  EXPECT_EQ(cuda::report_gpus(runtime).problem, report.problem);
  runtime.count_error = cudaErrorSystemDriverMismatch;
  EXPECT_EQ(cuda::report_gpus(runtime).problem, "the driver does not start: error 803");
}

TEST(CudaReport, AGpuThatIsTooOld) {
  GpusAlone runtime;
  runtime.gpus = {kepler};
  DeviceReport report = cuda::report_gpus(runtime);
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_THAT(report.devices[0].problem, StartsWith("compute capability 3.5: "));
  EXPECT_EQ(report.problem, "Tesla K40: " + report.devices[0].problem);
  EXPECT_THAT(report.fix, HasSubstr("-DCMAKE_CUDA_ARCHITECTURES=35"));
  runtime.gpus = {kepler, h100};
  report = cuda::report_gpus(runtime);
  EXPECT_EQ(report.problem, "") << "one will do";
  EXPECT_EQ(report.fix, "");
  EXPECT_NE(report.devices[0].problem, "");
  EXPECT_EQ(report.devices[1].problem, "");
}

TEST(CudaReport, AGpuThatTheDriverDoesNotDescribe) {
  GpusAlone runtime;
  runtime.gpus = {GpuProperties{}};
  const DeviceReport report = cuda::report_gpus(runtime);
  EXPECT_EQ(report.problem, "GPU 0: the driver does not describe it: error 999");
  EXPECT_EQ(report.fix, "see what nvidia-smi says");
}

TEST(CudaReport, GpusAloneAreLeftAlone) {
  GpusAlone runtime;
  runtime.gpus = {h100};
  const DeviceReport report = cuda::report_gpus(runtime);
  EXPECT_EQ(runtime.current, -1) << "setting a GPU makes a context on it";
  EXPECT_EQ(report.devices[0].free_bytes, 0u);
  EXPECT_THAT(report.libraries, IsEmpty());
}

TEST(CudaReport, AllOfIt) {
  GpusAlone runtime;
  runtime.gpus = {h100, kepler, h100};
  GivenLibraries libraries{{.report = {{"cuDNN", "9.19", "", "", "it is nowhere", "install it"}}}};
  const DeviceReport report = cuda::report_all(runtime, libraries);
  ASSERT_EQ(report.devices.size(), 3u);
  EXPECT_EQ(report.devices[0].name, "NVIDIA H100");
  EXPECT_EQ(report.devices[0].memory_bytes, 80 * gibibyte);
  EXPECT_EQ(report.devices[0].free_bytes, 79 * gibibyte);
  EXPECT_EQ(report.devices[1].free_bytes, 0u) << "it cannot be used";
  EXPECT_EQ(report.devices[2].ordinal, 2);
  EXPECT_EQ(report.devices[2].free_bytes, 77 * gibibyte);
  EXPECT_EQ(report.devices[2].major, 9);
  ASSERT_EQ(report.libraries.size(), 1u);
  EXPECT_EQ(report.libraries[0].fix, "install it");
  runtime.set_error = cudaErrorDevicesUnavailable;
  const DeviceReport none = cuda::report_all(runtime, libraries);
  EXPECT_EQ(none.devices[0].problem, "it does not start: error 46");
  EXPECT_EQ(none.problem, "NVIDIA H100: it does not start: error 46");
  EXPECT_EQ(none.fix, "see what nvidia-smi says");
}

TEST(Architectures, WhatGpusRun) {
  const std::string usual = "80-real,90";
  EXPECT_TRUE(cuda::runs_on(usual, 8, 0));
  EXPECT_TRUE(cuda::runs_on(usual, 8, 9)) << "machine code of a smaller minor";
  EXPECT_TRUE(cuda::runs_on(usual, 9, 0));
  EXPECT_TRUE(cuda::runs_on(usual, 12, 1)) << "translated";
  EXPECT_FALSE(cuda::runs_on(usual, 7, 5));
  EXPECT_FALSE(cuda::runs_on("86-real", 8, 0));
  EXPECT_FALSE(cuda::runs_on("80-real", 9, 0));
  EXPECT_TRUE(cuda::runs_on("80-virtual", 9, 0));
  EXPECT_FALSE(cuda::runs_on("90-virtual", 8, 9));
  EXPECT_TRUE(cuda::runs_on("75,100-real", 10, 3));
  EXPECT_TRUE(cuda::runs_on("75", 8, 6));
  EXPECT_TRUE(cuda::runs_on("90a-real", 9, 0));
  EXPECT_FALSE(cuda::runs_on("90a", 10, 0)) << "not for other GPUs, even translated";
  EXPECT_TRUE(cuda::runs_on("100f", 10, 3)) << "the family";
  EXPECT_FALSE(cuda::runs_on("100f", 12, 0));
  EXPECT_TRUE(cuda::runs_on("native", 3, 5)) << "who knows";
}

}  // namespace
}  // namespace tandem::testing
