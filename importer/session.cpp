#include "importer/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "importer/chosen_rows.h"
#include "importer/file/tensor_data.h"

namespace tandem::importer {
namespace {

constexpr std::size_t fold_bytes = std::size_t{64} << 20;
constexpr double fold_flops = 1e8;

}  // namespace

ValueId Session::place(const Term& term) {
  if (term.rows || term.counts) refuse_chosen_setting(*this, "the graph", term);
  if (term.id) return term.id;
  assert(term.constant && "a sequence is not a value");
  auto [at, is_new] = placed.try_emplace(term.constant.get());
  if (is_new) at->second = {term.constant, builder.constant(*term.constant)};
  return at->second.second;
}

Term Session::constant(HostTensor tensor) const {
  if (const DType dtype = type_in_graph(tensor.dtype()); dtype != tensor.dtype())
    tensor = tensor.converted(dtype);
  Term term;
  term.type = tensor.type();
  term.constant = std::make_shared<const HostTensor>(std::move(tensor));
  return term;
}

Term Session::value(ValueId id) const {
  Term term;
  term.type = builder.type(id);
  term.id = id;
  return term;
}

void Session::check_size(const TensorType& type, std::string_view op) const {
  const auto most = file.limits.tensor_bytes / static_cast<std::int64_t>(size_of(type.dtype));
  if (checked_elements(type.shape, most)) return;
  throw Error(ErrorKind::usage,
              Diagnostic{.message = fmt::format("{}: the result is too large", op),
                         .path = builder.scope().path,
                         .expected = fmt::format("at most {} bytes", file.limits.tensor_bytes),
                         .got = to_string(type)});
}

std::vector<Term> Session::apply(std::string_view op, const std::vector<Term>& inputs,
                                 const Attributes& attributes) {
  if (is_about_chosen_rows(inputs)) return apply_to_chosen_rows(*this, op, inputs, attributes);
  std::vector<Term> outputs;
  if (fold(op, inputs, attributes, outputs)) return outputs;
  std::vector<ValueId> ids;
  for (const Term& input : inputs) {
    ids.push_back(input.id || input.constant ? place(input) : ValueId{});
  }
  for (ValueId id : builder.node(op, std::move(ids), attributes)) outputs.push_back(value(id));
  for (const Term& output : outputs) check_size(output.type, op);
  return outputs;
}

// The node is made in a graph of its own, which infers its types, and thrown away with it.
bool Session::fold(std::string_view op, const std::vector<Term>& inputs,
                   const Attributes& attributes, std::vector<Term>& outputs) {
  if (!options.evaluate || operators.get(op).random) return false;
  std::size_t bytes = 0;
  for (const Term& input : inputs) {
    if (input.id && !input.constant) return false;
    if (input.constant) bytes += input.constant->bytes();
  }
  if (bytes > fold_bytes) return false;
  GraphBuilder scratch(operators);
  scratch.set_scope(builder.scope());
  std::vector<ValueId> ids;
  std::vector<HostTensor> values;
  for (const Term& input : inputs) {
    ids.push_back(input.constant ? scratch.constant(*input.constant) : ValueId{});
    values.push_back(input.constant ? *input.constant : HostTensor());
  }
  for (ValueId id : scratch.node(op, std::move(ids), attributes)) {
    check_size(scratch.type(id), op);
    bytes += scratch.type(id).bytes();
  }
  const Node& node = scratch.graph().nodes.back();
  if (bytes > fold_bytes || cost_of(scratch.graph(), node).flops > fold_flops) return false;
  values.resize(node.inputs.size());
  std::vector<HostTensor> results;
  try {
    results = options.evaluate(scratch.graph(), node, values);
  } catch (const std::exception&) {
    return false;  // no reference kernel for these types: a node then, which says so later
  }
  if (results.size() != node.outputs.size()) return false;
  for (HostTensor& result : results) outputs.push_back(constant(std::move(result)));
  // A loop over large constants is a short file that takes long: 64 KiB count as a node.
  nodes += static_cast<std::int64_t>(bytes >> 16);
  return true;
}

Term Session::stage_input(const std::string& key) {
  if (const auto known = options.stage->known.find(key); known != options.stage->known.end())
    return constant(known->second);
  const auto [at, is_new] = stage_inputs.try_emplace(key);
  if (is_new) at->second = builder.input(stage_name(key), options.stage->fed.at(key).type());
  Term term = value(at->second);
  term.key = key;
  return term;
}

void Session::settle(const std::string& key, Term& term) {
  if (options.stage == nullptr || looking > 0) return;
  const bool is_tensor = !term.sequence && !term.none && !term.bad;
  if (is_tensor && !term.constant) {
    if (const auto known = options.stage->known.find(key); known != options.stage->known.end()) {
      term = constant(known->second);
    } else if (options.stage->fed.contains(key)) {
      term = stage_input(key);
    }
  }
  const bool is_given = term.id && builder.graph().value(term.id).kind != ValueKind::computed;
  if (!is_given || term.key.empty()) term.key = key;
}

void Session::request(StageRequest request, const std::vector<Term>& reads) {
  ++asked;
  if (looking > 0) return;
  for (const Term& term : reads) {
    if (!term.id || term.constant) continue;
    if (builder.graph().value(term.id).kind == ValueKind::computed)
      stage_outputs.emplace(term.key, term.id);
  }
  const auto same =
      std::find_if(stage.requests.begin(), stage.requests.end(), [&](const StageRequest& other) {
        return other.reads == request.reads && other.makes == request.makes;
      });
  if (same == stage.requests.end()) stage.requests.push_back(std::move(request));
}

void Session::carry(const Term& term) {
  if (options.stage == nullptr || !term.id || term.constant || term.key.empty()) return;
  if (builder.graph().value(term.id).kind != ValueKind::computed) return;
  stage_outputs.emplace(term.key, term.id);
  const auto& known = stage.carried;
  if (std::find(known.begin(), known.end(), term.key) == known.end())
    stage.carried.push_back(term.key);
}

void Session::note(const std::string& path, const std::string& text) {
  const auto same =
      std::find_if(notes.begin(), notes.end(), [&](const Note& n) { return n.text == text; });
  if (same == notes.end()) {
    notes.push_back({path, text, 0});
  } else {
    ++same->more;
  }
}

void Session::report(const char* kind, const std::string& op, Diagnostic diagnostic) {
  Report report;
  report.problem.kind = kind;
  report.problem.op = op;
  report.problem.path = diagnostic.path;
  report.problem.reason = diagnostic.message;
  if (!diagnostic.expected.empty()) report.problem.reason += ": expected " + diagnostic.expected;
  if (!diagnostic.got.empty()) {
    report.problem.reason += (diagnostic.expected.empty() ? ": got " : ", got ") + diagnostic.got;
  }
  report.problem.fix = diagnostic.fix;
  if (diagnostic.file.empty()) diagnostic.file = file.path.string();
  report.diagnostic = std::move(diagnostic);
  reports.push_back(std::move(report));
}

std::string first_output(const onnx::NodeProto& node) {
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return "";
}

Scope inside(const Scope& outer, Session& session) {
  Scope scope;
  scope.outer = &outer;
  scope.opsets = outer.opsets;
  scope.attributes = outer.attributes;
  scope.path = outer.path;
  scope.module = outer.module;
  scope.in_function = outer.in_function;
  scope.fixed_path = outer.fixed_path;
  scope.depth = outer.depth + 1;
  scope.prefix = fmt::format("{}:", ++session.scopes);
  scope.key = scope.prefix;
  return scope;
}

}  // namespace tandem::importer
