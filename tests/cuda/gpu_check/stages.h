// The stages of the GPU check. Each reports to `report` and throws only what ends the stage.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_devices.h"
#include "tests/cuda/gpu_check/check_gpu.h"
#include "tests/cuda/gpu_check/report.h"

namespace tandem::gpu_check {

/// Options of the command line.
struct Options {
  std::string only;  // part of a check's name, or several: A|B; "": all
  /// Only checks after this one, at which the stage was stopped; "": all.
  std::string after;
  std::string out = ".";       // folder for files
  std::string models;          // folder of exported networks
  std::string fixtures;        // folder that holds tests/data/parity and models/wide_deep
  std::string use = "cuda:0";  // `use` in policies
  double seconds = 3;          // how long to time steps
  int steps = 20;              // steps of a training
  bool small = false;          // only operators' own cases and short measurements
  bool tf32 = false;           // for `times`: float32 models with TF32
  std::function<std::unique_ptr<Device>(const CudaOptions&)> make_gpu = make_cuda_device;
  std::function<bool()> is_broken = [] { return false; };  // the GPU of whole trainings
};

inline bool is_wanted(const Options& options, const std::string& check) {
  for (std::size_t begin = 0;;) {
    const std::size_t end = options.only.find('|', begin);
    if (check.find(options.only.substr(begin, end - begin)) != std::string::npos) return true;
    if (end == std::string::npos) return false;
    begin = end + 1;
  }
}

// Stages that run on one GPU.
void run_environment(CheckGpu& gpu, const Options& options, Report& report);
/// Every kernel once for each case, row-major; outputs hold NaN before, guards lie around all
/// operands.
void run_smoke(CheckGpu& gpu, const Options& options, Report& report);
/// Every kernel in all layouts against the double reference: float32, and larger cases.
void run_parity(CheckGpu& gpu, const Options& options, Report& report);
/// The libraries' kernels in float32, on a GPU that is made with TF32.
void run_parity_tf32(CheckGpu& gpu, const Options& options, Report& report);
/// All kernels in float16 and bfloat16.
void run_parity16(CheckGpu& gpu, const Options& options, Report& report);
/// A kernel and copies both ways at once, each of about the same length.
void run_overlap(CheckGpu& gpu, const Options& options, Report& report);
/// Seconds of the loads of `run_overlap`: each by itself, both copies at once, all at once.
struct OverlapTimes {
  double products = 0, copy_in = 0, copy_out = 0, host = 0, copies = 0, all = 0;
};
/// Makes two checks: that the copies overlap each other, and that everything overlaps.
void judge_overlap(const OverlapTimes& times, const std::string& check, Report& report);
/// Kernels in a graph give the same results as launched one by one.
void run_captured(CheckGpu& gpu, const Options& options, Report& report);
void run_nccl(CheckGpu& gpu, const Options& options, Report& report);

// Stages that run whole trainings through the library.
void run_gradients(const Options& options, Report& report);
void run_graphs(const Options& options, Report& report);
void run_partitions(const Options& options, Report& report);
/// Whether a step of Wide & Deep with its tables on the host overlaps its parts, by the run's own
/// trace.
void run_trace_overlap(const Options& options, Report& report);
/// In a Chrome trace: the time from the first span to the last, over the busy time of the busiest
/// track.
double wall_by_longest(const Json& trace);

void run_times(const Options& options, Report& report);
std::vector<std::string> workload_names();

/// Cases in addition to the operators' own: shapes of several blocks and long sums.
std::vector<testing::OperatorCase> large_cases();

}  // namespace tandem::gpu_check
