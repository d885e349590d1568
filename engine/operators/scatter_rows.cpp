// y = x, and then for each m in turn: y[indices[m]] = updates[m] (reduction "none"), or the row's
// sum, product, maximum or minimum with updates[m] ("add", "mul", "max", "min"). Negative indices
// count from the end; nothing happens where the index is absent_id (rows.h).
#include <numeric>

#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_scatter_rows(const NodeView& node) {
  const TensorType& x = node.input(0);
  if (x.rank() < 1) node.fail("a scalar has no rows", "rows", to_string(x));
  require_index(node, 1);
  require_rank(node, 1, 1);
  require_same_dtype(node, 2, 0);
  Shape updates = x.shape;
  updates[0] = node.input(1).shape[0];
  require_shape(node, 2, updates);
  if (x.shape[0] == 0 && updates[0] > 0) node.fail("indices into an axis without elements");
  const std::string& reduction = node.attributes().text("reduction");
  if (reduction != "none" && reduction != "add" && reduction != "mul" && reduction != "max" &&
      reduction != "min") {
    node.fail("attribute 'reduction'", "none, add, mul, max or min", reduction);
  }
  if (reduction != "none") require_number(node, 0);
  return {x};
}

/// The graph of the gradient: dx and dupdates of one node.
struct Scatter {
  GraphBuilder& g;
  ValueId x, indices, updates, y, dy;

  explicit Scatter(GradientContext& c)
      : g(c.g), x(c.x(0)), indices(c.x(1)), updates(c.x(2)), y(c.y(0)), dy(c.dy[0]) {}

  DType dtype() const { return g.dtype(x); }
  ValueId row(ValueId of) { return g.add_node("Gather", {of, indices}); }
  ValueId scatter(ValueId into, ValueId values, const char* reduction) {
    return g.add_node("ScatterRows", {into, indices, values},
                      {{"reduction", std::string(reduction)}});
  }
  ValueId number(double value) { return g.scalar(value, dtype()); }
  ValueId zeros(const TensorType& type) { return g.expand(g.scalar(0, type.dtype), type.shape); }
  ValueId where(ValueId condition, ValueId then, ValueId otherwise) {
    return g.add_node("Where", {condition, then, otherwise});
  }
  ValueId equal(ValueId a, ValueId b) { return g.add_node("Equal", {a, b}); }

  // Among updates to one row the last one stays; only it has a gradient.
  Gradients overwriting(bool wants_x, bool wants_updates) {
    Gradients result(3);
    if (wants_x) result[0] = scatter(dy, zeros(g.type(updates)), "none");
    if (!wants_updates) return result;
    const std::int64_t rows = g.shape(x)[0], count = g.shape(updates)[0];
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    const ValueId turn = g.constant(HostTensor::from({count}, numbers));
    const ValueId last = scatter(zeros({DType::int64, {rows}}), turn, "none");
    Shape column(g.shape(updates).size(), 1);
    column[0] = count;
    result[2] = where(g.reshape(equal(row(last), turn), column), row(dy), number(0));
    return result;
  }

  // With p the product of all factors of a row but zeros, z the number of its zeros: the product
  // of the others is p / factor where z is 0, p for the only zero, and else 0.
  Gradients multiplying() {
    const ValueId zero = number(0), one = number(1);
    const ValueId x_is_zero = equal(x, zero), update_is_zero = equal(updates, zero);
    const ValueId x_factor = where(x_is_zero, one, x);
    const ValueId update_factor = where(update_is_zero, one, updates);
    const ValueId product = scatter(x_factor, update_factor, "mul");
    const ValueId count =
        scatter(g.cast(x_is_zero, dtype()), g.cast(update_is_zero, dtype()), "add");
    const auto others = [&](ValueId is_zero, ValueId factor, ValueId p, ValueId z) {
      const ValueId mine = g.cast(is_zero, dtype());
      return where(equal(z, mine), g.div(p, factor), zero);
    };
    const ValueId dx = g.mul(dy, others(x_is_zero, x_factor, product, count));
    const ValueId du =
        g.mul(row(dy), others(update_is_zero, update_factor, row(product), row(count)));
    return {dx, {}, du};
  }

  // dy is shared evenly among the elements that equal the result.
  Gradients choosing() {
    const ValueId kept = g.cast(equal(x, y), dtype());
    const ValueId taken = g.cast(equal(updates, row(y)), dtype());
    const ValueId share = g.div(dy, scatter(kept, taken, "add"));
    // A row that no element equals is NaN, and so is its result.
    return {g.mul(kept, share), {}, g.mul(taken, row(share))};
  }
};

Gradients scatter_rows_gradient(GradientContext& c) {
  const std::string& reduction = c.node.attributes.text("reduction");
  Scatter s(c);
  if (reduction == "none") return s.overwriting(c.wanted[0], c.wanted[2]);
  if (reduction == "mul") return s.multiplying();
  if (reduction != "add") return s.choosing();
  return {c.dy[0], {}, c.wanted[2] ? s.row(c.dy[0]) : ValueId{}};
}

bool compares(const Attributes& attributes) {
  const std::string& reduction = attributes.text("reduction");
  return reduction == "max" || reduction == "min";
}

}  // namespace

Operator scatter_rows() {
  return {.name = "ScatterRows",
          .inputs = {{"x"}, {"indices"}, {"updates"}},
          .outputs = {{"y"}},
          .attributes = {{"reduction", std::string("none")}},
          .infer = infer_scatter_rows,
          .gradient = scatter_rows_gradient,
          .drops_elements = true,
          .gradient_compares = compares};
}

}  // namespace tandem::operators
