// Operators' cases on the GPU's kernels: smoke, and parity in float32, TF32 and 16 bits.
#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <stdexcept>

#include "engine/graph/error.h"
#include "tests/cuda/gpu_check/distance.h"
#include "tests/cuda/gpu_check/stages.h"
#include "tests/harness/layout_variants.h"
#include "tests/harness/typed_case.h"

namespace tandem::gpu_check {
namespace {

using testing::in_range_of;
using testing::OperatorCase;
using testing::RunOptions;
using testing::TypedCase;

const OperatorSet& operators() {
  static const OperatorSet set = all_operators();
  return set;
}

/// How much more Winograd's transforms round than direct sums. The rules of plans allow F(2x2, 3x3)
/// in float32: Y = A^T ((G g G^T) * (B^T d B)) A, where rows of B^T, G and A^T add up to 2, 3/2 and
/// 3 in magnitude, each applied twice. An output is then bounded by (2 * 3/2 * 3)^2 = 81 max|d|
/// max|g| a channel instead of 9, and so is the rounding of its sums.
constexpr double winograd_growth = 9;

/// Limit of the norm-relative error in one type. A case's sums of k products in float32 are rounded
/// by about sqrt(k) 2^-24 of their norm: 4e-6 for k = 4096. `tolerance` is 1e-4 for longer sums.
double limit_of(const OperatorCase& c, const Kernel& kernel, DType computed, bool tf32) {
  const bool winograd = kernel.name.starts_with("cudnn.conv");
  switch (computed) {
    case DType::float16:
      return 2e-3;
    case DType::bfloat16:
      return 1e-2;
    default:
      if (tf32) return std::max(c.tolerance, 1e-3);
      return std::max(c.tolerance, 1e-5) * (winograd ? winograd_growth : 1);
  }
}

std::string name_of_check(const OperatorCase& c, const Kernel& kernel, DType computed, bool tf32) {
  return c.op + "/" + c.name + " " + kernel.name + " " +
         (tf32 ? "float32 by TF32" : std::string(tandem::name_of(computed)));
}

/// Whether TF32 changes the kernel's arithmetic; it does not for Tandem's own kernels.
bool is_of_library(const Kernel& kernel) { return !kernel.name.starts_with("cuda."); }

/// The largest distance among the outputs of a run.
double worst_distance(const std::vector<HostTensor>& results,
                      const std::vector<HostTensor>& expected) {
  if (results.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < results.size(); ++i)
    worst = std::max(worst, distance(results[i], in_range_of(results[i].dtype(), expected[i])));
  return worst;
}

/// Whether an element that should be a number still has every bit set, as it had before the run.
bool has_unwritten(const std::vector<HostTensor>& results,
                   const std::vector<HostTensor>& expected) {
  for (std::size_t o = 0; o < results.size(); ++o) {
    const std::size_t size = size_of(results[o].dtype());
    const auto* bytes = static_cast<const unsigned char*>(results[o].data());
    for (std::int64_t i = 0; i < results[o].type().elements(); ++i) {
      const double wanted = expected[o].number(i);
      if (std::isnan(wanted) || wanted == results[o].number(i)) continue;
      const auto* element = bytes + static_cast<std::size_t>(i) * size;
      if (std::all_of(element, element + size, [](unsigned char b) { return b == 0xff; }))
        return true;
    }
  }
  return false;
}

class OperatorChecks {
 public:
  OperatorChecks(CheckGpu& gpu, const Options& options, Report& report)
      : gpu_(gpu), options_(options), report_(report) {}

  /// Calls `check(typed, kernel, name, limit)` for every kernel that takes the case.
  template <class Check>
  void each(const std::vector<OperatorCase>& cases, DType computed, Check check) {
    for (const OperatorCase& c : cases) {
      if (!is_wanted(options_, c.op + "/" + c.name)) continue;
      std::optional<TypedCase> typed;
      for (const Kernel& kernel : gpu_.kernels()) {
        if (kernel.op != c.op || (tf32() && !is_of_library(kernel))) continue;
        const std::string name = name_of_check(c, kernel, computed, tf32());
        bool is_over = false;  // the case is done, whatever the kernel
        const auto check_kernel = [&] {
          if (!typed) {
            Graph graph;
            try {
              graph = case_graph(c, operators(), computed);
            } catch (const Error&) {
              if (computed == DType::float32) throw;
              ++formless_;
              is_over = true;
              return;
            }
            if (!any_takes(graph)) {
              ++untaken_;
              is_over = true;
              return;
            }
            typed.emplace(c, operators(), computed);
          }
          if (gpu_.takes(kernel, typed->graph))
            check(*typed, kernel, name, limit_of(c, kernel, computed, tf32()));
        };
        report_.run(name, check_kernel, [&] { return gpu_.is_broken(); });
        if (is_over) break;
      }
    }
  }

  void tell_untaken() {
    report_.value("cases that no kernel of the GPU takes", untaken_, "cases");
    report_.value("cases that cannot be written in the type", formless_, "cases");
  }

 private:
  bool tf32() const { return gpu_.gpu().allow_tf32; }
  bool any_takes(const Graph& graph) const {
    return std::any_of(gpu_.kernels().begin(), gpu_.kernels().end(),
                       [&](const Kernel& kernel) { return gpu_.takes(kernel, graph); });
  }

  CheckGpu& gpu_;
  const Options& options_;
  Report& report_;
  int untaken_ = 0, formless_ = 0;
};

std::vector<HostTensor> run_on_gpu(CheckGpu& gpu, const Kernel& kernel, const TypedCase& typed,
                                   const RunOptions& options) {
  std::vector<HostTensor> results =
      run_node(kernel, typed.graph, typed.node(), typed.inputs, options);
  gpu.synchronize();
  return results;
}

/// The largest distance among all layouts; `at`: the name of that layout.
double worst_of_layouts(CheckGpu& gpu, const Kernel& kernel, const TypedCase& typed,
                        bool all_layouts, std::string& at) {
  double worst = -1;
  for (const testing::LayoutVariant& variant : testing::layout_variants) {
    RunOptions options = gpu.run_options();
    for (const HostTensor& x : typed.inputs)
      options.input_layouts.push_back(variant.layout(x.shape()));
    for (const HostTensor& y : typed.expected)
      options.output_layouts.push_back(variant.layout(y.shape()));
    const double found = worst_distance(run_on_gpu(gpu, kernel, typed, options), typed.expected);
    if (!(found <= worst)) {
      worst = found;
      at = variant.name;
    }
    if (!all_layouts) break;
  }
  return worst;
}

void check_types(CheckGpu& gpu, const Options& options, Report& report,
                 const std::vector<DType>& types) {
  OperatorChecks checks(gpu, options, report);
  const auto check = [&](bool all_layouts) {
    return [&, all_layouts](const TypedCase& typed, const Kernel& kernel, const std::string& name,
                            double limit) {
      std::string at;
      const double worst = worst_of_layouts(gpu, kernel, typed, all_layouts, at);
      report.measured(name + ", " + at, worst, limit);
    };
  };
  for (const DType type : types) {
    checks.each(testing::all_cases(), type, check(true));
    if (!options.small) checks.each(large_cases(), type, check(false));
  }
  checks.tell_untaken();
}

}  // namespace

void run_smoke(CheckGpu& gpu, const Options& options, Report& report) {
  OperatorChecks checks(gpu, options, report);
  checks.each(testing::all_cases(), DType::float32,
              [&](const TypedCase& typed, const Kernel& kernel, const std::string& name, double) {
                const auto results = run_on_gpu(gpu, kernel, typed, gpu.run_options());
                if (has_unwritten(results, typed.expected)) {
                  report.failed(name, "an element of an output was not written");
                } else {
                  report.passed(name);
                }
              });
  checks.tell_untaken();
}

void run_parity(CheckGpu& gpu, const Options& options, Report& report) {
  check_types(gpu, options, report, {DType::float32});
}

void run_parity_tf32(CheckGpu& gpu, const Options& options, Report& report) {
  if (!gpu.gpu().allow_tf32) throw std::logic_error("the GPU is made without TF32");
  check_types(gpu, options, report, {DType::float32});
}

void run_parity16(CheckGpu& gpu, const Options& options, Report& report) {
  check_types(gpu, options, report, {DType::float16, DType::bfloat16});
}

}  // namespace tandem::gpu_check
