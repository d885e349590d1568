#include "importer/chosen_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "engine/operators/tables/rows.h"
#include "importer/inlined.h"

namespace tandem::importer {
namespace {

std::int64_t product_of(Shape::const_iterator first, Shape::const_iterator last) {
  return std::accumulate(first, last, std::int64_t{1}, std::multiplies<>());
}

/// Whether `masked` takes entries of this type.
bool can_be_masked(DType dtype) {
  return is_float(dtype) || dtype == DType::int32 || dtype == DType::int64;
}

/// For functions that are not finite everywhere, or whose slope is not: the operand that entries
/// which do not count get. Zero times their slope would be NaN, and integers divided by zero are an
/// error.
struct SafeOperand {
  std::string_view op;
  double value = 0;
  std::size_t from = 0;  // the first operand that needs it
};
constexpr SafeOperand safe_operands[] = {
    {"Exp", 0},  {"Expm1", 0},  {"Sinh", 0},   {"Cosh", 0},      {"Tan", 0},   {"Asin", 0},
    {"Acos", 0}, {"Atanh", 0},  {"Acosh", 2},  {"Log", 1},       {"Log1p", 1}, {"Sqrt", 1},
    {"Pow", 1},  {"Div", 1, 1}, {"Mod", 1, 1}, {"Reciprocal", 1}};

HostTensor numbers(double value, const TensorType& type) {
  HostTensor tensor(TensorType{DType::float64, type.shape});
  for (double& number : tensor.as<double>()) number = value;
  return tensor.converted(type.dtype);
}

/// What a rule makes of one node.
class RowRule {
 public:
  RowRule(Session& session, std::string_view op, const std::vector<Term>& inputs,
          const Attributes& attributes)
      : session_(session),
        op_(op),
        inputs_(inputs),
        plain_(without_choice(inputs)),
        attributes_(attributes) {
    for (const Term& input : inputs) {
      if (!input.rows) continue;
      if (!first_) first_ = input.rows;
      if (input.rows->valid != first_->valid && op != "Concat") {
        refuse_chosen_rows(session, first_->cause,
                           fmt::format("{} takes these rows together with those that {} chooses",
                                       op, input.rows->cause));
      }
    }
  }

  std::vector<Term> run() {
    using Member = std::vector<Term> (RowRule::*)();
    struct Entry {
      std::string_view op;
      Member rule;
    };
    // The one table of what operators do with rows that data chooses; scalar functions are those of
    // the first line.
    static constexpr Entry rules[] = {
        {"Pow", &RowRule::by_elements},
        {"Where", &RowRule::by_elements},
        {"Cast", &RowRule::by_elements},
        {"BitCast", &RowRule::by_elements},
        {"FromFloat8", &RowRule::by_elements},
        {"ToFloat8", &RowRule::by_elements},
        {"Identity", &RowRule::by_elements},
        {"StopGradient", &RowRule::by_elements},
        {"Dropout", &RowRule::by_elements},
        {"RandomUniformLike", &RowRule::by_elements},
        {"RandomNormalLike", &RowRule::by_elements},
        {"Reshape", &RowRule::reshape},
        {"Transpose", &RowRule::transpose},
        {"Slice", &RowRule::slice},
        {"Expand", &RowRule::expand},
        {"Split", &RowRule::beside_axis},
        {"TopK", &RowRule::beside_axis},
        {"LogSoftmax", &RowRule::beside_axis},
        {"Softmax", &RowRule::softmax},
        {"CumSum", &RowRule::cum_sum},
        {"Concat", &RowRule::concat},
        {"Gather", &RowRule::gather},
        {"FlatIndices", &RowRule::before_last_axis},
        {"ScatterRows", &RowRule::scatter},
        {"ReduceSum", &RowRule::reduce},
        {"ReduceMean", &RowRule::reduce},
        {"ReduceMax", &RowRule::reduce},
        {"ReduceProd", &RowRule::reduce},
        {"MatMul", &RowRule::product},
        {"LayerNormalization", &RowRule::before_axis},
        {"Conv", &RowRule::samples},
        {"MaxPool", &RowRule::samples},
        {"AveragePool", &RowRule::samples},
    };
    if (session_.operators.get(op_).is_scalar()) return by_elements();
    for (const Entry& entry : rules) {
      if (entry.op == op_) return (this->*entry.rule)();
    }
    refuse(fmt::format("{} may mix the rows of its operand", op_));
  }

 private:
  [[noreturn]] void refuse(std::string reason) const {
    refuse_chosen_rows(session_, first_->cause, std::move(reason));
  }

  std::vector<Term> apply(const std::vector<Term>& inputs) {
    return session_.apply(op_, inputs, attributes_);
  }
  Term make(std::string_view op, const std::vector<Term>& inputs,
            const Attributes& attributes = {}) {
    return session_.apply(op, inputs, attributes)[0];
  }
  Term marked(Term term, std::size_t axis) const {
    return with_chosen_rows(std::move(term), axis, first_->valid, first_->cause);
  }
  std::vector<Term> marked(std::vector<Term> terms, std::size_t axis) const {
    for (Term& term : terms) {
      if (axis < term.type.shape.size()) term = marked(std::move(term), axis);
    }
    return terms;
  }
  std::vector<Term> apply_beside(std::size_t axis) { return marked(apply(plain_), axis); }

  std::size_t axis() const { return first_->axis; }
  const Shape& shape(std::size_t i) const { return inputs_[i].type.shape; }
  bool has_rows(std::size_t i) const { return i < inputs_.size() && inputs_[i].rows != nullptr; }

  /// Only the first operand may have chosen rows.
  void require_first_alone() const {
    for (std::size_t i = 1; i < inputs_.size(); ++i) {
      if (has_rows(i)) refuse(fmt::format("{} takes as operand {} rows", op_, i));
    }
  }

  /// The axis with the rows of broadcast operands, counted from the last axis. Operands without
  /// rows have extent 1 there, or rows of the same choice.
  std::size_t common_axis(std::size_t skipped_last_axes = 0) const {
    std::optional<std::size_t> from_end;
    for (const Term& input : inputs_) {
      if (!input.rows) continue;
      const std::size_t place = input.type.shape.size() - input.rows->axis;
      if (from_end && *from_end != place)
        refuse(fmt::format("{} takes rows of two operands along different axes", op_));
      from_end = place;
    }
    for (const Term& input : inputs_) {
      const std::size_t rank = input.type.shape.size();
      if (input.rows || rank < *from_end || !(input.id || input.constant)) continue;
      if (*from_end <= skipped_last_axes) continue;
      if (input.type.shape[rank - *from_end] != 1)
        refuse(fmt::format(
            "{} takes these rows together with an operand that has all possible rows", op_));
    }
    return *from_end;
  }

  std::vector<Term> by_elements() {
    const std::size_t from_end = common_axis();
    std::vector<Term> results = apply(safe());
    for (Term& result : results) {
      if (result.type.shape.size() >= from_end)
        result = marked(std::move(result), result.type.shape.size() - from_end);
    }
    return results;
  }

  /// The operands, with numbers that the operator takes well where they do not count.
  std::vector<Term> safe() {
    std::vector<Term> operands = plain_;
    for (const SafeOperand& each : safe_operands) {
      for (std::size_t i = each.from; each.op == op_ && i < operands.size(); ++i) {
        if (has_rows(i) && can_be_masked(operands[i].type.dtype))
          operands[i] = masked(operands[i], inputs_[i].rows->axis, each.value);
      }
    }
    return operands;
  }

  std::vector<Term> reshape() {
    const Shape &from = shape(0), &to = attributes_.integers("shape");
    const auto at = from.begin() + static_cast<std::ptrdiff_t>(axis());
    const std::int64_t n = *at, before = product_of(from.begin(), at),
                       after = product_of(at + 1, from.end());
    // Extents of 1 leave a choice: rows that stay an axis of their own before others.
    for (std::size_t k = 0; n > 0 && k < 2 * to.size(); ++k) {
      const std::size_t j = k % to.size();
      const auto place = to.begin() + static_cast<std::ptrdiff_t>(j);
      const std::int64_t front = product_of(to.begin(), place),
                         back = product_of(place + 1, to.end());
      if (front == 0 || back == 0 || before % front != 0 || after % back != 0) continue;
      const std::int64_t outer = before / front, inner = after / back;
      if (*place != outer * n * inner) continue;
      if (k < to.size() && (outer != 1 || inner != 1)) continue;
      const ValueId valid = spread(outer, n, inner);
      return {with_chosen_rows(apply(plain_)[0], j, valid, first_->cause)};
    }
    refuse(fmt::format("Reshape to {} takes rows apart", to_string(to)));
  }

  /// Which entries count once an axis is merged with others: made once, so that indices and what
  /// they address still belong together.
  ValueId spread(std::int64_t outer, std::int64_t n, std::int64_t inner) {
    if (outer == 1 && inner == 1) return first_->valid;
    ValueId& known = session_.row_masks[{first_->valid.index, outer, inner}];
    if (known) return known;
    const Term apart = make("Reshape", {session_.value(first_->valid)}, {{"shape", Ints{1, n, 1}}});
    const Term wide = make("Expand", {apart}, {{"shape", Ints{outer, n, inner}}});
    const Term flat = make("Reshape", {wide}, {{"shape", Ints{outer * n * inner}}});
    known = flat.id;
    return known;
  }

  std::vector<Term> transpose() {
    const Ints& perm = attributes_.integers("perm");
    const auto at = std::find(perm.begin(), perm.end(), static_cast<std::int64_t>(axis()));
    return apply_beside(static_cast<std::size_t>(at - perm.begin()));
  }

  std::vector<Term> slice() {
    const bool is_whole = attributes_.integers("starts")[axis()] == 0 &&
                          attributes_.integers("sizes")[axis()] == shape(0)[axis()] &&
                          attributes_.integers("steps")[axis()] == 1;
    if (!is_whole) refuse("Slice takes places among the rows");
    return apply_beside(axis());
  }

  std::vector<Term> expand() {
    const Shape& to = attributes_.integers("shape");
    const std::size_t place = to.size() - shape(0).size() + axis();
    if (to[place] != shape(0)[axis()]) refuse("Expand repeats the rows");
    return apply_beside(place);
  }

  std::vector<Term> beside_axis() {
    require_first_alone();
    if (attributes_.integer("axis") == static_cast<std::int64_t>(axis()))
      refuse(fmt::format("{} runs along the rows", op_));
    return apply_beside(axis());
  }

  std::vector<Term> before_axis() {
    require_first_alone();
    if (static_cast<std::int64_t>(axis()) >= attributes_.integer("axis"))
      refuse(fmt::format("{} runs along the rows", op_));
    return apply_beside(axis());
  }

  std::vector<Term> before_last_axis() {
    require_first_alone();
    if (axis() + 1 == shape(0).size()) refuse(fmt::format("{} runs along the rows", op_));
    if (attributes_.integers("position_strides")[axis()] != 0)
      refuse("an index along another axis counts the rows");
    return apply_beside(axis());
  }

  std::vector<Term> samples() {
    require_first_alone();
    if (axis() != 0) refuse(fmt::format("{} runs along the rows", op_));
    return apply_beside(0);
  }

  /// `x` where its entries along its axis count, else `otherwise`.
  Term masked(const Term& x, double otherwise) { return masked(x, x.rows->axis, otherwise); }
  Term masked(const Term& x, std::size_t along, double otherwise) {
    Shape column(x.type.shape.size(), 1);
    column[along] = x.type.shape[along];
    const Term valid = make("Reshape", {session_.value(first_->valid)}, {{"shape", column}});
    const Term other = session_.constant(numbers(otherwise, {x.type.dtype, {}}));
    return make("Where", {valid, without_choice(x), other});
  }

  // Where nothing counts it is NaN throughout, which no gradient may meet: zeros then, too.
  std::vector<Term> softmax() {
    if (attributes_.integer("axis") != static_cast<std::int64_t>(axis()))
      return apply_beside(axis());
    const Term x = masked(inputs_[0], -std::numeric_limits<double>::infinity());
    return {marked(masked(apply({x})[0], axis(), 0), axis())};
  }

  std::vector<Term> cum_sum() {
    if (attributes_.integer("axis") != static_cast<std::int64_t>(axis()))
      return apply_beside(axis());
    return {marked(apply({masked(inputs_[0], 0)})[0], axis())};
  }

  std::vector<Term> concat() {
    const auto at = static_cast<std::size_t>(attributes_.integer("axis"));
    for (const Term& input : inputs_) {
      if (input.rows && input.rows->axis != axis())
        refuse("Concat takes rows of two operands along different axes");
    }
    if (at != axis()) {
      for (const Term& input : inputs_) {
        if (!input.rows || input.rows->valid != first_->valid)
          refuse("Concat takes these rows together with other ones, or with all possible rows");
      }
      return apply_beside(axis());
    }
    // The inputs follow one another, so the flags of the entries that count do too.
    std::vector<std::int64_t> key{-1};
    std::vector<Term> parts;
    for (const Term& input : inputs_) {
      const std::int64_t extent = input.type.shape[at];
      key.insert(key.end(), {input.rows ? input.rows->valid.index : -1, extent});
      parts.push_back(input.rows ? session_.value(input.rows->valid)
                                 : session_.constant(numbers(1, {DType::boolean, {extent}})));
    }
    ValueId& known = session_.row_masks[key];
    if (!known)
      known =
          parts.size() == 1 ? parts[0].id : make("Concat", parts, {{"axis", std::int64_t{0}}}).id;
    const ValueId valid = known;
    return {with_chosen_rows(apply(plain_)[0], axis(), valid, first_->cause)};
  }

  std::vector<Term> gather() {
    const auto along = static_cast<std::size_t>(attributes_.integer("axis"));
    if (has_rows(0) && has_rows(1)) refuse("Gather takes rows by rows");
    if (has_rows(1)) {
      std::vector<Term> operands = plain_;
      // Rows of a table that nothing chooses are not touched by its optimizer either.
      if (is_state(plain_[0])) operands[1] = present(1);
      Term found = apply(operands)[0];
      // Masks are often there to leave NaN, or ids of nothing, out.
      if (!is_state(plain_[0]) && can_be_masked(found.type.dtype))
        found = masked(found, along + axis(), 0);
      return {marked(std::move(found), along + axis())};
    }
    if (along == axis()) refuse("Gather takes places among the rows");
    return apply_beside(axis() < along ? axis() : axis() + shape(1).size() - 1);
  }

  bool is_state(const Term& term) const {
    return term.id && session_.builder.graph().value(term.id).kind == ValueKind::state;
  }

  /// Indices that name no row where they do not count.
  Term present(std::size_t input) {
    const TensorType& type = inputs_[input].type;
    if (type.dtype != DType::int32 && type.dtype != DType::int64)
      refuse("indices of this type place rows");
    const HostTensor absent = type.dtype == DType::int32
                                  ? HostTensor::from<std::int32_t>({}, {absent_id<std::int32_t>})
                                  : HostTensor::from<std::int64_t>({}, {absent_id<std::int64_t>});
    Shape column(type.shape.size(), 1);
    column[axis()] = type.shape[axis()];
    const Term valid = make("Reshape", {session_.value(first_->valid)}, {{"shape", column}});
    return make("Where", {valid, plain_[input], session_.constant(absent)});
  }

  /// What does not count is written nowhere.
  std::vector<Term> scatter() {
    if (has_rows(0)) refuse("ScatterElements or ScatterND write into rows");
    if (!has_rows(1) || !has_rows(2) || inputs_[2].rows->axis != 0)
      refuse("ScatterElements or ScatterND have as many indices as there could be, and rows");
    const Term indices = present(1);
    return apply({plain_[0], indices, plain_[2]});
  }

  std::vector<Term> reduce() {
    const Ints& axes = attributes_.integers("axes");
    const auto own = static_cast<std::int64_t>(axis());
    if (std::find(axes.begin(), axes.end(), own) == axes.end()) {
      const auto before =
          std::count_if(axes.begin(), axes.end(), [&](std::int64_t other) { return other < own; });
      const bool keeps = attributes_.flag("keepdims");
      return apply_beside(axis() - (keeps ? 0 : static_cast<std::size_t>(before)));
    }
    const DType dtype = inputs_[0].type.dtype;
    if (op_ == "ReduceSum") return apply({masked(inputs_[0], 0)});
    if (op_ == "ReduceProd") return apply({masked(inputs_[0], 1)});
    if (op_ == "ReduceMax") {
      if (!is_float(dtype) && dtype != DType::int64 && dtype != DType::int32)
        refuse("ReduceMax of this type runs along the rows");
      if (is_float(dtype))
        return apply({masked(inputs_[0], -std::numeric_limits<double>::infinity())});
      // The least integer is -2^(bits - 1), which a double holds.
      return apply({masked(inputs_[0], dtype == DType::int64 ? -0x1p63 : -0x1p31)});
    }
    if (!is_float(dtype)) refuse("ReduceMean of integers runs along the rows");
    // The sum over what counts, divided by how many there are, times the elements of other axes.
    double others = 1;
    for (const std::int64_t each : axes) {
      if (each != own) others *= static_cast<double>(shape(0)[static_cast<std::size_t>(each)]);
    }
    const Term sum = make("ReduceSum", {masked(inputs_[0], 0)}, attributes_);
    const Term ones =
        make("Cast", {session_.value(first_->valid)}, {{"to", std::string(name_of(dtype))}});
    const Term count =
        make("ReduceSum", {ones}, {{"axes", Ints{0}}, {"keepdims", std::int64_t{0}}});
    const Term scale = session_.constant(numbers(others, {dtype, {}}));
    return {make("Div", {sum, make("Mul", {count, scale})})};
  }

  // [..., m, k] times [..., k, n]: rows along k would be added up.
  std::vector<Term> product() {
    const std::size_t from_end = common_axis(2);
    const bool is_summed = (has_rows(0) && from_end == 1) || (has_rows(1) && from_end == 2);
    const bool both = has_rows(0) && has_rows(1) && from_end <= 2;
    if (is_summed && both) {
      refuse("MatMul adds up along the rows of only one operand");
    }
    if (is_summed) refuse("MatMul adds up along the rows");
    if (both) refuse("MatMul takes rows of two operands along different axes");
    std::vector<Term> results = apply(plain_);
    return {marked(results[0], results[0].type.shape.size() - from_end)};
  }

  Session& session_;
  const std::string_view op_;
  const std::vector<Term>& inputs_;
  const std::vector<Term> plain_;
  const Attributes& attributes_;
  std::shared_ptr<const ChosenRows> first_;
};

}  // namespace

Term without_choice(Term term) {
  term.rows = nullptr;
  term.counts = nullptr;
  return term;
}

Term with_chosen_rows(Term term, std::size_t axis, ValueId valid, std::string cause) {
  term.rows = std::make_shared<const ChosenRows>(ChosenRows{axis, valid, std::move(cause)});
  return term;
}

std::vector<Term> without_choice(const std::vector<Term>& terms) {
  std::vector<Term> plain;
  for (const Term& term : terms) plain.push_back(without_choice(term));
  return plain;
}

void refuse_chosen_rows(const Session& session, const std::string& cause,
                        const std::string& reason) {
  unsupported(
      session.builder.scope().path, reason + ", which " + cause + " chooses",
      "`eval` and `predict` run it in stages; to train it, choose by a mask (torch.where, a "
      "product with the mask) in place of rows");
}

bool is_about_chosen_rows(const std::vector<Term>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Term& input) { return input.rows || input.counts; });
}

std::vector<Term> apply_to_chosen_rows(Session& session, std::string_view op,
                                       const std::vector<Term>& inputs,
                                       const Attributes& attributes) {
  const auto counted = std::find_if(inputs.begin(), inputs.end(),
                                    [](const Term& input) { return input.counts != nullptr; });
  const bool any_rows = std::any_of(inputs.begin(), inputs.end(),
                                    [](const Term& input) { return input.rows != nullptr; });
  if (counted == inputs.end()) return RowRule(session, op, inputs, attributes).run();
  if (any_rows) {
    refuse_chosen_rows(session, counted->counts->cause,
                       fmt::format("{} computes with the number of rows", op));
  }
  return apply_to_counted_extents(session, op, inputs, attributes);
}

void refuse_chosen_setting(const Session& session, std::string_view op, const Term& term) {
  const std::string& cause = term.rows ? term.rows->cause : term.counts->cause;
  refuse_chosen_rows(session, cause,
                     fmt::format("a setting of {} depends on {}", op,
                                 term.rows ? "the rows" : "the number of rows"));
}

Term first_chosen_rows(Session& session, const Term& x, std::int64_t count) {
  const ChosenRows& rows = *x.rows;
  const std::int64_t capacity = x.type.shape[rows.axis];
  if (count == capacity) return without_choice(x);
  const auto make = [&](std::string_view op, const std::vector<Term>& inputs,
                        const Attributes& attributes) {
    return session.apply(op, inputs, attributes)[0];
  };
  // `places`: for each entry its number among those that count. `indices`: for each of those
  // numbers the entry, or 0 where there is none.
  const Term ones = make("Cast", {session.value(rows.valid)}, {{"to", std::string("int64")}});
  const Term places = make("CumSum", {ones}, {{"axis", std::int64_t{0}}});
  std::vector<std::int64_t> wanted(static_cast<std::size_t>(count)),
      numbered(static_cast<std::size_t>(capacity));
  std::iota(wanted.begin(), wanted.end(), 1);
  std::iota(numbered.begin(), numbered.end(), 0);
  const Term column = session.constant(HostTensor::from({count, 1}, wanted));
  const Term is_it =
      make("And", {make("Equal", {column, places}, {}), session.value(rows.valid)}, {});
  const Term chosen = make("Where",
                           {is_it, session.constant(HostTensor::from({capacity}, numbered)),
                            session.constant(HostTensor::from<std::int64_t>({}, {0}))},
                           {});
  const Term indices =
      make("ReduceSum", {chosen}, {{"axes", Ints{1}}, {"keepdims", std::int64_t{0}}});
  session.note(session.builder.scope().path,
               fmt::format("the file says that data chooses {} of {}: where it chooses others, the "
                           "first {} count",
                           count, capacity, count));
  return make("Gather", {without_choice(x), indices},
              {{"axis", static_cast<std::int64_t>(rows.axis)}});
}

}  // namespace tandem::importer
