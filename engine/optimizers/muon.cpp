#include "engine/optimizers/muon.h"

#include <algorithm>
#include <cmath>

#include "engine/optimizers/composed.h"

namespace tandem {
namespace {

/// [outputs, inputs] of a weight, and how it lies in the parameter.
struct MuonMatrix {
  Shape shape;                 // as the parameter has it
  bool is_transposed = false;  // [inputs, outputs]
  double outputs() const { return static_cast<double>(shape[is_transposed ? 1 : 0]); }
  double inputs() const { return static_cast<double>(shape[is_transposed ? 0 : 1]); }
};

MuonMatrix matrix_of(const Shape& parameter, const Ints& unit_axes) {
  const std::int64_t rows = parameter[0];
  const std::int64_t columns = element_count(Shape(parameter.begin() + 1, parameter.end()));
  return {{rows, columns}, parameter.size() == 2 && unit_axes == Ints{0}};
}

double ratio_of(const MuonSettings& s, const MuonMatrix& m) {
  if (s.adjust_rate == MuonRate::match_rms_adamw)
    return 0.2 * std::sqrt(std::max(m.outputs(), m.inputs()));
  const double ratio = m.outputs() / m.inputs();
  return std::sqrt(s.adjust_rate == MuonRate::original ? std::max(1.0, ratio) : ratio);
}

/// The polynomial is odd, so that the wider form, whose product with its transpose is smaller,
/// gives the transpose of the same.
ValueId orthogonal(GraphBuilder& g, const MuonSettings& s, ValueId x) {
  const bool is_tall = g.shape(x)[0] > g.shape(x)[1];
  if (is_tall) x = g.transpose_last_two(x);
  const auto number = [&](double n) { return g.scalar(n, DType::float32); };
  const ValueId a = number(s.a), b = number(s.b), c = number(s.c);
  const ValueId norm = g.add_node("Sqrt", {g.add_node("SumOfSquares", {x})});
  x = g.div(x, g.add_node("Max", {norm, number(s.epsilon)}));
  for (int step = 0; step < static_cast<int>(s.steps); ++step) {
    const ValueId gram = g.matmul(x, g.transpose_last_two(x));
    const ValueId mixed = g.add(g.mul(gram, b), g.mul(g.matmul(gram, gram), c));
    x = g.add(g.mul(x, a), g.matmul(mixed, x));
  }
  return is_tall ? g.transpose_last_two(x) : x;
}

}  // namespace

ComposedResult Muon::compose(const Settings& s, ComposedStep& step) {
  GraphBuilder& g = step.g;
  const ValueId kept = step.number_of(s.momentum), fresh = step.number_of(1 - s.momentum);
  const ValueId share = g.mul(step.gradient, fresh);
  const ValueId mean = g.add(g.mul(step.states[0], kept), share);
  const ValueId direction = s.nesterov ? g.add(g.mul(mean, kept), share) : mean;
  const Shape shape = g.shape(step.whole_master);
  const MuonMatrix matrix = matrix_of(shape, step.unit_axes);
  const ValueId x = orthogonal(g, s, g.reshape(step.whole(direction), matrix.shape));
  const ValueId never = g.scalar(0, DType::boolean);
  const ValueId master = g.add_node("SgdUpdate",
                                    {step.whole_master,
                                     g.reshape(x, shape),
                                     {},
                                     step.lr,
                                     step.number,
                                     step.number_of(ratio_of(s, matrix)),
                                     step.skip ? step.skip : never},
                                    {{"weight_decay", s.weight_decay}});
  return {master, {step.unless_skipped(step.states[0], mean)}, true};
}

}  // namespace tandem
