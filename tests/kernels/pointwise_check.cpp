#include "tests/kernels/pointwise_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/operators/grouped_update.h"
#include "kernels/cpu/isa.h"
#include "kernels/reference/reference_kernels.h"

namespace tandem::testing {
namespace {

KernelList pointwise_kernels() {
  KernelList list;
  add_elementwise_kernels(list);
  add_network_kernels(list);
  add_update_kernels(list);
  add_tensor_update_kernels(list);
  add_factored_update_kernels(list);
  return list;
}

struct Built {
  Graph graph;
  Node node;
};

Built build(const NodeCheck& check) {
  static const OperatorSet operators = all_operators();
  GraphBuilder builder(operators);
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < check.inputs.size(); ++i) {
    const NodeInput& input = check.inputs[i];
    inputs.push_back(input.absent ? ValueId{}
                                  : builder.input("x" + std::to_string(i), input.tensor.type()));
  }
  builder.set_scope({"checked"});
  builder.node(check.op, inputs, check.attributes, check.body);
  Built built{builder.finish(), {}};
  built.node = built.graph.nodes.back();
  return built;
}

void scatter(const HostTensor& from, const Layout& layout, char* to, bool back) {
  const auto bytes = static_cast<std::int64_t>(size_of(from.dtype()));
  const Shape& shape = from.shape();
  std::vector<std::int64_t> index(shape.size(), 0);
  char* data = const_cast<char*>(static_cast<const char*>(from.data()));
  for (std::int64_t i = 0; i < from.type().elements(); ++i) {
    std::int64_t place = 0;
    for (std::size_t a = 0; a < shape.size(); ++a) place += index[a] * layout.strides[a];
    if (back)
      std::memcpy(data + i * bytes, to + place * bytes, static_cast<std::size_t>(bytes));
    else
      std::memcpy(to + place * bytes, data + i * bytes, static_cast<std::size_t>(bytes));
    for (std::size_t a = shape.size(); a-- > 0;) {
      if (++index[a] < shape[a]) break;
      index[a] = 0;
    }
  }
}

struct Buffer {
  HostTensor storage;
  char* data = nullptr;

  Buffer(const TensorType& type, const Layout& layout)
      : storage(TensorType{DType::uint8,
                           {(type.elements() == 0 ? 0 : span_elements(layout, type.shape)) *
                                static_cast<std::int64_t>(size_of(type.dtype)) +
                            128}}),
        data(static_cast<char*>(storage.data()) + 64) {
    std::memset(storage.data(), 0x5b, storage.bytes());
  }
};

std::vector<HostTensor> run(const Kernel& kernel, const NodeCheck& check, const Built& built,
                            const DeviceFacts& facts, bool plain) {
  const Node& node = built.node;
  KernelRequest request;
  request.node = &node;
  request.node_index = 3;
  request.facts = &facts;
  for (std::size_t i = 0; i < check.inputs.size(); ++i) {
    const NodeInput& input = check.inputs[i];
    Operand operand;
    operand.present = !input.absent;
    operand.type = input.tensor.type();
    operand.layout = input.layout && !plain ? *input.layout : row_major(operand.type.shape);
    operand.constant = input.constant ? &input.tensor : nullptr;
    request.inputs.push_back(operand);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Operand operand;
    operand.type = built.graph.type(node.outputs[i]);
    operand.layout = row_major(operand.type.shape);
    if (!plain && i < check.output_layouts.size() && check.output_layouts[i]) {
      operand.layout = *check.output_layouts[i];
    }
    operand.present = plain || std::find(check.unread.begin(), check.unread.end(),
                                         static_cast<int>(i)) == check.unread.end();
    request.outputs.push_back(operand);
  }
  if (const auto reason = kernel.refuse(request)) {
    ADD_FAILURE() << kernel.name << " refuses: " << *reason;
    return {};
  }
  const std::vector<Proposal> proposals = kernel.propose(request);
  bool satisfied = false;
  for (const Proposal& proposal : proposals) {
    bool fits = true;
    const auto fit = [&](const std::vector<LayoutConstraint>& constraints,
                         const std::vector<Operand>& operands) {
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const LayoutConstraint constraint =
            i < constraints.size() ? constraints[i]
                                   : LayoutConstraint{LayoutConstraint::Kind::row_major, {}};
        if (operands[i].present &&
            !satisfies(constraint, operands[i].layout, operands[i].type.shape))
          fits = false;
      }
    };
    fit(proposal.inputs, request.inputs);
    fit(proposal.outputs, request.outputs);
    satisfied |= fits;
  }
  EXPECT_TRUE(satisfied) << kernel.name << ": no proposal fits the layouts";
  if (!satisfied) return {};

  std::vector<Buffer> in, out;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    in.emplace_back(request.inputs[i].type, request.inputs[i].layout);
    if (!check.inputs[i].absent)
      scatter(check.inputs[i].tensor, request.inputs[i].layout, in.back().data, false);
    inputs.push_back(check.inputs[i].absent ? nullptr : in.back().data);
  }
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    out.emplace_back(request.outputs[i].type, request.outputs[i].layout);
    char* data = out.back().data;
    if (check.in_place && !plain) {
      for (const Alias& alias : aliases_of(node)) {
        if (alias.output == static_cast<int>(i) && inputs[alias.input]) data = in[alias.input].data;
      }
      if (node.op->aliases.empty() && i == 0) data = in[0].data;
    }
    outputs.push_back(request.outputs[i].present ? data : nullptr);
  }
  std::vector<HostTensor> results;
  auto prepared = kernel.prepare(request);
  HostTensor workspace(
      TensorType{DType::uint8, {static_cast<std::int64_t>(prepared->workspace_bytes) + 64}});
  std::memset(workspace.data(), 0x7f, workspace.bytes());
  ErrorWord error;
  StepContext context{.seed = 7, .step = 3, .error = &error};
  prepared->run({inputs.data(), outputs.data(), workspace.data(), &context});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    HostTensor result(request.outputs[i].type);
    if (outputs[i])
      scatter(result, request.outputs[i].layout, static_cast<char*>(outputs[i]), true);
    results.push_back(result);
  }
  // Nothing may be written outside an output: its borders keep their pattern.
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (int k = 0; k < 64; ++k) {
      EXPECT_EQ(static_cast<const char*>(out[i].storage.data())[k], 0x5b) << "before output " << i;
      EXPECT_EQ(static_cast<const char*>(out[i].storage.data())[out[i].storage.bytes() - 1 - k],
                0x5b)
          << "behind output " << i;
    }
  }
  return results;
}

DeviceFacts facts_of(const std::string& set, int threads) {
  DeviceFacts facts;
  facts.threads = threads;
  if (set != "baseline") facts.features.push_back("avx2");
  if (set == "avx512") facts.features.push_back("avx512");
  return facts;
}

const Kernel* find(const KernelList& list, const std::string& op,
                   const KernelRequest* request = nullptr) {
  for (const Kernel& kernel : list) {
    if (kernel.op == op && (request == nullptr || !kernel.refuse(*request))) return &kernel;
  }
  return nullptr;
}

}  // namespace

HostTensor random_tensor(Shape shape, unsigned seed, double low, double high) {
  HostTensor tensor(TensorType{DType::float32, std::move(shape)});
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(static_cast<float>(low), static_cast<float>(high));
  for (float& x : tensor.as<float>()) x = uniform(random);
  return tensor;
}

HostTensor random_integers(Shape shape, DType dtype, std::int64_t low, std::int64_t high,
                           unsigned seed) {
  HostTensor tensor(TensorType{DType::int64, std::move(shape)});
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> uniform(low, high - 1);
  for (std::int64_t& x : tensor.as<std::int64_t>()) x = uniform(random);
  return tensor.converted(dtype);
}

NodeInput absent_input() {
  NodeInput input;
  input.absent = true;
  return input;
}

Layout with_gaps(const Shape& shape, std::int64_t gap) {
  Shape wider = shape;
  wider.back() += gap;
  return row_major(wider);
}

void check(const NodeCheck& check) {
  const Built built = build(check);
  static const KernelList reference = reference_kernels();
  static const KernelList fast = pointwise_kernels();
  const DeviceFacts plain_facts = facts_of("baseline", 1);
  KernelRequest request;
  request.node = &built.node;
  request.facts = &plain_facts;
  for (const NodeInput& input : check.inputs)
    request.inputs.push_back(
        {input.tensor.type(), row_major(input.tensor.shape()), !input.absent, nullptr});
  for (ValueId y : built.node.outputs)
    request.outputs.push_back(
        {built.graph.type(y), row_major(built.graph.type(y).shape), true, nullptr});
  const Kernel* kernel = find(fast, check.op, &request);
  if (kernel == nullptr) kernel = find(fast, check.op);  // may take other layouts, fewer results
  ASSERT_NE(kernel, nullptr) << check.op;
  const Kernel* plain = find(reference, check.op, &request);
  ASSERT_NE(plain, nullptr) << "no reference for " << check.op;
  const std::vector<HostTensor> expected = run(*plain, check, built, plain_facts, true);

  const std::vector<std::string> processor = processor_features();
  for (const std::string& set : check.features) {
    if (set != "baseline" && std::find(processor.begin(), processor.end(), set) == processor.end())
      continue;
    std::vector<HostTensor> of_one;  // results with one thread
    for (int threads : {1, 2, 3}) {
      SCOPED_TRACE(check.op + ", " + set + ", " + std::to_string(threads) + " threads");
      const std::vector<HostTensor> got = run(*kernel, check, built, facts_of(set, threads), false);
      const std::vector<HostTensor> again =
          run(*kernel, check, built, facts_of(set, threads), false);
      if (got.size() != expected.size()) return;
      if (threads == 1) of_one = again;
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (std::find(check.unread.begin(), check.unread.end(), static_cast<int>(i)) !=
            check.unread.end())
          continue;
        if (got[i].bytes() > 0) {
          EXPECT_EQ(std::memcmp(got[i].data(), again[i].data(), got[i].bytes()), 0)
              << "output " << i << " varies";
          EXPECT_TRUE(!check.same_of_any_threads ||
                      std::memcmp(got[i].data(), of_one[i].data(), got[i].bytes()) == 0)
              << "output " << i << " depends on the number of threads";
        }
        double largest = 1;
        for (std::int64_t k = 0; k < got[i].type().elements(); ++k) {
          const double e = expected[i].number(k);
          if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
        }
        int shown = 0;
        for (std::int64_t k = 0; k < got[i].type().elements() && shown < 3; ++k) {
          const double e = expected[i].number(k), g = got[i].number(k);
          const bool same = std::isnan(e)   ? std::isnan(g)
                            : std::isinf(e) ? g == e
                                            : std::abs(e - g) <= check.tolerance * largest;
          if (same) continue;
          ++shown;
          ADD_FAILURE() << "output " << i << " element " << k << ": expected " << e << ", got "
                        << g;
        }
      }
    }
  }
}

std::string refusal(const NodeCheck& check) {
  const Built built = build(check);
  const KernelList fast = pointwise_kernels();
  const DeviceFacts facts = facts_of("avx2", 1);
  KernelRequest request;
  request.node = &built.node;
  request.facts = &facts;
  for (const NodeInput& input : check.inputs)
    request.inputs.push_back(
        {input.tensor.type(), row_major(input.tensor.shape()), !input.absent, nullptr});
  for (ValueId y : built.node.outputs)
    request.outputs.push_back(
        {built.graph.type(y), row_major(built.graph.type(y).shape), true, nullptr});
  return find(fast, check.op)->refuse(request).value_or("");
}

}  // namespace tandem::testing
