// From a body of scalar operators to vector steps: numbers become immediates, products with one
// reader are fused with the addition that reads them, and values share registers.
#include "kernels/cpu/pointwise/tile_program.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/operators/scalar_functions.h"

namespace tandem {
namespace {

struct BodyValue {
  DType dtype = DType::float32;
  Shape shape;
  std::optional<double> number;  // known, one element
  int input = -1;                // index among the kernel's inputs
  int uses = 0;
};

struct BodyNode {
  const Node* node = nullptr;
  std::vector<int> inputs;
  int output = 0;
};

struct Body {
  std::vector<BodyValue> values;
  std::vector<BodyNode> nodes;
  std::vector<int> outputs;
};

std::optional<double> known_number(const HostTensor* constant) {
  if (constant == nullptr || constant->type().elements() != 1) return std::nullopt;
  return constant->number(0);
}

Body body_of(const KernelRequest& request) {
  Body body;
  if (request.node->op->role != Role::fused) {
    BodyNode node{request.node, {}, static_cast<int>(request.inputs.size())};
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      const Operand& x = request.inputs[i];
      body.values.push_back(
          {x.type.dtype, x.type.shape, known_number(x.constant), static_cast<int>(i), 0});
      node.inputs.push_back(static_cast<int>(i));
    }
    const Operand& y = request.outputs[0];
    body.values.push_back({y.type.dtype, y.type.shape, std::nullopt, -1, 0});
    body.nodes.push_back(std::move(node));
    body.outputs.push_back(static_cast<int>(request.inputs.size()));
  } else {
    const Graph& graph = *request.node->body;
    for (const Value& value : graph.values) {
      body.values.push_back(
          {value.type.dtype, value.type.shape, known_number(value.constant.get()), -1, 0});
    }
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      BodyValue& value = body.values[graph.inputs[i].value.index];
      value.input = static_cast<int>(i);
      value.number = known_number(request.inputs[i].constant);
    }
    for (const Node& node : graph.nodes) {
      BodyNode copy{&node, {}, node.outputs[0].index};
      for (ValueId input : node.inputs) copy.inputs.push_back(input.index);
      body.nodes.push_back(std::move(copy));
    }
    for (const NamedValue& output : graph.outputs) body.outputs.push_back(output.value.index);
  }
  for (const BodyNode& node : body.nodes) {
    for (int input : node.inputs) {
      if (input >= 0) ++body.values[input].uses;
    }
  }
  for (int output : body.outputs) ++body.values[output].uses;
  return body;
}

bool is_reduction(const Node& node) {
  const Reducer reducer = node.op->reducer;
  return reducer == Reducer::sum || reducer == Reducer::mean || reducer == Reducer::maximum ||
         reducer == Reducer::sum_of_squares;
}

// The step of a function; `count` of those that have no one step.
TileOp step_of(ScalarFunction f) {
  switch (f) {
#define TANDEM_FUNCTION(function, ...) \
  case ScalarFunction::function:       \
    return TileOp::function;
#include "engine/operators/scalar_functions.inl"
    case ScalarFunction::pow:
      return TileOp::pow;
    case ScalarFunction::where:
      return TileOp::where;
    case ScalarFunction::none:
    case ScalarFunction::identity:
    case ScalarFunction::cast:
      break;
  }
  return TileOp::count;
}

// Nanoseconds for 1,024 elements in L1, about.
double cost_of_op(TileOp op) {
  for (const ScalarRow& row : scalar_rows()) {
    if (step_of(row.function) == op) return row.options.cost;
  }
  using T = TileOp;
  const auto among = [op](std::initializer_list<TileOp> ops) {
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  };
  if (among({T::pow, T::pow_number})) return 10000;
  if (among({T::power_of_half, T::divide_by_number, T::divide_number})) return 200;
  return 60;
}

class Compiler {
 public:
  Compiler(const KernelRequest& request, TileProgram& program)
      : request_(request), program_(program), body_(body_of(request)) {}

  std::optional<std::string> run() {
    program_ = {};
    program_.inputs = static_cast<int>(request_.inputs.size());
    program_.outputs = static_cast<int>(request_.outputs.size());
    if (program_.inputs + program_.outputs > 160) return "too many operands";
    if (const auto reason = check_types()) return reason;
    place_.assign(body_.values.size(), -1);
    widen_inputs();
    for (const BodyNode& node : body_.nodes) lower(node);
    if (failure_) return failure_;
    finish();
    return std::nullopt;
  }

 private:
  // A step over values; -1 = none. Values beyond the body's are made here.
  struct Step {
    TileOp op = TileOp::copy;
    int y = -1, a = -1, b = -1, c = -1;
    float s = 0, t = 0;
    bool dead = false;
  };

  static bool is_half(DType dtype) { return dtype == DType::bfloat16 || dtype == DType::float16; }
  static bool plain(DType dtype) {
    return dtype == DType::float32 || dtype == DType::boolean || is_half(dtype);
  }

  // Steps compute in float32: what is of 16 bits is converted when it comes in.
  void widen_inputs() {
    const int count = static_cast<int>(body_.values.size());
    for (int v = 0; v < count; ++v) {
      const DType dtype = body_.values[v].dtype;
      if (!is_half(dtype) || body_.values[v].input < 0 || number(v)) continue;
      const int wide = new_value();
      body_.values[wide].uses = std::exchange(body_.values[v].uses, 1);
      emit(dtype == DType::float16 ? TileOp::from_float16 : TileOp::from_bfloat16, wide, v);
      for (BodyNode& node : body_.nodes) {
        std::replace(node.inputs.begin(), node.inputs.end(), v, wide);
      }
      std::replace(body_.outputs.begin(), body_.outputs.end(), v, wide);
    }
  }

  std::optional<std::string> check_types() {
    const Shape* space = nullptr;
    for (const BodyNode& node : body_.nodes) {
      const Node& n = *node.node;
      const bool reduces = is_reduction(n);
      if (n.op->scalar == ScalarFunction::none && !reduces) return "operator " + n.op->name;
      if (reduces && &node != &body_.nodes.back() && !is_last_use(node))
        return "a reduction inside";
      const Shape& shape = body_.values[reduces ? node.inputs[0] : node.output].shape;
      if (space == nullptr) space = &shape;
      if (*space != shape) return "several index spaces";
      const bool cast = n.op->scalar == ScalarFunction::cast;
      for (int input : node.inputs) {
        const DType dtype = body_.values[input].dtype;
        if (plain(dtype)) continue;
        const bool number =
            body_.values[input].number.has_value() && n.op->scalar == ScalarFunction::pow;
        const bool small = dtype == DType::uint8 || dtype == DType::int32 || dtype == DType::int64;
        if (number || (cast && small && body_.values[input].input >= 0)) continue;
        return "element type " + std::string(name_of(dtype));
      }
      const DType result = body_.values[node.output].dtype;
      if (!plain(result)) return "element type " + std::string(name_of(result));
      if (result == DType::boolean && (n.op->scalar == ScalarFunction::where || reduces)) {
        return "element type bool";
      }
      if (reduces && body_.values[node.inputs[0]].dtype == DType::boolean)
        return "element type bool";
      if (reduces && result != DType::float32) return "a sum of 16 bits";
    }
    if (space == nullptr) return "an empty body";
    program_.space = *space;
    return std::nullopt;
  }

  bool is_last_use(const BodyNode& node) const {
    for (const BodyNode& other : body_.nodes) {
      for (int input : other.inputs) {
        if (input == node.output) return false;
      }
    }
    return true;
  }

  int new_value() {
    body_.values.push_back({});
    place_.push_back(-1);
    return static_cast<int>(body_.values.size()) - 1;
  }

  const std::optional<double>& number(int value) const { return body_.values[value].number; }

  void emit(TileOp op, int y, int a, int b = -1, int c = -1, double s = 0, double t = 0) {
    steps_.push_back({op, y, a, b, c, static_cast<float>(s), static_cast<float>(t), false});
  }

  // The step that makes `value` where only one step reads it, or null.
  Step* only_maker(int value, TileOp op) {
    if (body_.values[value].uses != 1) return nullptr;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (!step->dead && step->y == value) return step->op == op ? &*step : nullptr;
    }
    return nullptr;
  }

  /// A copy of the step that only_maker finds, which is removed from the program.
  std::optional<Step> absorbed(int value, TileOp op) {
    Step* const step = only_maker(value, op);
    if (step == nullptr) return std::nullopt;
    step->dead = true;
    return *step;
  }

  void lower(const BodyNode& node) {
    const Node& n = *node.node;
    if (is_reduction(n)) {
      lower_reduction(node);
      return;
    }
    const ScalarFunction f = n.op->scalar;
    const int y = node.output, a = node.inputs[0];
    const int b = node.inputs.size() > 1 ? node.inputs[1] : -1;
    const int c = node.inputs.size() > 2 ? node.inputs[2] : -1;
    switch (f) {
      case ScalarFunction::cast:
        lower_cast(y, a);
        return;
      case ScalarFunction::relu:
        if (Step* sum = only_maker(a, TileOp::add)) {
          sum->op = TileOp::add_relu;
          sum->y = y;
          return;
        }
        break;
      case ScalarFunction::add:
        lower_add(y, a, b);
        return;
      case ScalarFunction::sub:
        lower_sub(y, a, b);
        return;
      case ScalarFunction::mul:
        lower_mul(y, a, b);
        return;
      case ScalarFunction::div:
        if (number(b))
          emit(TileOp::divide_by_number, y, a, -1, -1, *number(b));
        else if (number(a))
          emit(TileOp::divide_number, y, b, -1, -1, *number(a));
        else
          emit(TileOp::div, y, a, b);
        return;
      case ScalarFunction::pow:
        lower_pow(y, a, b);
        return;
      default:
        break;
    }
    if (step_of(f) == TileOp::count) {
      failure_ = "operator " + n.op->name;
      return;
    }
    const ScalarSettings settings = scalar_settings(n);
    emit(step_of(f), y, a, b, c, settings[0], settings[1]);
  }

  // A cast to 16 bits rounds here and now. Other results of 16 bits stay float32 until they are
  // stored.
  void lower_cast(int y, int a) {
    const DType from = body_.values[a].dtype, to = body_.values[y].dtype;
    TileOp op = TileOp::copy;
    if (to == DType::boolean && from != DType::boolean) op = TileOp::is_true;
    if (is_half(to) && from != to && from != DType::boolean)
      op = to == DType::float16 ? TileOp::round_float16 : TileOp::round_bfloat16;
    const TileOp conversion = from == DType::uint8   ? TileOp::from_uint8
                              : from == DType::int32 ? TileOp::from_int32
                              : from == DType::int64 ? TileOp::from_int64
                                                     : TileOp::copy;
    if (conversion == TileOp::copy || number(a)) {  // numbers are floats already
      emit(op, y, a);
    } else if (op == TileOp::copy) {
      emit(conversion, y, a);
    } else {
      const int wide = new_value();
      emit(conversion, wide, a);
      emit(op, y, wide);
    }
  }

  void lower_add(int y, int a, int b) {
    if (number(a)) std::swap(a, b);
    if (number(b)) {
      if (Step* product = only_maker(a, TileOp::multiply_number)) {
        product->op = TileOp::scale_shift;
        product->t = static_cast<float>(*number(b));
        product->y = y;
      } else {
        emit(TileOp::add_number, y, a, -1, -1, *number(b));
      }
      return;
    }
    for (int side = 0; side < 2; ++side, std::swap(a, b)) {
      if (const auto product = absorbed(a, TileOp::mul)) {
        emit(TileOp::multiply_add, y, product->a, product->b, b);
        return;
      }
      if (const auto product = absorbed(a, TileOp::multiply_number)) {
        emit(TileOp::scaled_add, y, product->a, b, -1, product->s);
        return;
      }
    }
    emit(TileOp::add, y, a, b);
  }

  void lower_sub(int y, int a, int b) {
    if (number(b)) {
      emit(TileOp::add_number, y, a, -1, -1, -*number(b));
    } else if (number(a)) {
      emit(TileOp::from_number, y, b, -1, -1, *number(a));
    } else if (const auto product = absorbed(b, TileOp::multiply_number)) {
      emit(TileOp::scaled_add, y, product->a, a, -1, -product->s);
    } else {
      emit(TileOp::sub, y, a, b);
    }
  }

  void lower_mul(int y, int a, int b) {
    if (number(a)) std::swap(a, b);
    if (number(b)) {
      emit(TileOp::multiply_number, y, a, -1, -1, *number(b));
      return;
    }
    for (int side = 0; side < 2; ++side, std::swap(a, b)) {
      if (const auto product = absorbed(a, TileOp::mul)) {
        emit(TileOp::multiply3, y, product->a, product->b, b);
        return;
      }
    }
    emit(a == b ? TileOp::square : TileOp::mul, y, a, b);
  }

  void lower_pow(int y, int a, int b) {
    if (!number(b)) {
      emit(TileOp::pow, y, a, b);
      return;
    }
    const double e = *number(b);
    if (e == 2)
      emit(TileOp::square, y, a);
    else if (e == 3)
      emit(TileOp::cube, y, a);
    else if (e == 1)
      emit(TileOp::copy, y, a);
    else if (e == 0.5)
      emit(TileOp::power_of_half, y, a);
    else if (e == -1)
      emit(TileOp::reciprocal, y, a);
    else
      emit(TileOp::pow_number, y, a, -1, -1, e);
  }

  void lower_reduction(const BodyNode& node) {
    const Node& n = *node.node;
    TileReduction reduction;
    reduction.axes.assign(program_.space.size(), 0);
    int source = node.inputs[0];
    if (n.op->reducer == Reducer::sum_of_squares) {
      reduction.axes.assign(program_.space.size(), 1);
      const int squared = new_value();
      emit(TileOp::square, squared, source);
      source = squared;
    } else {
      for (std::int64_t axis : n.attributes.integers("axes")) reduction.axes[axis] = 1;
      if (n.op->reducer == Reducer::mean) reduction.kind = TileReduction::Kind::mean;
      if (n.op->reducer == Reducer::maximum) reduction.kind = TileReduction::Kind::maximum;
    }
    for (std::size_t i = 0; i < body_.outputs.size(); ++i) {
      if (body_.outputs[i] == node.output) reduction.output = static_cast<int>(i);
    }
    reduced_value_ = source;
    reduced_result_ = node.output;
    program_.reduction = reduction;
  }

  // Places: outputs are written directly unless a later step still reads an input, whose storage an
  // output may share; those are copied at the end.
  void finish() {
    std::erase_if(steps_, [](const Step& step) { return step.dead; });
    const std::size_t value_count = body_.values.size();
    program_.input_used.assign(program_.inputs, 0);
    program_.output_direct.assign(program_.outputs, 0);
    for (std::size_t v = 0; v < value_count; ++v) {
      if (body_.values[v].input >= 0) place_[v] = body_.values[v].input;
    }
    std::vector<int> last_read(value_count, -1);
    std::size_t last_input_read = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      for (int v : {steps_[i].a, steps_[i].b, steps_[i].c}) {
        if (v < 0) continue;
        last_read[v] = static_cast<int>(i);
        if (body_.values[v].input >= 0 && !number(v)) last_input_read = i;
        if (number(v)) constant_place(v);
        if (body_.values[v].input >= 0 && place_[v] < program_.inputs)
          program_.input_used[place_[v]] = 1;
      }
    }
    const int after_end = static_cast<int>(steps_.size()) + 1;
    if (reduced_value_ >= 0) {
      last_read[reduced_value_] = after_end;
      if (number(reduced_value_)) constant_place(reduced_value_);
      if (place_[reduced_value_] >= 0 && place_[reduced_value_] < program_.inputs) {
        program_.input_used[place_[reduced_value_]] = 1;
        last_input_read = steps_.size();
      }
    }
    struct Late {
      int value, output;
      TileOp op;
    };
    std::vector<Late> late;
    for (std::size_t o = 0; o < body_.outputs.size(); ++o) {
      const int v = body_.outputs[o];
      if (v == reduced_result_ || !request_.outputs[o].present) continue;
      program_.output_direct[o] = 1;
      int maker = -1;
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        if (steps_[i].y == v) maker = static_cast<int>(i);
      }
      const DType dtype = request_.outputs[o].type.dtype;
      const TileOp store = dtype == DType::boolean    ? TileOp::to_bool
                           : dtype == DType::bfloat16 ? TileOp::to_bfloat16
                           : dtype == DType::float16  ? TileOp::to_float16
                                                      : TileOp::copy;
      const bool early = maker < static_cast<int>(last_input_read);
      if (maker < 0 || store != TileOp::copy || early || place_[v] >= 0) {
        late.push_back({v, static_cast<int>(o), store});
        last_read[v] = after_end;
        if (maker < 0 && body_.values[v].input >= 0) program_.input_used[body_.values[v].input] = 1;
      } else {
        place_[v] = program_.place_of_output(static_cast<int>(o));
      }
    }
    allocate(last_read);
    for (const Late& l : late) {
      TileStep step;
      step.op = l.op;
      step.y = program_.place_of_output(l.output);
      step.a = place_[l.value];
      program_.steps.push_back(step);
    }
    if (program_.reduction) program_.reduction->source = place_[reduced_value_];
    for (const TileStep& step : program_.steps) program_.cost += cost_of_op(step.op);
  }

  void constant_place(int v) {
    if (place_[v] >= program_.inputs) return;
    place_[v] = program_.place_of_register(program_.registers);
    program_.constants.push_back({program_.registers++, static_cast<float>(*number(v))});
  }

  void allocate(const std::vector<int>& last_read) {
    std::vector<int> idle;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      const auto place = [&](int v) { return v < 0 ? 0 : place_[v]; };
      TileStep out{step.op, 0, place(step.a), place(step.b), place(step.c), step.s, step.t};
      // Element-wise steps may write over what they read for the last time.
      int seen[3] = {-1, -1, -1};
      int count = 0;
      for (int v : {step.a, step.b, step.c}) {
        if (v < 0 || last_read[v] != static_cast<int>(i) || !in_register(v)) continue;
        if (std::find(seen, seen + count, place_[v]) != seen + count) continue;
        seen[count++] = place_[v];
        idle.push_back(place_[v]);
      }
      if (place_[step.y] < 0) {
        if (idle.empty()) {
          place_[step.y] = program_.place_of_register(program_.registers++);
        } else {
          place_[step.y] = idle.back();
          idle.pop_back();
        }
      }
      out.y = place_[step.y];
      if (out.op == TileOp::copy && out.y == out.a) continue;
      program_.steps.push_back(out);
    }
  }

  bool in_register(int v) const {
    if (place_[v] < program_.inputs + program_.outputs) return false;
    for (const auto& [reg, value] : program_.constants) {
      if (program_.place_of_register(reg) == place_[v]) return false;
    }
    return true;
  }

  const KernelRequest& request_;
  TileProgram& program_;
  Body body_;
  std::vector<Step> steps_;
  std::vector<int> place_;
  int reduced_value_ = -1, reduced_result_ = -1;
  std::optional<std::string> failure_;
};

}  // namespace

std::optional<std::string> compile_tiles(const KernelRequest& request, TileProgram& program) {
  for (const Operand& input : request.inputs) {
    if (!input.present) return "an absent input";
  }
  return Compiler(request, program).run();
}

}  // namespace tandem
