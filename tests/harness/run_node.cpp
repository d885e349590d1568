// Runs single nodes and whole graphs on chosen kernels, in chosen layouts.
#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string_view>

#include "engine/operators/grouped_update.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/isa.h"
#include "kernels/reference/reference_kernels.h"
#include "tests/harness/operator_case.h"

namespace tandem::testing {
namespace {

constexpr unsigned char poison = 0xff;  // NaN in every floating point type
constexpr std::size_t guard = 256;      // bytes before and after each operand

// A buffer in some layout, with a guard around it.
class Buffer {
 public:
  Buffer(TensorType type, Layout layout) : type_(std::move(type)), layout_(std::move(layout)) {
    std::int64_t first = layout_.offset, last = layout_.offset;
    for (std::size_t i = 0; i < type_.rank(); ++i) {
      const std::int64_t reach = (type_.shape[i] - 1) * layout_.strides[i];
      (reach < 0 ? first : last) += reach;
    }
    first_ = type_.elements() == 0 ? 0 : std::min<std::int64_t>(first, 0);
    const std::int64_t count = type_.elements() == 0 ? 0 : last - first_ + 1;
    bytes_ = HostTensor(TensorType{
        DType::uint8,
        {count * static_cast<std::int64_t>(size_of(type_.dtype)) + 2 * static_cast<int>(guard)}});
    std::memset(bytes_.data(), poison, bytes_.bytes());
  }

  const Layout& layout() const { return layout_; }

  /// The address of the first logical element, for the kernel.
  void* address() { return start() + guard + (layout_.offset - first_) * size(); }

  /// Copies the operand to `memory`, where the kernel then finds it.
  void move_to(OperandMemory& memory) {
    memory_ = &memory;
    moved_ = static_cast<char*>(memory.put(bytes_.data(), bytes_.bytes()));
  }
  /// Copies the kernel's result back from `memory`.
  void fetch() {
    if (memory_ != nullptr) memory_->get(bytes_.data(), moved_, bytes_.bytes());
  }
  /// For an operand that was moved and not fetched: whether it is unchanged in `memory`.
  bool is_as_moved() {
    HostTensor now(bytes_.type());
    memory_->get(now.data(), moved_, now.bytes());
    return std::memcmp(now.data(), bytes_.data(), now.bytes()) == 0;
  }

  void write(const HostTensor& tensor) {
    each_run([&](std::int64_t i, std::int64_t place, std::int64_t count) {
      std::memcpy(base() + place * size(), static_cast<const char*>(tensor.data()) + i * size(),
                  static_cast<std::size_t>(count * size()));
    });
  }

  HostTensor read() {
    HostTensor tensor(type_);
    each_run([&](std::int64_t i, std::int64_t place, std::int64_t count) {
      std::memcpy(static_cast<char*>(tensor.data()) + i * size(), base() + place * size(),
                  static_cast<std::size_t>(count * size()));
    });
    return tensor;
  }

  /// Whether all bytes that belong to no element are unchanged.
  bool holes_untouched() {
    std::vector<char> element(bytes_.bytes(), 0);
    each_run([&](std::int64_t, std::int64_t place, std::int64_t count) {
      const std::int64_t at = static_cast<std::int64_t>(guard) + (place - first_) * size();
      std::fill_n(element.begin() + at, count * size(), 1);
    });
    const auto bytes = bytes_.as<std::uint8_t>();
    for (std::size_t i = 0; i < element.size(); ++i) {
      if (element[i] == 0 && bytes[i] != poison) return false;
    }
    return true;
  }

 private:
  std::int64_t size() const { return static_cast<std::int64_t>(size_of(type_.dtype)); }
  char* start() { return moved_ != nullptr ? moved_ : static_cast<char*>(bytes_.data()); }
  char* base() { return static_cast<char*>(bytes_.data()) + guard - first_ * size(); }

  /// Calls f(i, place, count) for each run of `count` elements from i on that are adjacent in
  /// memory from `place` on.
  template <class F>
  void each_run(F f) const {
    const std::int64_t elements = type_.elements();
    std::int64_t count = 1;
    std::size_t outer = type_.rank();  // axes before those that a run covers
    while (outer > 0 && layout_.strides[outer - 1] == count) count *= type_.shape[--outer];
    std::vector<std::int64_t> index(outer, 0);
    for (std::int64_t i = 0; i < elements; i += count) {
      std::int64_t place = layout_.offset;
      for (std::size_t k = 0; k < outer; ++k) place += index[k] * layout_.strides[k];
      f(i, place, count);
      for (std::size_t k = outer; k-- > 0;) {
        if (++index[k] < type_.shape[k]) break;
        index[k] = 0;
      }
    }
  }

  TensorType type_;
  Layout layout_;
  std::int64_t first_ = 0;  // lowest place of an element
  HostTensor bytes_;
  OperandMemory* memory_ = nullptr;
  char* moved_ = nullptr;
};

/// A step's context in memory that the kernel can read, with an error word that is read back after
/// it.
class PlacedContext {
 public:
  PlacedContext(ErrorWord& error, OperandMemory* memory) : error_(error), memory_(memory) {
    context_.seed = 7;
    context_.step = 3;
    context_.first_sample = 2;
    context_.error = &error;
    address_ = &context_;
    if (memory == nullptr) return;
    static_assert(sizeof(ErrorWord) == sizeof(Words));
    moved_ = memory->put(&none_, sizeof none_);
    context_.error = static_cast<ErrorWord*>(moved_);
    address_ = static_cast<const StepContext*>(memory->put(&context_, sizeof context_));
  }
  const StepContext* address() const { return address_; }
  void fetch() {
    if (memory_ == nullptr) return;
    Words words;
    memory_->get(&words, moved_, sizeof words);
    error_.packed = words.packed;
    error_.value = words.value;
  }

 private:
  struct Words {
    std::int64_t packed = 0, value = 0;
  };
  const Words none_;
  ErrorWord& error_;
  OperandMemory* memory_;
  StepContext context_;
  const StepContext* address_ = nullptr;
  void* moved_ = nullptr;
};

LayoutConstraint constraint_of(const std::vector<LayoutConstraint>& constraints, std::size_t i) {
  return i < constraints.size() ? constraints[i]
                                : LayoutConstraint{LayoutConstraint::Kind::row_major, {}};
}

bool is_opaque(const Proposal& proposal) {
  const auto opaque = [](const LayoutConstraint& constraint) {
    return constraint.kind == LayoutConstraint::Kind::exact && !constraint.layout.is_strided();
  };
  return std::any_of(proposal.inputs.begin(), proposal.inputs.end(), opaque) ||
         std::any_of(proposal.outputs.begin(), proposal.outputs.end(), opaque);
}

// A layout that satisfies the constraint; `dense` is the layout of the other dense operands, if
// there are any.
Layout granted(const LayoutConstraint& constraint, const Shape& shape, const Layout* dense) {
  using Kind = LayoutConstraint::Kind;
  if (constraint.kind == Kind::channels_last && shape.size() >= 3) return channels_last(shape);
  if (constraint.kind == Kind::exact) return constraint.layout;
  if (constraint.kind == Kind::dense && dense != nullptr && dense->strides.size() == shape.size()) {
    Layout like = *dense;
    like.offset = 0;
    if (satisfies(constraint, like, shape)) return like;
  }
  return row_major(shape);
}

bool fits(const Proposal& proposal, const KernelRequest& request) {
  const Layout* dense = nullptr;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Operand& operand = request.inputs[i];
    if (!operand.present) continue;
    const LayoutConstraint constraint = constraint_of(proposal.inputs, i);
    if (!satisfies(constraint, operand.layout, operand.type.shape)) return false;
    if (constraint.kind != LayoutConstraint::Kind::dense) continue;
    if (dense != nullptr && !same_places(*dense, operand.layout, operand.type.shape)) return false;
    dense = &operand.layout;
  }
  return true;
}

void settle_layouts(const Kernel& kernel, KernelRequest& request, const RunOptions& options) {
  std::vector<Proposal> proposals = kernel.propose(request);
  std::erase_if(proposals, is_opaque);
  if (proposals.empty()) throw std::runtime_error(kernel.name + ": opaque layouts only");
  const auto fitting = std::find_if(proposals.begin(), proposals.end(),
                                    [&](const Proposal& p) { return fits(p, request); });
  const Proposal& chosen = fitting == proposals.end() ? proposals.front() : *fitting;

  const Layout* dense = nullptr;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    Operand& operand = request.inputs[i];
    if (!operand.present) continue;
    const LayoutConstraint constraint = constraint_of(chosen.inputs, i);
    if (fitting == proposals.end()) operand.layout = granted(constraint, operand.type.shape, dense);
    if (constraint.kind == LayoutConstraint::Kind::dense && dense == nullptr)
      dense = &operand.layout;
  }
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    Operand& operand = request.outputs[i];
    const LayoutConstraint constraint = constraint_of(chosen.outputs, i);
    const bool free =
        constraint.kind == LayoutConstraint::Kind::any && i < options.output_layouts.size();
    operand.layout =
        free ? options.output_layouts[i] : granted(constraint, operand.type.shape, dense);
  }
}

}  // namespace

const KernelList& reference_list() {
  static const KernelList list = reference_kernels();
  return list;
}

const KernelList& cpu_list() {
  static const KernelList list = cpu_kernels();
  return list;
}

const DeviceFacts& host_facts() {
  static const DeviceFacts facts = [] {
    DeviceFacts f;
    f.features = processor_features();
    f.threads = 2;
    return f;
  }();
  return facts;
}

KernelRequest plain_request(const Graph& graph, const Node& node, const DeviceFacts& facts) {
  const auto operand = [&](ValueId id) {
    Operand result;
    result.present = static_cast<bool>(id);
    if (!id) return result;
    result.type = graph.type(id);
    result.layout = row_major(result.type.shape);
    result.constant = graph.value(id).constant.get();
    return result;
  };
  KernelRequest request;
  request.node = &node;
  request.node_index = 0;
  request.facts = &facts;
  for (ValueId id : node.inputs) request.inputs.push_back(operand(id));
  for (ValueId id : node.outputs) request.outputs.push_back(operand(id));
  return request;
}

bool may_be_read_alone(const Node& node, std::size_t i) {
  static const std::set<std::string_view> of_tables{"PlanRows", "ShardColumns", "ShardRows",
                                                    "SplitIds"};
  return i == 0 || !of_tables.contains(node.op->name);
}

std::vector<HostTensor> run_node(const Kernel& kernel, const Graph& graph, const Node& node,
                                 const std::vector<HostTensor>& inputs, const RunOptions& options) {
  KernelRequest request =
      plain_request(graph, node, options.facts != nullptr ? *options.facts : host_facts());
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    if (i < options.input_layouts.size() && request.inputs[i].present) {
      request.inputs[i].layout = options.input_layouts[i];
    }
  }
  const std::vector<Alias> aliases = aliases_of(node);
  const auto aliased_input = [&](std::size_t output) -> int {
    for (const Alias& alias : aliases) {
      if (alias.output == static_cast<int>(output) && request.inputs[alias.input].present) {
        return alias.input;
      }
    }
    return -1;
  };
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const bool is_read = options.only_output < 0 || options.only_output == static_cast<int>(i);
    if (!is_read && aliased_input(i) < 0) request.outputs[i].present = false;
  }
  if (kernel.refuse) {
    if (const auto reason = kernel.refuse(request)) throw std::runtime_error(*reason);
  }
  settle_layouts(kernel, request, options);

  if (options.memory != nullptr) options.memory->clear();
  std::vector<Buffer> in, out;
  std::vector<const void*> in_data;
  std::vector<void*> out_data;
  const auto place = [&](Buffer& buffer) {
    if (options.memory != nullptr) buffer.move_to(*options.memory);
    return buffer.address();
  };
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Operand& operand = request.inputs[i];
    in.emplace_back(operand.type, operand.present ? operand.layout : row_major(operand.type.shape));
    if (operand.present) in.back().write(inputs[i]);
    in_data.push_back(operand.present ? place(in.back()) : nullptr);
  }
  out.reserve(request.outputs.size());
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    Operand& operand = request.outputs[i];
    const int alias = aliased_input(i);
    if (alias >= 0) operand.layout = request.inputs[alias].layout;
    out.emplace_back(operand.type, operand.layout);
    if (alias >= 0) out.back().write(inputs[alias]);
    void* const address = operand.present || alias >= 0 ? place(out.back()) : nullptr;
    out_data.push_back(operand.present ? address : nullptr);
    if (alias >= 0) in_data[alias] = address;
  }

  ErrorWord unread;
  PlacedContext context(options.error != nullptr ? *options.error : unread, options.memory);
  const std::unique_ptr<PreparedKernel> prepared = kernel.prepare(request);
  const TensorType scratch{DType::uint8, {static_cast<std::int64_t>(prepared->workspace_bytes)}};
  Buffer workspace(scratch, row_major(scratch.shape));
  void* const workspace_data = place(workspace);
  prepared->run(
      {in_data.data(), out_data.data(), workspace_data, context.address(), options.queue});
  if (options.finish) options.finish();
  context.fetch();
  workspace.fetch();
  if (!workspace.holes_untouched())
    throw std::runtime_error(kernel.name + " writes outside of its workspace");
  for (std::size_t i = 0; options.memory != nullptr && i < in.size(); ++i) {
    if (request.inputs[i].present && !in[i].is_as_moved())
      throw std::runtime_error(kernel.name + " writes to input " + std::to_string(i));
  }

  std::vector<HostTensor> results;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (request.outputs[i].present) out[i].fetch();
    if (!out[i].holes_untouched()) {
      throw std::runtime_error(kernel.name + " writes outside of output " + std::to_string(i));
    }
    results.push_back(request.outputs[i].present ? out[i].read() : HostTensor());
  }
  return results;
}

std::vector<HostTensor> run_node(const Kernel& kernel, const Graph& graph, const Node& node,
                                 const std::vector<HostTensor>& inputs,
                                 const std::vector<Layout>& input_layouts) {
  RunOptions options;
  options.input_layouts = input_layouts;
  return run_node(kernel, graph, node, inputs, options);
}

std::vector<HostTensor> evaluate(const Graph& graph,
                                 const std::vector<std::pair<std::string, HostTensor>>& feeds,
                                 const std::vector<ValueId>& wanted) {
  std::vector<HostTensor> values(graph.values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (graph.values[i].constant) values[i] = *graph.values[i].constant;
  }
  const auto fed = [&](const std::string& name) -> const HostTensor* {
    for (const auto& [key, tensor] : feeds) {
      if (key == name) return &tensor;
    }
    return nullptr;
  };
  for (const State& state : graph.states) {
    const HostTensor* tensor = fed(state.name);
    values[state.initial.index] = tensor != nullptr ? *tensor : state.start;
  }
  for (const NamedValue& input : graph.inputs) {
    if (const HostTensor* tensor = fed(input.name)) values[input.value.index] = *tensor;
  }
  for (const Node& node : graph.nodes) {
    const KernelRequest request = plain_request(graph, node);
    std::vector<std::string> refusals;
    const Kernel* kernel = choose_kernel(reference_list(), request, &refusals);
    if (kernel == nullptr) {
      std::string message = "no reference kernel for " + node.op->name;
      for (const std::string& refusal : refusals) message += "; " + refusal;
      throw std::runtime_error(message);
    }
    std::vector<HostTensor> inputs;
    for (ValueId id : node.inputs) inputs.push_back(id ? values[id.index] : HostTensor());
    std::vector<HostTensor> outputs = run_node(*kernel, graph, node, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      values[node.outputs[i].index] = std::move(outputs[i]);
    }
  }
  std::vector<HostTensor> results;
  for (ValueId id : wanted) results.push_back(values[id.index]);
  return results;
}

}  // namespace tandem::testing
