// The report of doctor on CUDA, in builds with it and without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/model/device_status.h"
#include "api/model/mpi_status.h"
#include "api/program/machine.h"
#include "tandem/tandem.h"
#include "tests/api/cuda_reports.h"

namespace tandem::api {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

std::string cuda_text(const DeviceReport& report) {
  return device_text(*family_of_use("cuda:0"), report);
}

Json cuda_json(const DeviceReport& report) { return device_json(*family_of_use("cuda:0"), report); }

DeviceReport without_cuda() {
  DeviceReport report;
  report.problem = "this build has no CUDA";
  report.fix = "build it with CUDA";
  return report;
}

/// GPU 0 is usable, GPU 1 is too old.
DeviceReport two_gpus() {
  DeviceReport report;
  report.toolkit = "13.0";
  report.driver = "13.1";
  report.devices = {{0, "NVIDIA H100", std::size_t{80} << 30, std::size_t{79} << 30, 9, 0, ""},
                    {1, "Tesla P4", std::size_t{8} << 30, 0, 6, 1, "it is too old"}};
  report.libraries = {
      {"cuDNN",
       "9.19",
       "9.20.1",
       "/opt/cudnn/libcudnn.so.9",
       "",
       "",
       {"/usr/lib/libcudnn.so.9: it is too old"}},
      {"NVRTC", "13.0", "12.8", "/opt/cuda/libnvrtc.so.13", "it is too old", "a newer one"},
      {"NCCL", "2.28", "", "", "libnccl.so.2 is not in /opt", "install NCCL"}};
  return report;
}

TEST(MpiText, WithAndWithout) {
  MpiReport mpi;
  mpi.usable = true;
  mpi.version = "Open MPI v4.1.4";
  mpi.file = "/opt/lib/libtandem_mpi.so";
  mpi.launcher = "/usr/bin/mpirun";
  EXPECT_EQ(mpi_text(mpi),
            "mpi       Open MPI v4.1.4\n          plug-in  /opt/lib/libtandem_mpi.so\n"
            "          mpirun   /usr/bin/mpirun\n");
  EXPECT_EQ(mpi_json(mpi)["version"], "Open MPI v4.1.4");
  const MpiReport none{.problem = "there is no libtandem_mpi.so", .fix = "install MPI"};
  EXPECT_EQ(mpi_text(none),
            "mpi       no runs of several processes: there is no libtandem_mpi.so\n"
            "          fix: install MPI\n"
            "          no mpirun in PATH; fix: apt-get install openmpi-bin, or Slurm's srun\n");
  EXPECT_EQ(mpi_json(none)["fix"], "install MPI");
}

TEST(CudaText, ABuildWithout) {
  EXPECT_EQ(cuda_text(without_cuda()),
            "cuda      not in this build\n          fix: build it with CUDA\n");
  EXPECT_EQ(cuda_json(without_cuda()), "not in this build");
}

TEST(CudaText, AMachineWithout) {
  EXPECT_EQ(cuda_text(without_driver()),
            "cuda      built with 13.0; no GPU can be used: this machine has no NVIDIA driver\n"
            "          fix: install one\n");
  const Json json = cuda_json(without_driver());
  EXPECT_EQ(json["toolkit"], "13.0");
  EXPECT_EQ(json["driver"], "");
  EXPECT_EQ(json["problem"], "this machine has no NVIDIA driver");
  EXPECT_EQ(json["fix"], "install one");
  EXPECT_EQ(json["cards"], Json::array());
  EXPECT_EQ(json["libraries"], Json::array());
}

TEST(CudaText, GpusAndLibraries) {
  EXPECT_EQ(cuda_text(two_gpus()),
            "cuda      built with 13.0, the driver is for 13.1\n"
            "cuda:0    NVIDIA H100, compute capability 9.0, 80.00 GiB, 79.00 GiB free\n"
            "cuda:1    Tesla P4, compute capability 6.1, 8.00 GiB; cannot be used: it is too old\n"
            "cuDNN     9.20.1 in /opt/cudnn/libcudnn.so.9\n"
            "          skipped: /usr/lib/libcudnn.so.9: it is too old\n"
            "NVRTC     12.8 in /opt/cuda/libnvrtc.so.13; cannot be used: it is too old\n"
            "          fix: a newer one\n"
            "NCCL      cannot be used: libnccl.so.2 is not in /opt\n"
            "          fix: install NCCL\n");
  const Json json = cuda_json(two_gpus());
  EXPECT_EQ(json["driver"], "13.1");
  EXPECT_EQ(json["cards"][0], (Json{{"name", "cuda:0"},
                                    {"card", "NVIDIA H100"},
                                    {"compute_capability", "9.0"},
                                    {"memory_bytes", std::size_t{80} << 30},
                                    {"free_bytes", std::size_t{79} << 30},
                                    {"problem", ""}}));
  EXPECT_EQ(json["cards"][1]["problem"], "it is too old");
  EXPECT_EQ(json["libraries"][1], (Json{{"name", "NVRTC"},
                                        {"needed", "13.0"},
                                        {"version", "12.8"},
                                        {"path", "/opt/cuda/libnvrtc.so.13"},
                                        {"problem", "it is too old"},
                                        {"fix", "a newer one"},
                                        {"passed_over", Json::array()}}));
  EXPECT_EQ(json["libraries"][0]["passed_over"], Json({"/usr/lib/libcudnn.so.9: it is too old"}));
}

TEST(MissingGpu, SaysWhatIsMissing) {
  EXPECT_FALSE(missing_device(two_gpus(), "cuda:0"));
  EXPECT_EQ(missing_device(without_cuda(), "cuda:0")->message, "this build has no CUDA");
  EXPECT_EQ(missing_device(without_driver(), "cuda:0")->message,
            "this machine has no NVIDIA driver");
  EXPECT_EQ(missing_device(without_driver(), "cuda:0")->fix, "install one");
  EXPECT_EQ(missing_device(two_gpus(), "cuda:1")->message,
            "cuda:1 (Tesla P4) cannot be used: it is too old");
  EXPECT_EQ(missing_device(two_gpus(), "cuda:10")->message, "this machine has no cuda:10");
  EXPECT_EQ(missing_device(two_gpus(), "cuda:10")->expected, "cuda:0, cuda:1");
}

/// `TANDEM_WITH_CUDA` is 1 or 0, depending on the build.
TEST(Doctor, SaysWhetherTheBuildHasCuda) {
  const Report report = doctor();
  const Json json = Json::parse(report.json);
  ASSERT_TRUE(json.contains("cuda"));
  if (TANDEM_WITH_CUDA == 0) {
    EXPECT_THAT(report.text, HasSubstr("\ncuda      not in this build\n"));
    EXPECT_EQ(json["cuda"], "not in this build");
    return;
  }
  EXPECT_THAT(report.text, HasSubstr("\ncuda      built with 13."));
  EXPECT_THAT(json["cuda"]["toolkit"].get<std::string>(), StartsWith("13."));
  ASSERT_EQ(json["cuda"]["libraries"].size(), 4u);
  for (const Json& library : json["cuda"]["libraries"]) {
    EXPECT_THAT(report.text, HasSubstr("\n" + library["name"].get<std::string>() + " "));
    if (library["problem"] == "") {
      EXPECT_NE(library["version"], "");
      EXPECT_NE(library["path"], "");
    } else {
      EXPECT_NE(library["fix"], "");
    }
  }
  if (json["cuda"]["problem"] == "") {
    EXPECT_FALSE(json["cuda"]["cards"].empty());
  } else {
    EXPECT_NE(json["cuda"]["fix"], "");
  }
}

}  // namespace
}  // namespace tandem::api
