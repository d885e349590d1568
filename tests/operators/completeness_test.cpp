// Every operator has a gradient or a reason against one, a reference kernel, and cases that try all
// of it; docs/operators.md agrees with the code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>

#include "engine/formats/files.h"
#include "tests/harness/checked_gradients.h"
#include "tests/harness/folders.h"
#include "tests/harness/operator_case.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

std::vector<OperatorCase> cases_of(const Operator& op) {
  static const std::vector<OperatorCase> all = all_cases();
  std::vector<OperatorCase> result;
  for (const OperatorCase& c : all) {
    if (c.op == op.name) result.push_back(c);
  }
  return result;
}

std::vector<std::string> kernels_of(const KernelList& list, const std::string& op, bool reference) {
  std::vector<std::string> names;
  for (const Kernel& kernel : list) {
    if (kernel.op == op && kernel.reference == reference) names.push_back(kernel.name);
  }
  return names;
}

TEST(Completeness, GradientOrReason) {
  for (const Operator& op : operator_set().all()) {
    EXPECT_NE(op.gradient == nullptr, op.not_differentiable.empty())
        << op.name << " needs a gradient or a reason in not_differentiable, and not both";
  }
}

TEST(Completeness, ReferenceKernel) {
  for (const Operator& op : operator_set().all()) {
    EXPECT_FALSE(kernels_of(reference_list(), op.name, true).empty()) << op.name;
  }
}

TEST(Completeness, KernelsOfKnownOperators) {
  for (const Kernel& kernel : cpu_list()) {
    EXPECT_NE(operator_set().find(kernel.op), nullptr) << kernel.name << " is for " << kernel.op;
    EXPECT_TRUE(kernel.propose != nullptr && kernel.prepare != nullptr) << kernel.name;
  }
}

// Whether the kernel takes one of the cases on a machine with these facts; if not, `reasons` gets
// why.
bool takes_a_case(const Kernel& kernel, const Operator& op, const DeviceFacts& facts,
                  std::set<std::string>& reasons) {
  for (const OperatorCase& c : cases_of(op)) {
    const Graph graph = case_graph(c, operator_set(), DType::float32);
    KernelRequest request = plain_request(graph, graph.nodes[0]);
    request.facts = &facts;
    const auto reason = kernel.refuse(request);
    if (!reason) return true;
    reasons.insert(*reason);
    for (std::size_t i = 1; i < request.outputs.size(); ++i) request.outputs[i].present = false;
    if (!kernel.refuse(request)) return true;  // if only its first output is read
  }
  return false;
}

// A kernel that refuses every case is dead or untested. `refuse` is a pure function of the request:
// a kernel that takes a case only when the facts name every instruction set is merely unsupported
// on this machine.
TEST(Completeness, EveryKernelTakesACase) {
  DeviceFacts all_features = host_facts();
  all_features.features = {"avx2", "avx512", "avx512_bf16", "amx"};
  for (const Kernel& kernel : cpu_list()) {
    const Operator* op = operator_set().find(kernel.op);
    if (kernel.reference || op == nullptr) continue;
    std::set<std::string> reasons, ignored;
    if (takes_a_case(kernel, *op, host_facts(), reasons) ||
        takes_a_case(kernel, *op, all_features, ignored)) {
      continue;
    }
    std::string text;
    for (const std::string& reason : reasons) text += "\n  " + reason;
    ADD_FAILURE() << kernel.name << " takes no case of " << kernel.op << ":" << text;
  }
}

TEST(Completeness, CasesHaveUniqueNamesAndKnownOperators) {
  std::set<std::string> names;
  for (const OperatorCase& c : all_cases()) {
    EXPECT_TRUE(names.insert(c.op + ": " + c.name).second) << c.op << ": " << c.name;
    EXPECT_NE(operator_set().find(c.op), nullptr) << c.op;
  }
}

// Each attribute is tested with at least two values, including the default.
TEST(Completeness, AttributesAreTried) {
  for (const Operator& op : operator_set().all()) {
    const std::vector<OperatorCase> cases = cases_of(op);
    EXPECT_FALSE(cases.empty()) << op.name << " has no case";
    for (const AttributeSpec& spec : op.attributes) {
      std::set<std::string> tried;
      for (const OperatorCase& c : cases) {
        const AttributeValue* value = c.attributes.find(spec.name);
        tried.insert(to_string(value != nullptr ? *value : spec.value));
      }
      EXPECT_GE(tried.size(), 2u) << op.name << " is tried with one value of '" << spec.name << "'";
    }
  }
}

TEST(Completeness, OptionalInputsAreTried) {
  for (const Operator& op : operator_set().all()) {
    const std::vector<OperatorCase> cases = cases_of(op);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (!op.inputs[i].optional) continue;
      bool with = false, without = false;
      for (const OperatorCase& c : cases) {
        // All operands of a variadic input, otherwise the single one.
        const std::size_t end = op.inputs[i].variadic ? std::max(i + 1, c.inputs.size()) : i + 1;
        for (std::size_t k = i; k < end; ++k) {
          (k < c.inputs.size() && !c.inputs[k].absent ? with : without) = true;
        }
      }
      EXPECT_TRUE(with) << op.name << " is never tried with '" << op.inputs[i].name << "'";
      EXPECT_TRUE(without) << op.name << " is never tried without '" << op.inputs[i].name << "'";
    }
  }
}

// The shapes of operands in an operator's cases whose gradient is checked by finite differences.
struct CheckedShapes {
  std::set<std::vector<Shape>> with_elements;
  bool at_the_edge = false;   // a scalar, or an extent of 0 or 1
  bool is_broadcast = false;  // operands of different shapes
};

CheckedShapes checked_shapes(const Operator& op) {
  CheckedShapes result;
  for (const OperatorCase& c : cases_of(op)) {
    const Graph graph = case_graph(c, operator_set(), DType::float64);
    if (checked_gradients(c, graph).empty()) continue;
    std::vector<Shape> shapes;
    bool has_elements = true;
    for (const ValueId id : graph.nodes[0].inputs) {
      if (!id) continue;
      const Shape& shape = graph.type(id).shape;
      shapes.push_back(shape);
      has_elements = has_elements && element_count(shape) > 0;
      result.is_broadcast = result.is_broadcast || shape != shapes[0];
      result.at_the_edge = result.at_the_edge || shape.empty() ||
                           std::any_of(shape.begin(), shape.end(), [](auto n) { return n < 2; });
    }
    if (has_elements) result.with_elements.insert(shapes);
  }
  return result;
}

// A formula that is right for one shape may confuse axes, or repeat a broadcast gradient.
TEST(Completeness, GradientsAreCheckedOverSeveralShapes) {
  for (const Operator& op : operator_set().all()) {
    // StopGradient withholds the gradient on purpose, unlike finite differences.
    if (op.gradient == nullptr || op.name == "StopGradient") continue;
    const CheckedShapes checked = checked_shapes(op);
    EXPECT_GE(checked.with_elements.size(), 3u)
        << op.name << ": its gradient is checked over fewer than three shapes";
    EXPECT_TRUE(checked.at_the_edge)
        << op.name << ": its gradient is checked over no shape without axes or of one element";
    if (op.is_scalar() && op.inputs.size() > 1) {
      EXPECT_TRUE(checked.is_broadcast) << op.name << ": its gradient is checked without broadcast";
    }
  }
}

// The names of inputs or outputs with their marks.
std::string signature(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports) {
    text += (text.empty() ? "" : ", ") + port.name + (port.optional ? "?" : "") +
            (port.variadic ? "*" : "");
  }
  return text;
}

std::string attribute_list(const Operator& op) {
  std::string text;
  for (const AttributeSpec& spec : op.attributes) {
    text += (text.empty() ? "" : ", ") + spec.name;
    if (!spec.required) text += " = " + to_string(spec.value);
  }
  return text;
}

std::string kernel_list(const std::string& op) {
  std::string text;
  for (const std::string& name : kernels_of(cpu_list(), op, false)) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "reference" : text;
}

std::string traits(const Operator& op) {
  std::string text;
  const auto add = [&](bool has, const char* trait) {
    if (has) text += (text.empty() ? "" : ", ") + std::string(trait);
  };
  add(op.view != nullptr, "view");
  add(op.is_scalar(), "element-wise");
  add(!op.aliases.empty(), "in place");
  add(op.random, "random");
  add(op.engine_only, "engine only");
  return text;
}

std::string operators_page() {
  std::string page =
      "# Operators\n\n"
      "Written by `tests/operators/completeness_test.cpp` from the operators themselves; run it "
      "with\n"
      "`TANDEM_UPDATE_DOCS=1` to write this page again. What each computes is in\n"
      "[normal_form.md](normal_form.md). `?` optional, `*` variadic. Kernels are the CPU's, best "
      "first, in\n"
      "front of the reference kernel that every operator has.\n\n"
      "| operator | inputs → outputs | attributes | gradient | traits | CPU kernels | cases |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Operator& op : operator_set().all()) {
    page += fmt::format("| {} | {} → {} | {} | {} | {} | {} | {} |\n", op.name,
                        signature(op.inputs), signature(op.outputs), attribute_list(op),
                        op.gradient != nullptr ? "yes" : "no: " + op.not_differentiable, traits(op),
                        kernel_list(op.name), cases_of(op).size());
  }
  return page;
}

TEST(Completeness, NormalFormSaysWhatEachOperatorComputes) {
  const std::string page = read_file(source_folder() + "/docs/normal_form.md");
  for (const Operator& op : operator_set().all())
    EXPECT_TRUE(std::regex_search(page, std::regex("\\b" + op.name + "\\b"))) << op.name;
}

TEST(Completeness, OperatorsPage) {
  const std::string path = source_folder() + "/docs/operators.md";
  const std::string page = operators_page();
  if (std::getenv("TANDEM_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << page;
    return;
  }
  EXPECT_TRUE(read_file(path) == page) << "docs/operators.md is old: run with TANDEM_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace tandem::testing
