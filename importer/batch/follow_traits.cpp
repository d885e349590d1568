#include "importer/batch/follow_traits.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "importer/batch/old_batch.h"
#include "importer/batch/sample_totals.h"
#include "importer/file/onnx_content.h"
#include "importer/operators/elements_of.h"

namespace tandem::importer {
namespace {

std::vector<Seen> seen_operands(const Session& session, const Scope& scope,
                                const onnx::NodeProto& node) {
  std::vector<Seen> operands;
  for (const std::string& name : node.input()) operands.push_back(seen(session, scope, name));
  return operands;
}

// Values that tell samples apart by their number: constants that the file computes from shapes, and
// places among all samples.
bool numbers_samples(const Session& session, const Scope& scope, const onnx::NodeProto& node,
                     const std::vector<Seen>& operands, const Seen& y) {
  if (y.has_changed() && y.term->constant) {
    return !std::all_of(y.changed.begin(), y.changed.end(), [&](std::int64_t i) {
      const auto axis = static_cast<std::size_t>(i);
      return is_equal_in_samples(*y.term->constant, axis,
                                 (*y.before)[axis] / session.old_batch->batch);
    });
  }
  if (operands.empty() || !operands[0].has_changed()) return false;
  if (is_one_of(node, {"NonZero", "Unique"})) return true;
  if (!is_one_of(node, {"ArgMax", "ArgMin", "CumSum", "TopK"})) return false;
  const auto rank = static_cast<std::int64_t>(operands[0].before->size());
  std::int64_t axis = number_attribute(node, "axis", node.op_type() == "TopK" ? -1 : 0);
  if (node.op_type() == "CumSum") {
    const Ints given = known_list(scope, node, "", 1);
    if (given.size() == 1) axis = given[0];
  }
  if (axis < 0) axis += rank;
  const Ints& changed = operands[0].changed;
  return std::find(changed.begin(), changed.end(), axis) != changed.end();
}

bool draws(const onnx::NodeProto& node) {
  return is_one_of(node, {"RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike",
                          "Bernoulli", "Multinomial"});
}

// Whether a Gather takes the entries 0, 1, … of an axis, as many as the file's batch has samples.
bool takes_first_entries(const Session& session, const onnx::NodeProto& node,
                         const std::vector<Seen>& operands) {
  if (!is_one_of(node, {"Gather"}) || !operands[1].is_unchanged()) return false;
  const Term& indices = *operands[1].term;
  if (!indices.constant || indices.type.shape != Shape{session.old_batch->batch}) return false;
  const Ints values = indices.constant->integers();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

// The axis, from the end, that a Slice or a Gather of one value for all samples cuts to the file's
// batch.
std::size_t cut_axis(const Session& session, const Scope& scope, const onnx::NodeProto& node,
                     const std::vector<Seen>& operands, const Seen& y) {
  if (operands.empty() || !is_float(y.term->type.dtype)) return 0;  // integers are indices
  if (is_element_wise(node) || is_one_of(node, {"Cast", "CastLike", "Identity"})) {
    for (const Seen& x : operands) {
      if (x.is_tensor && x.term->samples.cut > 0 && x.term->type.shape == y.term->type.shape)
        return x.term->samples.cut;
    }
    return 0;
  }
  if (!operands[0].is_unchanged()) return 0;
  if (is_one_of(node, {"Slice"})) {
    const Ints starts = known_list(scope, node, "starts", 1);
    if (std::any_of(starts.begin(), starts.end(), [](std::int64_t s) { return s != 0; })) return 0;
  } else if (!takes_first_entries(session, node, operands)) {
    return 0;
  }
  const Shape &x = operands[0].term->type.shape, &shape = y.term->type.shape;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] > shape[i] && shape[i] == session.old_batch->batch) return x.size() - i;
  }
  return 0;
}

std::uint64_t constant_columns(const onnx::NodeProto& node, const std::vector<Seen>& operands,
                               const Seen& y) {
  if (operands.empty()) return 0;
  if (is_one_of(node, {"Cast", "Identity"}))
    return operands[0].is_tensor ? operands[0].term->samples.constant_columns : 0;
  const std::int64_t rank = static_cast<std::int64_t>(y.term->type.shape.size());
  if (!is_one_of(node, {"Concat"}) || rank == 0 || operands.size() > 64) return 0;
  const std::int64_t axis = number_attribute(node, "axis", 0);
  if (axis != -1 && axis != rank - 1) return 0;
  std::uint64_t columns = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Seen& part = operands[i];
    if (!part.is_tensor || part.term->type.shape.back() != 1) return 0;
    if (part.term->constant) columns |= std::uint64_t{1} << i;
  }
  return columns;
}

// How many elements of y's changed axis lie in front of the batch, where that axis holds more than
// the batch: the number from the operand that has the axis, or from the new shape of a reshape; 0:
// not known.
std::int64_t elements_before(const Session& session, const onnx::NodeProto& node,
                             const std::vector<Seen>& operands, const Seen& y) {
  if (y.changed.size() != 1) return y.changed.empty() ? 1 : 0;
  const auto axis = static_cast<std::size_t>(y.changed[0]);
  if ((*y.before)[axis] == session.old_batch->batch) return 1;
  if (is_one_of(node, {"Reshape", "Flatten", "Squeeze", "Unsqueeze"})) {
    const Seen& x = operands[0];
    if (x.changed.size() != 1 || x.term->samples.before == 0) return 0;
    const std::int64_t boundary =
        operators::elements_of(*x.before, 0, static_cast<std::size_t>(x.changed[0])) *
        x.term->samples.before;
    const std::int64_t start = operators::elements_of(*y.before, 0, axis);
    return start > 0 && boundary % start == 0 ? boundary / start : 0;
  }
  for (const Seen& x : operands) {
    if (x.changed.size() == 1 &&
        (*x.before)[static_cast<std::size_t>(x.changed[0])] == (*y.before)[axis])
      return x.term->samples.before;
  }
  return 0;
}

}  // namespace

bool is_one_of(const onnx::NodeProto& node, std::initializer_list<std::string_view> names) {
  return domain_of(node.domain()).empty() &&
         std::find(names.begin(), names.end(), node.op_type()) != names.end();
}

std::int64_t number_attribute(const onnx::NodeProto& node, std::string_view name,
                              std::int64_t missing) {
  const onnx::AttributeProto* given = find_attribute(node, name);
  return given == nullptr ? missing : given->i();
}

Ints known_list(const Scope& scope, const onnx::NodeProto& node, const char* name, int i) {
  if (const onnx::AttributeProto* given = find_attribute(node, name))
    return {given->ints().begin(), given->ints().end()};
  const Term* term = i < node.input_size() ? scope.find(node.input(i)) : nullptr;
  return term != nullptr && term->constant && is_integer(term->type.dtype)
             ? term->constant->integers()
             : Ints{};
}

Seen seen(const Session& session, const Scope& scope, const std::string& name) {
  Seen result;
  if (name.empty()) return result;
  result.term = scope.find(name);
  result.before = shape_before(session, scope, name);
  if (result.term == nullptr || result.before == nullptr) return result;
  const Term& term = *result.term;
  if (term.sequence || term.none || term.bad) return result;
  const Shape& now = term.type.shape;
  if (now.size() != result.before->size()) return result;
  result.is_tensor = true;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if ((*result.before)[i] != now[i]) result.changed.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

bool is_equal_in_samples(const HostTensor& tensor, std::size_t axis, std::int64_t entries) {
  const Shape& shape = tensor.shape();
  const std::int64_t bytes = static_cast<std::int64_t>(tensor.bytes());
  if (bytes == 0 || entries <= 0 || shape[axis] % entries != 0) return false;
  const std::int64_t outer = operators::elements_of(shape, 0, axis);
  const std::int64_t samples = shape[axis] / entries, size = bytes / outer / samples;
  const char* data = static_cast<const char*>(tensor.data());
  for (std::int64_t o = 0; o < outer; ++o, data += samples * size) {
    // Every sample is equal to the one before it.
    if (std::memcmp(data, data + size, static_cast<std::size_t>((samples - 1) * size)) != 0)
      return false;
  }
  return true;
}

bool is_element_wise(const onnx::NodeProto& node) {
  return is_one_of(node, {"Add",       "And",         "BitwiseAnd",
                          "BitwiseOr", "BitwiseXor",  "Div",
                          "Equal",     "Greater",     "GreaterOrEqual",
                          "Less",      "LessOrEqual", "Max",
                          "Mean",      "Min",         "Mod",
                          "Mul",       "Or",          "Pow",
                          "PRelu",     "Sub",         "Sum",
                          "Where",     "Xor"});
}

void follow_traits(const Session& session, Scope& scope, const onnx::NodeProto& node) {
  const std::vector<Seen> operands = seen_operands(session, scope, node);
  const auto any = [&](auto test) {
    return std::any_of(operands.begin(), operands.end(),
                       [&](const Seen& x) { return x.is_tensor && test(x.term->samples); });
  };
  const bool asks_for_shape = is_one_of(node, {"Shape", "Size"});
  for (const std::string& name : node.output()) {
    const auto at = scope.names.find(name);
    const Seen y = seen(session, scope, name);
    if (!y.is_tensor || at == scope.names.end()) continue;
    SampleTraits traits;
    if (!asks_for_shape) {
      traits.numbered = numbers_samples(session, scope, node, operands, y) ||
                        any([](const SampleTraits& x) { return x.numbered; });
      traits.random =
          y.is_unchanged() && (draws(node) || any([](const SampleTraits& x) { return x.random; }));
      traits.placed = y.has_changed() && is_one_of(node, {"Gather"}) &&
                      operands[1].is_unchanged() && operands[1].term->constant &&
                      operands[1].before->empty();
      traits.cut = cut_axis(session, scope, node, operands, y);
      traits.constant_columns = constant_columns(node, operands, y);
      traits.before = elements_before(session, node, operands, y);
      follow_totals(scope, node, operands, y, traits);
    }
    at->second.samples = std::move(traits);
  }
}

}  // namespace tandem::importer
