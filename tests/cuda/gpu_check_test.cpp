// The stages of the GPU check over the fake runtime: they pass if all is well, and fail if a
// result, a guard or an input is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "engine/operators/operator.h"
#include "tests/cuda/gpu_check/distance.h"
#include "tests/cuda/gpu_check/stages.h"
#include "tests/cuda/gpu_check/timing.h"
#include "tests/cuda/support/fake_libraries.h"
#include "tests/cuda/support/fake_nvrtc.h"
#include "tests/cuda/support/stage_said.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::gpu_check {
namespace {

using ::testing::HasSubstr;

using Stage = void (*)(CheckGpu&, const Options&, Report&);

/// A `prepare` that runs the kernel and then `harm`.
auto followed_by(const Kernel& kernel, std::function<void(const KernelArguments&)> harm) {
  return [prepare = kernel.prepare, harm](const KernelRequest& request) {
    std::shared_ptr<PreparedKernel> inner = prepare(request);
    return prepared(
        [inner, harm](const KernelArguments& arguments) {
          inner->run(arguments);
          harm(arguments);
        },
        inner->workspace_bytes);
  };
}

struct FakeCheck {
  explicit FakeCheck(testing::FakeRuntimeOptions options = {}, bool tf32 = false)
      : runtime(std::make_shared<testing::FakeRuntime>(std::move(options))),
        libraries(std::make_shared<testing::FakeLibraries>(runtime)) {
    libraries->compiler = &testing::fake_nvrtc();
    gpu = std::make_unique<CheckGpu>(runtime, libraries, 0, tf32);
  }

  Said run(Stage stage, const std::string& only, const std::string& out = ".",
           const std::string& after = "") {
    Options options;
    options.only = only;
    options.small = true;
    options.out = out;
    return said_by([&](Report& report) { stage(*gpu, options, report); }, after);
  }

  /// Makes every kernel of that operator run `harm` at its end.
  void spoil_all(const std::string& op, std::function<void(const KernelArguments&)> harm) {
    KernelList spoiled;
    for (Kernel kernel : gpu->kernels()) {
      if (kernel.op == op) kernel.prepare = followed_by(kernel, harm);
      spoiled.push_back(std::move(kernel));
    }
    gpu->replace_kernels(std::move(spoiled));
  }

  /// Adds, in front of the others, a copy of the GPU's first kernel of that operator that runs
  /// `harm` at its end. Its name is "spoiled".
  void spoil(const std::string& op, std::function<void(const KernelArguments&)> harm) {
    for (const Kernel& kernel : gpu->kernels()) {
      if (kernel.op != op) continue;
      Kernel spoiled = kernel;
      spoiled.name = "spoiled";
      spoiled.prepare = followed_by(kernel, harm);
      return gpu->add_kernel(std::move(spoiled));
    }
    FAIL() << "no kernel of " << op;
  }

  std::shared_ptr<testing::FakeRuntime> runtime;
  std::shared_ptr<testing::FakeLibraries> libraries;
  std::unique_ptr<CheckGpu> gpu;
};

/// Returns a `harm` that adds to a float on the GPU; a NaN becomes the amount.
auto adding(testing::FakeRuntime& runtime, std::function<const void*(const KernelArguments&)> where,
            float amount) {
  return [&runtime, where, amount](const KernelArguments& arguments) {
    const void* const address = where(arguments);
    const auto stream = static_cast<cudaStream_t>(arguments.queue);
    float value = 0;
    runtime.synchronize(stream);
    runtime.copy_now(&value, address, sizeof value);
    value = std::isnan(value) ? amount : value + amount;
    runtime.copy_now(const_cast<void*>(address), &value, sizeof value);
  };
}

const void* first_output(const KernelArguments& arguments) { return arguments.outputs[0]; }

TEST(GpuCheck, SmokePassesAndTouchesTheGpuOnlyByKernelsAndCopies) {
  FakeCheck check;
  const Said said = check.run(run_smoke, "Softmax/");
  EXPECT_EQ(said.code, 0) << said.verdict;
  EXPECT_GT(said.verdict["checks"], 3);
  EXPECT_EQ(check.runtime->problems(), std::vector<std::string>());
}

TEST(GpuCheck, ParityPasses) {
  FakeCheck check;
  for (const char* only : {"MatMul/", "Add/", "UniqueIndices/", "LayerNormalization/"}) {
    const Said said = check.run(run_parity, only);
    EXPECT_EQ(said.code, 0) << only << said.verdict;
    EXPECT_GT(said.verdict["checks"], 3) << only;
    ASSERT_FALSE(said.verdict["worst"].empty());
    EXPECT_LE(said.verdict["worst"].size(), 10u);
  }
  const Said halves = check.run(run_parity16, "Relu/");
  EXPECT_EQ(halves.code, 0) << halves.verdict;
  EXPECT_GT(halves.verdict["checks"], 1);
  EXPECT_EQ(check.runtime->problems(), std::vector<std::string>());
}

TEST(GpuCheck, ParityInTf32IsOfTheLibrariesAlone) {
  FakeCheck check({}, true);
  for (const char* only : {"MatMul/", "Gemm/", "Conv/"}) {
    const Said said = check.run(run_parity_tf32, only);
    EXPECT_EQ(said.code, 0) << only << said.verdict;
    EXPECT_GT(said.verdict["checks"], 3) << only;
    for (const Json& line : said.lines) {
      if (!line.contains("check")) continue;
      const std::string name = line["check"];
      EXPECT_THAT(name, HasSubstr(" float32 by TF32"));
      EXPECT_EQ(name.find(" cuda."), std::string::npos) << name;
      EXPECT_GE(line["limit"].get<double>(), 1e-3);
    }
  }
  ASSERT_FALSE(check.libraries->lt.questions().empty());
  for (const testing::LtProblem& asked : check.libraries->lt.questions()) {
    // Whether kernels take a node is also asked for 16 bits.
    if (asked.a.type != CUDA_R_32F) continue;
    EXPECT_EQ(asked.operation.compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  }
  ASSERT_FALSE(check.libraries->dnn.runs().empty());
  for (const testing::CudnnRun& run : check.libraries->dnn.runs())
    EXPECT_EQ(run.engine, 0) << "the one with tensor cores";
}

TEST(GpuCheck, ParityInTf32FailsWhereAResultIsWrong) {
  FakeCheck check({}, true);
  check.spoil("MatMul", adding(*check.runtime, first_output, 1.0f));
  const Said said = check.run(run_parity_tf32, "MatMul/");
  EXPECT_EQ(said.code, Exit::failed);
  EXPECT_GT(said.verdict["failed"], 0);
}

TEST(GpuCheck, ParityInTf32NeedsAGpuThatMay) {
  FakeCheck exact;
  EXPECT_THROW(exact.run(run_parity_tf32, "MatMul/"), std::logic_error);
}

TEST(GpuCheck, ParityFailsWhereAResultIsWrong) {
  FakeCheck check;
  check.spoil("Add", adding(*check.runtime, first_output, 1e-3f));
  const Said said = check.run(run_parity, "Add/");
  EXPECT_EQ(said.code, Exit::failed);
  EXPECT_GT(said.verdict["failed"], 0);
  bool named = false;
  for (const Json& line : said.lines) {
    if (!line.contains("check") || line["ok"] == true) continue;
    named = true;
    EXPECT_THAT(line["check"].get<std::string>(), HasSubstr("spoiled"));
  }
  EXPECT_TRUE(named);
}

TEST(GpuCheck, SmokeFailsWhereAnythingOutsideIsWritten) {
  FakeCheck past;
  past.spoil("Add", adding(
                        *past.runtime,
                        [](const KernelArguments& arguments) -> const void* {
                          return static_cast<const std::byte*>(arguments.outputs[0]) - 64;
                        },
                        1));
  const Said outside = past.run(run_smoke, "Add/");
  EXPECT_EQ(outside.code, Exit::failed);
  EXPECT_THAT(outside.verdict["why"].get<std::string>(), HasSubstr("outside of output 0"));
}

TEST(GpuCheck, SmokeFailsWhereAnInputIsWritten) {
  FakeCheck input;
  input.spoil("Add", adding(
                         *input.runtime,
                         [](const KernelArguments& arguments) { return arguments.inputs[0]; }, 1));
  const Said written = input.run(run_smoke, "Add/");
  EXPECT_EQ(written.code, Exit::failed);
  EXPECT_THAT(written.verdict["why"].get<std::string>(), HasSubstr("writes to input 0"));
}

TEST(GpuCheck, SmokeFailsWhereNothingIsWritten) {
  FakeCheck check;
  check.spoil("Add", [&](const KernelArguments& arguments) {
    const std::uint32_t poison = 0xffffffff;
    check.runtime->synchronize(static_cast<cudaStream_t>(arguments.queue));
    check.runtime->copy_now(arguments.outputs[0], &poison, sizeof poison);
  });
  const Said said = check.run(run_smoke, "Add/");
  EXPECT_EQ(said.code, Exit::failed);
  EXPECT_THAT(said.verdict["why"].get<std::string>(), HasSubstr("not written"));
}

TEST(GpuCheck, FailsWhereACallFails) {
  FakeCheck check;
  check.runtime->fail("launch", 1, cudaErrorInvalidConfiguration);
  const Said said = check.run(run_smoke, "Add/");
  EXPECT_EQ(said.code, Exit::failed);
  EXPECT_EQ(said.verdict["failed"], 1);  // the stage continues
  EXPECT_GT(said.verdict["checks"], 1);
}

// After an error of the GPU, CUDA fails all later calls of the process.
TEST(GpuCheck, AnErrorOfTheGpuStopsTheStageAndAnotherProcessGoesOn) {
  const char* const only = "Softmax/";
  const Said whole = FakeCheck().run(run_smoke, only);
  ASSERT_EQ(whole.code, 0);
  std::vector<std::string> names;
  for (const Json& line : whole.lines) {
    if (line.contains("check")) names.push_back(line["check"]);
  }
  ASSERT_GT(names.size(), 3u);

  std::optional<FakeCheck> broken(std::in_place);  // only one can exist at a time
  int runs = 0;
  broken->spoil_all("Softmax", [&](const KernelArguments& arguments) {
    if (++runs != 2) return;
    broken->runtime->fail_kernel("spoil");
    broken->runtime->enqueue(static_cast<cudaStream_t>(arguments.queue), "spoil", [] {});
  });
  const Said stopped = broken->run(run_smoke, only);
  EXPECT_EQ(stopped.code, Exit::stopped);
  EXPECT_EQ(stopped.verdict["verdict"], "failed");
  EXPECT_EQ(stopped.verdict["stopped_at"], names[1]);
  EXPECT_EQ(stopped.verdict["checks"], 2);
  EXPECT_EQ(stopped.verdict["failed"], 1);
  broken.reset();

  FakeCheck next;
  const Said rest = next.run(run_smoke, only, ".", names[1]);
  EXPECT_EQ(rest.code, 0) << rest.verdict;
  EXPECT_EQ(rest.verdict["checks"], names.size() - 2);
  EXPECT_EQ(rest.find(names[1]), nullptr);
  EXPECT_EQ(next.run(run_smoke, only, ".", names.back()).code, 0) << "nothing is left";
  const Said unknown = next.run(run_smoke, only, ".", "another check");
  EXPECT_EQ(unknown.code, Exit::failed);
  EXPECT_EQ(unknown.verdict["why"], "there is no check another check");
}

TEST(GpuCheck, NothingCheckedIsAFailure) {
  Report report("stage", true, [](const std::string&) {});
  EXPECT_EQ(report.finish(), Exit::failed);
  Report skipping("stage", true, [](const std::string&) {});
  skipping.skipped("a", "not here");
  EXPECT_EQ(skipping.finish(), Exit::skipped);
  Report nan("stage", true, [](const std::string&) {});
  nan.measured("a", NAN, 1);
  EXPECT_EQ(nan.finish(), Exit::failed);
}

TEST(GpuCheck, LargeCasesAreCasesOfTheOperators) {
  const OperatorSet operators = all_operators();
  std::set<std::string> names;
  for (const testing::OperatorCase& c : large_cases()) {
    EXPECT_NO_THROW(verify(case_graph(c, operators, DType::float32))) << c.op << c.name;
    EXPECT_TRUE(names.insert(c.op + c.name).second) << c.op << c.name;
    EXPECT_LE(c.tolerance, 1e-4);
  }
  EXPECT_GT(names.size(), 20u);
}

// Compiling takes most of a stage's time: five layouts, two types and later stages share it.
TEST(GpuCheck, KernelsAreCompiledOnceForAllStages) {
  const testing::TemporaryFolder folder;
  const auto files = [&] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      count += entry.is_regular_file() ? 1 : 0;
    return static_cast<int>(count);
  };
  FakeCheck check;
  const int before = testing::fake_nvrtc_compiled;
  const auto run_on_another_gpu = [&] {
    check.gpu.reset();
    check.gpu = std::make_unique<CheckGpu>(check.runtime, check.libraries, 0, false, folder.path());
    for (const char* only : {"Fused/", "Attention/"}) {
      const Said said = check.run(run_parity16, only);
      EXPECT_EQ(said.code, 0) << said.verdict;
      EXPECT_GT(said.verdict["checks"], 3);
    }
  };
  run_on_another_gpu();
  const int made = check.libraries->dnn.plans_made();
  const int compiled = testing::fake_nvrtc_compiled - before;
  EXPECT_GT(made, 0);
  EXPECT_GT(compiled, 0);
  EXPECT_EQ(files(), made + compiled) << "each graph and each source once";
  run_on_another_gpu();
  EXPECT_EQ(check.libraries->dnn.plans_made(), made);
  EXPECT_EQ(testing::fake_nvrtc_compiled - before, compiled);
}

// The chunks of a long row are summed in shared memory: no case of the operators has such a row.
TEST(GpuCheck, LargeCasesReachRowsOfManyPositions) {
  FakeCheck check;
  Options options;
  options.only = "/large 300 equal ids";
  const Said said = said_by([&](Report& report) { run_parity(*check.gpu, options, report); });
  EXPECT_EQ(said.code, 0) << said.verdict;
  EXPECT_EQ(said.verdict["checks"], 6);  // GatherGrad has another kernel, too
  EXPECT_EQ(check.runtime->problems(), std::vector<std::string>());
  const std::vector<std::string> calls = check.runtime->calls();
  EXPECT_EQ(std::count_if(calls.begin(), calls.end(),
                          [](const std::string& call) {
                            return call.starts_with("launch finish long rows");
                          }),
            4);
}

// Simulates Winograd's F(2x2, 3x3) in float32 with random numbers: its error is a few times that of
// direct sums, and the limit of a convolution allows both.
TEST(GpuCheck, ConvolutionsMayBeWinograds) {
  FakeCheck check;
  const Said said = check.run(run_parity, "Conv/");
  EXPECT_EQ(said.code, 0) << said.verdict;
  double limit = 0;
  for (const Json& line : said.lines) {
    if (!line.contains("limit")) continue;
    const bool is_cudnn = line["check"].get<std::string>().find(" cudnn.conv") != std::string::npos;
    const double own = line["limit"];
    EXPECT_GE(own, is_cudnn ? 9e-5 : 1e-5) << line;
    EXPECT_LE(own, 1e-4) << line;
    if (is_cudnn) limit = own;
  }
  ASSERT_GT(limit, 0);
  constexpr int channels = 512;
  const float bt[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
  const float gt[4][3] = {{1, 0, 0}, {.5f, .5f, .5f}, {.5f, -.5f, .5f}, {0, 0, 1}};
  const float at[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
  std::uint32_t state = 7;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  };
  double winograd_error = 0, direct_error = 0, norm = 0;
  for (int tile = 0; tile < 50; ++tile) {
    float sums[4][4] = {}, direct[2][2] = {};
    double exact[2][2] = {};
    for (int c = 0; c < channels; ++c) {
      float d[4][4], g[3][3], half_d[4][4] = {}, half_g[4][3] = {};
      for (auto& row : d) std::generate(std::begin(row), std::end(row), next);
      for (auto& row : g) std::generate(std::begin(row), std::end(row), next);
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
          for (int k = 0; k < 9; ++k) {
            const float x = d[i + k / 3][j + k % 3], w = g[k / 3][k % 3];
            direct[i][j] += x * w;
            exact[i][j] += static_cast<double>(x) * static_cast<double>(w);
          }
        }
      }
      for (int i = 0; i < 4; ++i) {
        for (int k = 0; k < 4; ++k) {
          for (int j = 0; j < 4; ++j) half_d[i][j] += bt[i][k] * d[k][j];
          for (int j = 0; k < 3 && j < 3; ++j) half_g[i][j] += gt[i][k] * g[k][j];
        }
      }
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          float v = 0, u = 0;
          for (int k = 0; k < 4; ++k) v += half_d[i][k] * bt[j][k];
          for (int k = 0; k < 3; ++k) u += half_g[i][k] * gt[j][k];
          sums[i][j] += u * v;
        }
      }
    }
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        float y = 0;
        for (int k = 0; k < 16; ++k) y += at[i][k / 4] * sums[k / 4][k % 4] * at[j][k % 4];
        winograd_error += std::pow(static_cast<double>(y) - exact[i][j], 2);
        direct_error += std::pow(static_cast<double>(direct[i][j]) - exact[i][j], 2);
        norm += exact[i][j] * exact[i][j];
      }
    }
  }
  winograd_error = std::sqrt(winograd_error / norm);
  direct_error = std::sqrt(direct_error / norm);
  EXPECT_LT(winograd_error, 9 * direct_error);
  EXPECT_LT(winograd_error, limit);
}

TEST(GpuCheck, DistanceIsOfNorms) {
  const HostTensor b = HostTensor::from<float>({3}, {3, 0, 4});
  EXPECT_EQ(distance(b, b), 0);
  EXPECT_NEAR(distance(HostTensor::from<float>({3}, {3, 0.5, 4}), b), 0.1, 1e-9);
  EXPECT_EQ(distance(HostTensor::from<float>({3}, {NAN, 0, 4}), b), HUGE_VAL);
  EXPECT_EQ(distance(HostTensor::from<float>({2}, {3, 0}), b), HUGE_VAL);
  const HostTensor ids = HostTensor::from<std::int64_t>({2}, {1, 1000000});
  const HostTensor other = HostTensor::from<std::int64_t>({2}, {1, 1000001});
  EXPECT_EQ(distance(other, ids), HUGE_VAL);
}

TEST(GpuCheck, EnvironmentTellsRates) {
  FakeCheck check;
  const testing::TemporaryFolder folder;
  const Said said = check.run(run_environment, "", folder.path());
  std::set<std::string> values;
  for (const Json& line : said.lines) {
    if (!line.contains("value")) continue;
    values.insert(line["value"].get<std::string>());
    EXPECT_GT(line["number"].get<double>(), 0) << line;
  }
  EXPECT_TRUE(values.contains("pinned host to GPU"));
  EXPECT_TRUE(values.contains("GPU to pinned host"));
  EXPECT_GE(values.size(), 6u);  // with three products
}

TEST(GpuCheck, CapturedProductIsThatOfTheLaunches) {
  FakeCheck check;
  const Said said = check.run(run_captured, "");
  EXPECT_EQ(said.code, 0) << said.verdict;
  EXPECT_EQ(check.runtime->problems(), std::vector<std::string>());
}

// The fake runs work when it is enqueued, so the measured times depend on this machine.
TEST(GpuCheck, OverlapMakesBothChecks) {
  FakeCheck check;
  const testing::TemporaryFolder folder;
  const Said said = check.run(run_overlap, "", folder.path());
  EXPECT_EQ(said.verdict["checks"], 2);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/overlap_trace.json"));
}

TEST(GpuCheck, OverlapIsJudgedByTheLongestLoad) {
  const auto judged = [](const OverlapTimes& times) {
    return said_by([&](Report& report) { judge_overlap(times, "at once", report); });
  };
  const OverlapTimes overlapped{
      .products = 30, .copy_in = 29, .copy_out = 31, .host = 30, .copies = 40, .all = 42};
  EXPECT_EQ(judged(overlapped).code, Exit::passed);

  OverlapTimes times = overlapped;
  times.all = 120;  // one load after the other
  EXPECT_EQ(judged(times).verdict["failed"], 1);
  times.copies = 60;
  EXPECT_EQ(judged(times).verdict["failed"], 2);
  times.all = 62;  // only the copies take turns
  EXPECT_EQ(judged(times).verdict["failed"], 1);
}

TEST(GpuCheck, TracesAreMeasuredByTheirBusiestTrack) {
  const auto span = [](int track, double from, double seconds) {
    return Json{{"ph", "X"}, {"tid", track}, {"ts", from}, {"dur", seconds}};
  };
  // Track 1 is busy for 60 of 100, with one span inside another; track 2 is busy for 50.
  const Json trace{{"traceEvents",
                    {span(1, 0, 40), span(1, 10, 20), span(1, 80, 20), span(2, 30, 50),
                     Json{{"ph", "M"}, {"tid", 3}}}}};
  EXPECT_NEAR(wall_by_longest(trace), 100.0 / 60, 1e-12);
}

TEST(GpuCheck, NcclIsSkippedWhereItIsMissing) {
  FakeCheck check;
  const Said said = check.run(run_nccl, "");
  EXPECT_EQ(said.code, Exit::skipped);
}

}  // namespace
}  // namespace tandem::gpu_check
