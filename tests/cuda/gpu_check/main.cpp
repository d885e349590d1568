// gpu_check STAGE: one stage of tools/gpu_run.sh on the GPU of this machine.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>

#include "kernels/cuda/device/cuda_device.h"
#include "tests/cuda/gpu_check/networks.h"
#include "tests/cuda/gpu_check/stages.h"

namespace tandem::gpu_check {
namespace {

const char* const usage_text =
    "gpu_check STAGE [--json] [--only PART] [--after CHECK] [--out DIR] [--models DIR]\n"
    "                [--fixtures DIR] [--seconds S] [--steps N] [--tf32]\n"
    "  STAGE    env | smoke | parity | parity_tf32 | parity16 | gradients | graphs | partitions | "
    "overlap |\n           nccl | times\n"
    "  --json   JSON lines on standard output\n"
    "  --only   checks whose name contains PART, or one of several: A|B\n"
    "  --after  only what follows CHECK: the one that stopped the stage before\n"
    "  --out    folder for files (default: .)\n"
    "  --models folder of exported networks (default: TANDEM_MODELS, else `models` beside "
    "gpu_check)\n"
    "  --fixtures  small networks and their batches (default: `fixtures` beside gpu_check)\n"
    "  --tf32   times: float32 models with TF32\n"
    "gpu_check list      the workloads of `times`\n"
    "gpu_check fixtures  the small networks that are found, and where\n"
    "exit codes: 0 passed, 1 failed, 2 usage, 3 no GPU, 4 stopped by an error of the GPU, 77 "
    "skipped\n";

using OfGpu = void (*)(CheckGpu&, const Options&, Report&);
using OfTraining = void (*)(const Options&, Report&);

struct Stage {
  std::vector<OfGpu> of_gpu;
  std::vector<OfTraining> of_training;
};

const std::map<std::string, Stage>& stages() {
  static const std::map<std::string, Stage> all{{"env", {{run_environment}, {}}},
                                                {"smoke", {{run_smoke}, {}}},
                                                {"parity", {{run_parity}, {}}},
                                                {"parity_tf32", {{run_parity_tf32}, {}}},
                                                {"parity16", {{run_parity16}, {}}},
                                                {"gradients", {{}, {run_gradients}}},
                                                {"graphs", {{run_captured}, {run_graphs}}},
                                                {"partitions", {{}, {run_partitions}}},
                                                {"overlap", {{run_overlap}, {run_trace_overlap}}},
                                                {"nccl", {{run_nccl}, {}}},
                                                {"times", {{}, {run_times}}}};
  return all;
}

const char* const tf32_stage = "parity_tf32";

/// Sets variables that the runtime and the libraries read when they start.
void set_environment(const std::string& stage) {
  if (stage == "smoke") setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  if (stage == tf32_stage) unsetenv("NVIDIA_TF32_OVERRIDE");
  const bool exact =
      stage != "times" && stage != "env" && stage != "overlap" && stage != tf32_stage;
  if (exact) setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
}

struct Arguments {
  std::string stage;
  bool json = false;
  Options options;
};

/// Path of a file next to this program; in "." if the system does not say where that is.
std::string beside_program(const char* name) {
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return (unknown ? std::filesystem::path(".") : program.parent_path()) / name;
}

bool read(int count, char** words, Arguments& to) {
  if (const char* models = std::getenv("TANDEM_MODELS")) to.options.models = models;
  if (to.options.models.empty()) to.options.models = beside_program("models");
  to.options.fixtures = beside_program("fixtures");
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--json") {
      to.json = true;
    } else if (word == "--tf32") {
      to.options.tf32 = true;
    } else if (word.starts_with("--")) {
      if (++i == count) return false;
      const char* const value = words[i];
      if (word == "--only") {
        to.options.only = value;
      } else if (word == "--after") {
        to.options.after = value;
      } else if (word == "--fixtures") {
        to.options.fixtures = value;
      } else if (word == "--out") {
        to.options.out = value;
      } else if (word == "--models") {
        to.options.models = value;
      } else if (word == "--seconds") {
        to.options.seconds = std::atof(value);
      } else if (word == "--steps") {
        to.options.steps = std::atoi(value);
      } else {
        return false;
      }
    } else if (to.stage.empty()) {
      to.stage = word;
    } else {
      return false;
    }
  }
  const bool known = to.stage == "list" || to.stage == "fixtures" || stages().contains(to.stage);
  return known && to.options.seconds > 0 && to.options.steps > 0 && to.options.steps <= 20;
}

int list_fixtures(const std::string& folder) {
  try {
    for (const Network& network : check_networks(folder))
      std::printf("%s: %s\n", network.name.c_str(), network.model.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_check: %s\n", error.what());
    return Exit::failed;
  }
  return Exit::passed;
}

int run(const Arguments& arguments) {
  const DeviceReport cuda = cuda_gpus();
  if (!cuda.problem.empty()) {
    std::fprintf(stderr, "gpu_check: no GPU can be checked: %s (%s)\n", cuda.problem.c_str(),
                 cuda.fix.c_str());
    return Exit::no_gpu;
  }
  Report report(arguments.stage, arguments.json);
  report.start_after(arguments.options.after);
  const Stage& stage = stages().at(arguments.stage);
  try {
    std::filesystem::create_directories(arguments.options.out);
    for (const OfGpu part : stage.of_gpu) {
      CheckGpu gpu(cuda::make_real_runtime(), cuda::make_real_libraries(), 0,
                   arguments.stage == tf32_stage, cuda::own_cache_folder());
      part(gpu, arguments.options, report);
    }
    for (const OfTraining part : stage.of_training) part(arguments.options, report);
  } catch (const Stopped&) {  // the report has the check's name
  } catch (const std::exception& error) {
    report.failed("the stage", error.what());
  }
  return report.finish();
}

}  // namespace
}  // namespace tandem::gpu_check

int main(int count, char** words) {
  using namespace tandem::gpu_check;
  Arguments arguments;
  if (!read(count, words, arguments)) {
    std::fputs(usage_text, stderr);
    return Exit::usage;
  }
  if (arguments.stage == "list") {
    for (const std::string& name : workload_names()) std::printf("%s\n", name.c_str());
    return 0;
  }
  if (arguments.stage == "fixtures") return list_fixtures(arguments.options.fixtures);
  set_environment(arguments.stage);
  arguments.options.is_broken = [] {
    return tandem::cuda::make_real_runtime()->synchronize_gpu() != cudaSuccess;
  };
  return run(arguments);
}
