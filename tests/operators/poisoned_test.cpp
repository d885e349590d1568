// NaN and infinities through every kernel: one poisoned element in each operand of every case, on
// all kernels of the CPU and of the emulated device, in every type and layout, against the double
// reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>

#include "engine/graph/error.h"
#include "kernels/emulated/widened.h"
#include "tests/harness/layout_variants.h"
#include "tests/harness/poisoned_case.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

const std::vector<OperatorCase>& cases_to_poison() {
  static const std::vector<OperatorCase> list = all_cases();
  return list;
}

/// The CPU's kernels, and those that the emulated device derives from them for 16 bits.
const KernelList& kernels() {
  static const KernelList list = with_widened(cpu_list());
  return list;
}

/// This processor, and the same processor without its widest vectors.
std::vector<DeviceFacts> processors() {
  std::vector<DeviceFacts> all{host_facts()};
  for (const char* feature : {"avx512", "avx2"}) {
    if (!all.back().has(feature)) continue;
    DeviceFacts fewer = all.back();
    std::erase_if(fewer.features, [&](const std::string& f) { return f.starts_with(feature); });
    all.push_back(std::move(fewer));
  }
  return all;
}

class PoisonedCases : public ::testing::TestWithParam<std::string> {
 protected:
  void check(const OperatorCase& c, DType computed) {
    computed_ = computed;
    Graph graph;
    try {
      graph = case_graph(c, operator_set(), computed);
    } catch (const Error&) {
      return;  // the operator has no such type
    }
    const TypedCase typed(c, operator_set(), computed);
    each_poisoned(c, typed, [&](const PoisonedRun& run) {
      SCOPED_TRACE(std::string(name_of(computed)) + ", " + run.what + ", " + run.place);
      for (const Kernel& kernel : kernels()) {
        if (kernel.op == c.op) check_kernel(c, kernel, typed, run);
      }
    });
  }

  PoisonExceptions exceptions_;

 private:
  void check_kernel(const OperatorCase& c, const Kernel& kernel, const TypedCase& typed,
                    const PoisonedRun& run) {
    SCOPED_TRACE(kernel.name);
    for (const bool only_first_output : {false, true}) {
      bool is_first = true;
      for (const DeviceFacts& facts : processors_) {
        if (!takes_node(kernel, typed.graph, typed.node(), facts, only_first_output)) continue;
        RunOptions options;
        options.facts = &facts;
        options.only_output = only_first_output ? 0 : -1;
        expect_as_reference(c, kernel, typed, run, options, layout_variants[0]);
        constexpr std::size_t others = std::size(layout_variants) - 1;
        if (is_first) {
          expect_as_reference(c, kernel, typed, run, options,
                              layout_variants[1 + turn_++ % others]);
        }
        is_first = false;
        if (kernel.reference) break;
      }
    }
  }

  void expect_as_reference(const OperatorCase& c, const Kernel& kernel, const TypedCase& typed,
                           const PoisonedRun& run, RunOptions options,
                           const LayoutVariant& variant) {
    for (const HostTensor& x : run.inputs)
      options.input_layouts.push_back(variant.layout(x.shape()));
    for (const HostTensor& y : run.expected)
      options.output_layouts.push_back(variant.layout(y.shape()));
    const auto results = run_node(kernel, typed.graph, typed.node(), run.inputs, options);
    const double tolerance = tolerance_of(c, computed_);
    for (const std::string& deviation : deviations(results, run.expected, tolerance)) {
      const std::string line = c.op + " " + kernel.name + " " + run.what + ": " + deviation;
      EXPECT_TRUE(exceptions_.allows(line))
          << line << " (" << variant.name << ", " << options.facts->features.size() << " features)";
    }
  }

  const std::vector<DeviceFacts> processors_ = processors();
  std::size_t turn_ = 0;
  DType computed_ = DType::float32;
};

TEST_P(PoisonedCases, StayPoisonedAsInTheReference) {
  for (const OperatorCase& c : cases_to_poison()) {
    if (c.op != GetParam()) continue;
    SCOPED_TRACE("case " + c.name);
    try {
      for (const DType computed : {DType::float32, DType::float16, DType::bfloat16})
        check(c, computed);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

std::vector<std::string> operators_to_poison() {
  std::vector<std::string> names;
  for (const Operator& op : operator_set().all()) names.push_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, PoisonedCases, ::testing::ValuesIn(operators_to_poison()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace tandem::testing
