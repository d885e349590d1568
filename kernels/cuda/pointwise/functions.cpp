// Single scalar operators, Where, Cast and Pow: what the kernels take, and their runs.
#include "kernels/cuda/pointwise/functions.h"

#include <algorithm>
#include <array>

#include "engine/graph/host_tensor.h"
#include "engine/operators/operator.h"
#include "kernels/cuda/pointwise/axes.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/reference/scalar_operators.h"

namespace tandem::cuda {
namespace {

constexpr std::size_t none = ~std::size_t{0};
constexpr int output_place = 3;

/// One way to run: a kernel with all but the addresses of its arguments.
struct Way {
  PointwiseLauncher launch = nullptr;
  PointwiseArguments arguments;
  LaunchShape shape;
  std::array<std::size_t, 4> alignment = {1, 1, 1, 1};  // bytes, of a, b, c and y
};

class PointwiseRun final : public PreparedKernel {
 public:
  /// `inputs`: which inputs of the node a, b and c are.
  PointwiseRun(Gpu gpu, const std::array<std::size_t, 3>& inputs, std::optional<Way> wide,
               Way narrow)
      : gpu_(std::move(gpu)), inputs_(inputs), wide_(std::move(wide)), narrow_(narrow) {}

  void run(const KernelArguments& a) noexcept override {
    std::array<const void*, 4> addresses = {};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i] != none) addresses[i] = a.inputs[inputs_[i]];
    }
    addresses[output_place] = a.outputs[0];
    bool aligned = wide_.has_value();
    for (std::size_t i = 0; aligned && i < addresses.size(); ++i) {
      aligned = is_aligned(addresses[i], wide_->alignment[i]);
    }
    const Way& way = aligned ? *wide_ : narrow_;
    PointwiseArguments arguments = way.arguments;
    std::copy_n(addresses.begin(), 3, arguments.inputs);
    arguments.output = a.outputs[0];
    way.launch(*gpu_, arguments, way.shape, a.queue);
  }

 private:
  Gpu gpu_;
  std::array<std::size_t, 3> inputs_;
  std::optional<Way> wide_;
  Way narrow_;
};

struct Plan {
  std::array<std::size_t, 3> inputs = {none, none, none};
  PointwiseVariant wide, narrow;
  PointwiseArguments arguments;
};

Way way_of(const PointwiseVariant& variant, const Plan& plan, const KernelRequest& request,
           const AxisPlan& axes, const Gpu& gpu) {
  Way way{variant.launch, plan.arguments, {}, {1, 1, 1, 1}};
  way.arguments.space = make_space<4>(axes, {0, 1, 2, 3}, variant.width);
  way.shape = spread(way.arguments.space.units, gpu->properties.multiprocessors);
  for (std::size_t i = 0; i < 4; ++i) {
    if ((i != output_place && plan.inputs[i] == none) || axes.strides[i].back() != 1) continue;
    const Operand& operand =
        i == output_place ? request.outputs[0] : request.inputs[plan.inputs[i]];
    const std::size_t bytes = size_of(operand.type.dtype) * static_cast<std::size_t>(variant.width);
    way.alignment[i] = std::min<std::size_t>(bytes, 16);
  }
  return way;
}

std::unique_ptr<PreparedKernel> prepare(const KernelRequest& request, const Plan& plan,
                                        const Gpu& gpu) {
  const Shape& space = request.outputs[0].type.shape;
  if (element_count(space) == 0) return prepared_nothing();
  std::vector<std::vector<std::int64_t>> strides;
  for (std::size_t input : plan.inputs) {
    strides.push_back(input == none ? std::vector<std::int64_t>(space.size(), 0)
                                    : strides_over(request.inputs[input], space));
  }
  strides.push_back(strides_over(request.outputs[0], space));
  const AxisPlan axes = plan_axes(space, memory_order(strides[output_place], space), strides);
  bool takes_wide = plan.wide.launch != nullptr && axes.strides[output_place].back() == 1;
  for (std::size_t i = 0; i < 4; ++i) takes_wide &= takes_width(axes, i, plan.wide.width);
  std::optional<Way> wide;
  if (takes_wide) wide = way_of(plan.wide, plan, request, axes, gpu);
  return std::make_unique<PointwiseRun>(gpu, plan.inputs, std::move(wide),
                                        way_of(plan.narrow, plan, request, axes, gpu));
}

PointwiseVariant wide_function(ScalarFunction f, DType dtype) {
  switch (dtype) {
    case DType::float32:
      return float32_function(f);
    case DType::float16:
      return float16_function(f);
    case DType::bfloat16:
      return bfloat16_function(f);
    default:
      return {};
  }
}

std::optional<std::string> refuse_operands(const KernelRequest& request) {
  for (const Operand& input : request.inputs) {
    if (!input.present) return "an absent input";
  }
  return refuse_axes(request.outputs[0].type.shape);
}

std::optional<std::string> refuse_function(const KernelRequest& request) {
  if (auto reason = refuse_operands(request)) return reason;
  const DType dtype = request.inputs[0].type.dtype;
  if (!takes(types_of(request.node->op->scalar), dtype)) return refused_type(dtype);
  if (request.inputs.size() > 1 && request.inputs[1].type.dtype != dtype) return "two types";
  return std::nullopt;
}

Plan plan_of(const KernelRequest& request, ScalarFunction f) {
  const DType dtype = request.inputs[0].type.dtype;
  Plan plan;
  plan.inputs[0] = 0;
  if (is_binary(f)) plan.inputs[1] = request.inputs.size() > 1 ? 1 : 0;
  plan.wide = wide_function(f, dtype);
  plan.narrow = any_function(f, dtype);
  plan.arguments.function = f;
  plan.arguments.binary = is_binary(f);
  return plan;
}

std::unique_ptr<PreparedKernel> prepare_function(const KernelRequest& request, const Gpu& gpu) {
  Plan plan = plan_of(request, request.node->op->scalar);
  plan.arguments.settings = scalar::settings_of(*request.node);
  return prepare(request, plan, gpu);
}

std::optional<std::string> refuse_power(const KernelRequest& request) {
  if (auto reason = refuse_operands(request)) return reason;
  for (const Operand& input : request.inputs) {
    if (input.type.dtype == DType::boolean) return refused_type(DType::boolean);
  }
  return std::nullopt;
}

// Known exponents that have a cheaper function, of floats: x^2, x, 1 / x and the root.
std::unique_ptr<PreparedKernel> prepare_power(const KernelRequest& request, const Gpu& gpu) {
  const DType base = request.inputs[0].type.dtype, exponent = request.inputs[1].type.dtype;
  const HostTensor* known = request.inputs[1].constant;
  if (is_float(base) && known != nullptr && known->type().elements() == 1) {
    const double e = known->number(0);
    const auto simple = [&](ScalarFunction f) {
      Plan plan = plan_of(request, f);
      if (is_binary(f)) plan.inputs[1] = 0;
      return prepare(request, plan, gpu);
    };
    if (e == 2) return simple(ScalarFunction::mul);
    if (e == 1) return simple(ScalarFunction::identity);
    if (e == -1) return simple(ScalarFunction::reciprocal);
    if (e == 0.5) return simple(ScalarFunction::sqrt);
  }
  Plan plan = plan_of(request, ScalarFunction::pow);
  if (base != exponent) plan.wide = {};
  plan.narrow = any_power(base);
  plan.arguments.types[1] = exponent;
  return prepare(request, plan, gpu);
}

std::unique_ptr<PreparedKernel> prepare_where(const KernelRequest& request, const Gpu& gpu) {
  const std::size_t bytes = size_of(request.outputs[0].type.dtype);
  Plan plan;
  plan.inputs = {0, 1, 2};
  plan.wide = choice(bytes, true);
  plan.narrow = choice(bytes, false);
  return prepare(request, plan, gpu);
}

std::unique_ptr<PreparedKernel> prepare_cast(const KernelRequest& request, const Gpu& gpu) {
  const DType from = request.inputs[0].type.dtype, to = request.outputs[0].type.dtype;
  Plan plan;
  plan.inputs[0] = 0;
  plan.wide = wide_cast(from, to);
  plan.narrow = any_cast(to);
  plan.arguments.types[0] = from;
  return prepare(request, plan, gpu);
}

}  // namespace

std::vector<Proposal> propose_one_order(const KernelRequest& request, const Shape& space,
                                        int reduced) {
  const LayoutConstraint dense{LayoutConstraint::Kind::dense, {}};
  Proposal proposal;
  const Layout* order = nullptr;
  for (const Operand& x : request.inputs) {
    LayoutConstraint constraint;
    if (x.type.shape == space && satisfies(dense, x.layout, space)) {
      if (order == nullptr) order = &x.layout;
      Layout other = x.layout;
      other.offset = order->offset;
      if (same_places(*order, other, space)) constraint = dense;
    }
    proposal.inputs.push_back(constraint);
  }
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    proposal.outputs.push_back(
        {static_cast<int>(i) == reduced ? LayoutConstraint::Kind::row_major : dense.kind, {}});
  }
  return {proposal};
}

void add_function_kernels(KernelList& list, const Gpu& gpu) {
  using Refuse = std::optional<std::string> (*)(const KernelRequest&);
  using Prepare = std::unique_ptr<PreparedKernel> (*)(const KernelRequest&, const Gpu&);
  const auto add = [&](const std::string& op, Refuse refuse, Prepare prepare) {
    list.push_back({"cuda." + kernel_name(op), op, refuse,
                    [](const KernelRequest& request) {
                      return propose_one_order(request, request.outputs[0].type.shape);
                    },
                    on(gpu, prepare)});
  };
  for_each_scalar_operator([&](const Operator& op) {
    if (types_of(op.scalar) != ScalarTypes::own) add(op.name, refuse_function, prepare_function);
  });
  add("Pow", refuse_power, prepare_power);
  add("Where", refuse_operands, prepare_where);
  add("Cast", refuse_operands, prepare_cast);
}

}  // namespace tandem::cuda
