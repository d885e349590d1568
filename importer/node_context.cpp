#include "importer/node_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "importer/chosen_rows.h"
#include "importer/operators/float8.h"

namespace tandem::importer {
namespace {

bool has_integers(const HostTensor& tensor) {
  return is_integer(tensor.dtype()) || tensor.dtype() == DType::boolean;
}

}  // namespace

NodeContext::NodeContext(Session& session, Scope& scope, const onnx::NodeProto& node, int version,
                         std::string path)
    : session_(session), scope_(scope), node_(node), version_(version), path_(std::move(path)) {}

void NodeContext::fail(std::string message, std::string expected, std::string got,
                       std::string fix) const {
  throw Error(ErrorKind::usage, Diagnostic{.message = node_.op_type() + ": " + std::move(message),
                                           .path = path_,
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

void NodeContext::unsupported(std::string reason, std::string fix) const {
  throw Unsupported(ErrorKind::usage,
                    Diagnostic{.message = node_.op_type() + ": " + std::move(reason),
                               .path = path_,
                               .fix = std::move(fix)});
}

bool NodeContext::has(std::size_t i) const {
  read_inputs_.insert(i);
  return i < input_count() && !node_.input(static_cast<int>(i)).empty();
}

const Term& NodeContext::operand(std::size_t i) const {
  if (!has(i)) fail(fmt::format("input {} is missing", i));
  const Term* term = scope_.find(node_.input(static_cast<int>(i)));
  if (term == nullptr)
    fail(fmt::format("input '{}' is not known", node_.input(static_cast<int>(i))));
  return *term;
}

const Term& NodeContext::in(std::size_t i) const {
  const Term& term = operand(i);
  if (term.sequence) fail(fmt::format("input {} is a sequence of tensors", i), "a tensor");
  if (term.none) fail(fmt::format("input {} is an optional without a value", i), "a tensor");
  return term;
}

const Term& NodeContext::sequence(std::size_t i) const {
  const Term* term = has(i) ? scope_.find(node_.input(static_cast<int>(i))) : nullptr;
  if (term == nullptr || !term->sequence) fail(fmt::format("input {}", i), "a sequence of tensors");
  return *term;
}

std::vector<Term> NodeContext::inputs() const {
  std::vector<Term> terms;
  for (std::size_t i = 0; i < input_count(); ++i) terms.push_back(has(i) ? in(i) : Term{});
  return terms;
}

void NodeContext::want(const std::vector<Term>& terms) const {
  if (!in_stages()) return;
  StageRequest request{node_.op_type(), path_, {}, {}, nullptr};
  for (const Term& term : terms) {
    if (term.constant) continue;
    // What only looks has no names, and asks in vain.
    if ((!term.id || term.key.empty()) && session_.looking == 0) return;
    request.reads.push_back(term.key);
  }
  if (!request.reads.empty()) throw Unknown(std::move(request), terms);
}

std::vector<Term> NodeContext::chosen(const std::vector<Term>& operands, std::size_t count,
                                      const StageRequest::Make& make, const char* reason) const {
  StageRequest request{node_.op_type(), path_, {}, {}, nullptr};
  for (const Term& operand : operands) {
    if (operand.rows || operand.counts) refuse_chosen_setting(session_, node_.op_type(), operand);
  }
  std::vector<HostTensor> values;
  std::vector<std::size_t> unknown;  // operands
  bool is_named = true;
  for (const Term& operand : operands) {
    if (!operand.constant) {
      is_named = is_named && operand.id && !operand.key.empty();
      request.reads.push_back(operand.key);
      unknown.push_back(values.size());
    }
    values.push_back(operand.constant ? *operand.constant : HostTensor());
  }
  std::vector<Term> results;
  if (request.reads.empty()) {
    for (HostTensor& made : make(values)) results.push_back(constant(std::move(made)));
    return results;
  }
  if (!in_stages() || (!is_named && session_.looking == 0)) unsupported(reason);
  if (session_.looking > 0) throw Unknown(std::move(request), operands);
  for (std::size_t i = 0; i < count; ++i)
    request.makes.push_back(fmt::format("{}{}#{}", scope_.key, first_output(node_), i));
  if (session_.options.stage->fed.contains(request.makes[0])) {
    for (const std::string& key : request.makes) results.push_back(session_.stage_input(key));
    return results;
  }
  request.make = [make, values, unknown](const std::vector<HostTensor>& reads) {
    std::vector<HostTensor> all = values;
    for (std::size_t i = 0; i < unknown.size(); ++i) all[unknown[i]] = reads[i];
    return make(all);
  };
  throw Unknown(std::move(request), operands);
}

const HostTensor& NodeContext::static_tensor(std::size_t i, const char* role) const {
  const Term& term = in(i);
  const std::string& op = node_.op_type();
  const bool takes_extents = op == "Reshape" || op == "Expand" || op == "ConstantOfShape";
  if (term.rows || (term.counts && !takes_extents)) refuse_chosen_setting(session_, op, term);
  check_counted_target(session_, term);
  if (!term.constant) {
    want({term});
    fail(fmt::format("{} ('{}') must be known before the run", role,
                     node_.input(static_cast<int>(i))),
         "a constant or a value computed from shapes", "a value computed from inputs or parameters",
         "export the model with static shapes");
  }
  return *term.constant;
}

Ints NodeContext::static_integers(std::size_t i, const char* role) const {
  const HostTensor& tensor = static_tensor(i, role);
  if (!has_integers(tensor) || tensor.shape().size() > 1) {
    fail(role, "a list of integers", to_string(tensor.type()));
  }
  return tensor.integers();
}

std::int64_t NodeContext::static_integer(std::size_t i, const char* role) const {
  const HostTensor& tensor = static_tensor(i, role);
  if (!has_integers(tensor) || tensor.type().elements() != 1) {
    fail(role, "one integer", to_string(tensor.type()));
  }
  return tensor.integers()[0];
}

double NodeContext::static_number(std::size_t i, const char* role) const {
  const HostTensor& tensor = static_tensor(i, role);
  if (tensor.type().elements() != 1) fail(role, "one number", to_string(tensor.type()));
  return tensor.number(0);
}

std::string NodeContext::unread() const {
  for (std::size_t i = 0; i < input_count(); ++i) {
    if (!node_.input(static_cast<int>(i)).empty() && read_inputs_.count(i) == 0)
      return fmt::format("input {}", i);
  }
  for (const onnx::AttributeProto& attribute : node_.attribute()) {
    if (read_attributes_.count(attribute.name()) == 0)
      return fmt::format("attribute '{}'", attribute.name());
  }
  return "";
}

const onnx::AttributeProto* NodeContext::attribute(const char* name) const {
  read_attributes_.insert(name);
  for (const onnx::AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() != name) continue;
    if (attribute.ref_attr_name().empty()) return &attribute;
    const auto given = scope_.attributes.find(attribute.ref_attr_name());
    return given == scope_.attributes.end() ? nullptr : given->second;
  }
  return nullptr;
}

std::int64_t NodeContext::integer(const char* name, std::int64_t missing) const {
  const onnx::AttributeProto* given = attribute(name);
  if (given == nullptr) return missing;
  if (!given->has_i() && given->type() != onnx::AttributeProto::INT)
    fail(fmt::format("attribute '{}'", name), "an integer");
  return given->i();
}

std::int64_t NodeContext::integer(const char* name) const {
  if (attribute(name) == nullptr) fail(fmt::format("attribute '{}' is missing", name));
  return integer(name, 0);
}

bool NodeContext::flag(const char* name, bool missing) const {
  const std::int64_t value = integer(name, missing);
  if (value != 0 && value != 1)
    fail(fmt::format("attribute '{}'", name), "0 or 1", std::to_string(value));
  return value != 0;
}

double NodeContext::number(const char* name, double missing) const {
  const onnx::AttributeProto* given = attribute(name);
  if (given == nullptr) return missing;
  if (!given->has_f() && given->type() != onnx::AttributeProto::FLOAT)
    fail(fmt::format("attribute '{}'", name), "a number");
  return given->f();
}

std::string NodeContext::text(const char* name, const std::string& missing) const {
  const onnx::AttributeProto* given = attribute(name);
  if (given == nullptr) return missing;
  if (!given->has_s() && given->type() != onnx::AttributeProto::STRING)
    fail(fmt::format("attribute '{}'", name), "text");
  return given->s();
}

std::optional<Ints> NodeContext::integers(const char* name) const {
  const onnx::AttributeProto* given = attribute(name);
  if (given == nullptr) return std::nullopt;
  if (given->has_i() || given->has_f() || given->has_s() || given->floats_size() > 0) {
    fail(fmt::format("attribute '{}'", name), "a list of integers");
  }
  return Ints(given->ints().begin(), given->ints().end());
}

Ints NodeContext::integers(const char* name, Ints missing) const {
  std::optional<Ints> given = integers(name);
  return given ? *given : std::move(missing);
}

std::vector<float> NodeContext::numbers(const char* name) const {
  const onnx::AttributeProto* given = attribute(name);
  if (given == nullptr) return {};
  if (given->has_i() || given->has_f() || given->has_s() || given->ints_size() > 0) {
    fail(fmt::format("attribute '{}'", name), "a list of numbers");
  }
  return {given->floats().begin(), given->floats().end()};
}

std::size_t NodeContext::count(const char* name) const {
  const onnx::AttributeProto* given = attribute(name);
  if (given == nullptr) return 0;
  if (given->has_i() || given->has_f() || given->has_s() || given->floats_size() > 0) {
    fail(fmt::format("attribute '{}'", name), "a list of texts");
  }
  return static_cast<std::size_t>(given->strings_size());
}

std::vector<Term> NodeContext::make_all(std::string_view op, const std::vector<Term>& inputs,
                                        const Attributes& attributes) {
  return session_.apply(op, inputs, attributes);
}

Term NodeContext::scalar(double value, DType dtype) const { return filled(value, {dtype, {}}); }

Term NodeContext::filled(double value, TensorType type) const {
  HostTensor numbers(TensorType{DType::float64, type.shape});
  for (double& number : numbers.as<double>()) number = value;
  return constant(numbers.converted(type.dtype));
}

Term NodeContext::cast(const Term& x, DType dtype) {
  if (x.type.dtype == dtype) return x;
  if (is_float8(x.type.dtype)) return cast(operators::from_float8(*this, x), dtype);
  if (is_float8(dtype)) return operators::to_float8(*this, x, dtype);
  return make("Cast", {x}, {{"to", std::string(name_of(dtype))}});
}

Term NodeContext::widen(const Term& x) {
  const bool half = x.type.dtype == DType::float16 || x.type.dtype == DType::bfloat16;
  return half ? cast(x, DType::float32) : x;
}

Term NodeContext::reshape(const Term& x, Shape shape) {
  if (x.type.shape == shape) return x;
  return make("Reshape", {x}, {{"shape", std::move(shape)}});
}

Term NodeContext::expand(const Term& x, const Shape& shape) {
  if (x.type.shape == shape) return x;
  return make("Expand", {x}, {{"shape", shape}});
}

Term NodeContext::transpose(const Term& x, const Ints& perm) {
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<std::int64_t>(i)) return make("Transpose", {x}, {{"perm", perm}});
  }
  return x;
}

bool NodeContext::wants(std::size_t i) const {
  return i < output_count() && !node_.output(static_cast<int>(i)).empty();
}

void NodeContext::out(std::size_t i, Term term) {
  if (!wants(i)) return;
  const std::string& name = node_.output(static_cast<int>(i));
  session_.record.shapes[scope_.prefix + name] = term.type.shape;
  if (scope_.main && term.id) {
    const Value& value = session_.builder.graph().value(term.id);
    const bool made_here = value.kind == ValueKind::computed &&
                           session_.builder.graph().node(value.producer).path == path_;
    if (made_here) session_.builder.rename(term.id, name_in_graph(name, term));
  }
  session_.settle(scope_.key + name, term);
  scope_.names[name] = std::move(term);
}

std::int64_t NodeContext::axis(std::int64_t value, std::int64_t rank) const {
  if (value < -rank || value >= rank) {
    fail("axis", fmt::format("{} to {}", -rank, rank - 1), std::to_string(value));
  }
  return value < 0 ? value + rank : value;
}

Ints NodeContext::axes(Ints values, std::int64_t rank) const {
  for (std::int64_t& value : values) value = axis(value, rank);
  std::sort(values.begin(), values.end());
  if (std::adjacent_find(values.begin(), values.end()) != values.end()) {
    fail("an axis is given twice", "", to_string(Shape(values)));
  }
  return values;
}

}  // namespace tandem::importer
