#include "importer/walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "importer/batch/batch_operands.h"
#include "importer/batch/follow_traits.h"
#include "importer/batch/old_batch.h"
#include "importer/batch/refuse_ambiguous.h"
#include "importer/file/initializers.h"
#include "importer/file/tensor_data.h"
#include "importer/inlined.h"
#include "importer/node_context.h"
#include "importer/operator_help.h"
#include "importer/operators/all.h"
#include "importer/operators/packed.h"
#include "onnx/defs/schema.h"

namespace tandem::importer {
namespace {

Term bad_term() {
  Term term;
  term.bad = true;
  return term;
}

bool reads_bad(const Scope& scope, const onnx::NodeProto& node) {
  for (const std::string& name : reads_of(node)) {
    const Term* term = scope.find(name);
    if (term == nullptr) continue;
    if (term->bad) return true;
    if (!term->sequence) continue;
    for (const Term& part : *term->sequence) {
      if (part.bad) return true;
    }
  }
  return false;
}

void mark_bad(Scope& scope, const onnx::NodeProto& node) {
  for (const std::string& output : node.output()) {
    if (!output.empty() && scope.names.count(output) == 0) scope.names[output] = bad_term();
  }
}

// Arity, attribute names and attribute types, by ONNX's own description of the operator.
void check_against_schema(const onnx::OpSchema& schema, const onnx::NodeProto& node,
                          const std::string& path) {
  try {
    schema.Verify(node);
  } catch (const std::exception& error) {
    throw Error(
        ErrorKind::usage,
        Diagnostic{.message = fmt::format("{}: {}", node.op_type(), error.what()), .path = path});
  }
}

onnx::TypeProto type_proto(const Term& term) {
  onnx::TypeProto type;
  auto* tensor = type.mutable_tensor_type();
  tensor->set_elem_type(dtype_to_onnx(term.type.dtype));
  for (std::int64_t extent : term.type.shape)
    tensor->mutable_shape()->add_dim()->set_dim_value(extent);
  return type;
}

// Reports about the inside of a definition name the operator that the file has.
void blame_outer(Session& session, std::size_t first, const std::string& op) {
  for (std::size_t i = first; i < session.reports.size(); ++i) {
    auto& [problem, diagnostic] = session.reports[i];
    const std::string inside = fmt::format("in ONNX's definition of {}: ", op);
    problem.op = op;
    problem.reason = inside + problem.reason;
    diagnostic.message = inside + diagnostic.message;
    if (problem.kind != "unsupported_operator" || !problem.fix.empty()) continue;
    problem.fix = fmt::format(
        "export the model with a newer operator set, or with other operators in the place of {}",
        op);
    diagnostic.fix = problem.fix;
  }
}

// ONNX defines many operators by others; those definitions serve where there is no own lowering.
bool lower_by_definition(Session& session, Scope& scope, const onnx::NodeProto& node,
                         const onnx::OpSchema& schema, int version, const std::string& path) {
  onnx::FunctionProto body;
  if (schema.HasFunction()) {
    const onnx::FunctionProto* fixed = schema.GetFunction(version);
    if (fixed == nullptr) return false;
    body = *fixed;
  } else if (schema.HasContextDependentFunction()) {
    std::vector<onnx::TypeProto> types;
    for (const std::string& input : node.input()) {
      const Term* term = input.empty() ? nullptr : scope.find(input);
      const bool known = term != nullptr && !term->sequence && !term->none;
      types.push_back(known ? type_proto(*term) : onnx::TypeProto());
    }
    try {
      const onnx::FunctionBodyBuildContextImpl context(node, types);
      if (!schema.BuildContextDependentFunction(context, body, version)) return false;
    } catch (const std::exception&) {
      return false;
    }
  } else {
    return false;
  }
  Opsets opsets{{"", version}};
  for (const onnx::OperatorSetIdProto& import : body.opset_import()) {
    opsets[domain_of(import.domain())] = static_cast<int>(import.version());
  }
  // Defaults that the schema knows and the body refers to.
  for (const auto& [name, attribute] : schema.attributes()) {
    if (attribute.default_value.has_type() && !attribute.default_value.name().empty()) {
      *body.add_attribute_proto() = attribute.default_value;
    }
  }
  const std::size_t reported = session.reports.size();
  lower_function(session, scope, node, body, opsets, path, true);
  blame_outer(session, reported, node.op_type());
  return true;
}

void check_outputs(const NodeContext& context, const Scope& scope) {
  for (const std::string& output : context.node().output()) {
    if (!output.empty() && scope.names.count(output) == 0) {
      context.unsupported(fmt::format("output '{}' is not offered", output));
    }
  }
}

// What ONNX describes in another of its domains (ai.onnx.preview), by its definition.
bool lower_described(Session& session, Scope& scope, const onnx::NodeProto& node,
                     const std::string& path) {
  const std::string domain = domain_of(node.domain());
  const auto set = scope.opsets->find(domain), standard = scope.opsets->find("");
  if (set == scope.opsets->end() || standard == scope.opsets->end()) return false;
  const onnx::OpSchema* schema =
      onnx::OpSchemaRegistry::Schema(node.op_type(), set->second, domain);
  if (schema == nullptr) return false;
  check_against_schema(*schema, without_attribute_weights(session.file.attribute_weights, node),
                       path);
  return lower_by_definition(session, scope, node, *schema, standard->second, path);
}

// Operators that ONNX does not describe: whatever is not read of one is refused.
void lower_extension(Session& session, Scope& scope, const onnx::NodeProto& node,
                     const std::string& path, bool is_unknown) {
  const std::string name = lowering_name(node), domain = domain_of(node.domain());
  const Lowering* lowering = domain.empty() ? find_extension(node.op_type()) : find_lowering(name);
  if (lowering == nullptr) {
    const bool known = !lowerings_of(domain).empty();
    unsupported(path,
                known ? fmt::format("{} of domain '{}' is not supported", node.op_type(), domain)
                      : fmt::format("operators of domain '{}' are not supported", domain));
  }
  if (is_unknown) return;
  const auto version = scope.opsets->find("");
  NodeContext context(session, scope, node, version == scope.opsets->end() ? 1 : version->second,
                      path);
  lowering->lower(context);
  const std::string unread = context.unread();
  if (!unread.empty()) context.unsupported(fmt::format("{} is not supported", unread));
  check_outputs(context, scope);
}

const onnx::FunctionProto* function_of(const Session& session, const onnx::NodeProto& node) {
  const auto at =
      session.file.functions.find({domain_of(node.domain()), node.op_type(), node.overload()});
  return at == session.file.functions.end() ? nullptr : at->second;
}

// The product with packed weights whose last node this is; null where it is none.
const DynamicProduct* dynamic_product_of(const Session& session, const Scope& scope,
                                         const onnx::NodeProto& node) {
  if (!scope.main || node.output_size() == 0) return nullptr;
  const auto found = session.file.packed.products.find(node.output(0));
  return found == session.file.packed.products.end() ? nullptr : &found->second;
}

// `is_unknown`: what it reads could not be imported. Then it only looks whether the operator is
// known, and those inside of it.
void lower_operator(Session& session, Scope& scope, const onnx::NodeProto& node,
                    const std::string& path, bool is_unknown) {
  const std::string domain = domain_of(node.domain());
  if (const DynamicProduct* product = dynamic_product_of(session, scope, node)) {
    if (is_unknown) return;
    NodeContext context(session, scope, node, 1, path);
    operators::dynamic_product(context, *product);
    return;
  }
  if (const onnx::FunctionProto* function = function_of(session, node)) {
    Opsets opsets;
    for (const onnx::OperatorSetIdProto& import : function->opset_import()) {
      opsets[domain_of(import.domain())] = static_cast<int>(import.version());
    }
    lower_function(session, scope, node, *function, opsets, path, false);
    return;
  }
  if (!domain.empty()) {
    if (lower_described(session, scope, node, path)) return;
    return lower_extension(session, scope, node, path, is_unknown);
  }
  const auto version = scope.opsets->find("");
  if (version == scope.opsets->end())
    unsupported(path, "the file imports no version of ai.onnx's operators");
  const onnx::OpSchema* schema =
      onnx::OpSchemaRegistry::Schema(node.op_type(), version->second, "");
  if (schema == nullptr && find_extension(node.op_type()) != nullptr) {
    return lower_extension(session, scope, node, path, is_unknown);
  }
  const Lowering* lowering = find_lowering(node.op_type());
  const bool reads_deprecated = lowering != nullptr && lowering->though_deprecated;
  if (schema == nullptr || (schema->deprecated() && !reads_deprecated)) {
    unsupported(path,
                fmt::format("operator set {} has no operator {}", version->second, node.op_type()));
  }
  if (!schema->deprecated()) check_against_schema(*schema, node, path);
  if (lowering == nullptr) {
    if (is_unknown && schema->HasContextDependentFunction()) return;
    if (lower_by_definition(session, scope, node, *schema, version->second, path)) return;
    unsupported(path, fmt::format("{} is not supported", node.op_type()));
  }
  if (is_unknown) return;
  NodeContext context(session, scope, node, version->second, path);
  try {
    lowering->lower(context);
  } catch (const Unsupported&) {
    // Attention and others have a definition that covers the forms without an own lowering.
    if (!lower_by_definition(session, scope, node, *schema, version->second, path)) throw;
  }
  check_outputs(context, scope);
}

// Lowers the node with operands that follow the batch, where there are any. Where that fails,
// nothing reads the nodes of the attempt.
bool lower_for_batch(Session& session, Scope& scope, const onnx::NodeProto& node,
                     const std::string& path) {
  try {
    BatchOperands operands(session, scope, node, path);
    if (!operands.any()) return false;
    lower_operator(session, scope, node, path, false);
    operands.record();
    return true;
  } catch (const Error&) {
    return false;  // then the reason without them is reported
  }
}

// Whether a node is expanded into nodes of its own, which are lowered one by one.
bool has_parts(const Session& session, const onnx::NodeProto& node) {
  const bool has_bodies =
      std::any_of(node.attribute().begin(), node.attribute().end(),
                  [](const auto& each) { return each.has_g() || each.graphs_size() > 0; });
  return has_bodies || function_of(session, node) != nullptr;
}

// Visits operators in the graphs of a node that is not lowered itself, so that all missing ones are
// reported at once.
void look_at_bodies(Session& session, const Scope& outer, const onnx::NodeProto& node) {
  ++session.looking;
  const auto look = [&](const onnx::GraphProto& graph) {
    Scope scope = inside(outer, session);
    for (const onnx::ValueInfoProto& input : graph.input()) scope.names[input.name()] = bad_term();
    for (const onnx::TensorProto& tensor : graph.initializer())
      scope.names[tensor.name()] = bad_term();
    for (const onnx::NodeProto& each : graph.node()) lower_node(session, scope, each);
  };
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) look(attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) look(graph);
  }
  --session.looking;
}

// What a node reads that cannot be lowered yet is not computed again by the stage that can.
void carry_reads(Session& session, const Scope& scope, const onnx::NodeProto& node) {
  if (session.options.stage == nullptr) return;
  for (const std::string& name : reads_of(node)) {
    const Term* term = scope.find(name);
    if (term != nullptr) session.carry(*term);
  }
}

}  // namespace

void lower_node(Session& session, Scope& scope, const onnx::NodeProto& node) {
  if (++session.nodes > session.file.limits.nodes) {
    refuse(session.file.path, "", "the graph is too large with its functions expanded",
           fmt::format("at most {} nodes", session.file.limits.nodes));
  }
  if (!scope.fixed_path && function_of(session, node) == nullptr) ++session.file_nodes;
  const bool is_unknown = reads_bad(scope, node);
  std::string base = scope.fixed_path ? scope.path : session.modules.operator_path(node);
  if (!scope.module.empty() && !scope.fixed_path && base.rfind(scope.module + ".", 0) == 0)
    base.erase(0, scope.module.size() + 1);
  if (!scope.path.empty() && !scope.fixed_path)
    base = scope.path + "." + (base.empty() ? node.op_type() : base);
  const std::string path = scope.fixed_path ? base : session.paths.next(base, node.op_type());
  const GraphBuilder::Scope outer = session.builder.scope();
  session.builder.set_scope({path, Phase::forward, {}});
  session.next_part = [&session, &scope, &base, &node] {
    if (scope.fixed_path) return;
    session.paths.commit(base, node.op_type());
    session.builder.set_scope({session.paths.next(base, node.op_type()), Phase::forward, {}});
  };
  const std::size_t before = session.builder.graph().nodes.size();
  const std::size_t reported = session.reports.size();
  bool is_lowered = false;
  try {
    if (is_unknown || session.old_batch == nullptr || !lower_for_batch(session, scope, node, path))
      lower_operator(session, scope, node, path, is_unknown);
    if (!is_unknown && session.old_batch != nullptr) {
      if (has_parts(session, node)) {
        refuse_one_iteration(session, scope, node, path);
      } else {
        follow_traits(session, scope, node);
        refuse_ambiguous(session, scope, node, path);
      }
    }
    is_lowered = !is_unknown;
  } catch (const Unknown& error) {
    session.request(error.request, error.terms);
    carry_reads(session, scope, node);
  } catch (const Unsupported& error) {
    Diagnostic d = error.diagnostics()[0];
    const auto opset = scope.opsets->find("");
    if (d.fix.empty() && !scope.fixed_path)
      d.fix = what_would_help(node, opset == scope.opsets->end() ? 0 : opset->second);
    const bool is_told = session.reports.size() > reported;
    session.report("unsupported_operator", full_name(node), std::move(d));
    if (!is_told) look_at_bodies(session, scope, node);
  } catch (const Error& error) {
    Diagnostic d = error.diagnostics()[0];
    if (d.fix.empty() && session.old_batch != nullptr) d.fix = fixed_batch_fix(*session.old_batch);
    session.report("bad_operator", node.op_type(), std::move(d));
  }
  if (is_unknown) carry_reads(session, scope, node);
  if (is_unknown && session.reports.size() == reported) look_at_bodies(session, scope, node);
  if (!is_lowered) mark_bad(scope, node);
  // Nodes that fold away take no number, so that exporters' shape arithmetic does not shift others.
  const bool made = session.builder.graph().nodes.size() > before;
  if (made && !node.name().empty()) session.raw_names.try_emplace(path, node.name());
  if (made && !scope.fixed_path) {
    session.paths.commit(base, node.op_type());
  }
  session.builder.set_scope(outer);
}

}  // namespace tandem::importer
