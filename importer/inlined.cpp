#include "importer/inlined.h"

#include <fmt/format.h>

#include "importer/node_context.h"
#include "importer/walk.h"

namespace tandem::importer {
namespace {

// A node of a function's body as it is in this call: attributes that refer to the call's are filled
// in or left out, inputs that the call does not give are absent.
onnx::NodeProto settled(const onnx::NodeProto& node, const Scope& scope) {
  onnx::NodeProto result = node;
  for (int i = 0; i < result.input_size(); ++i) {
    if (scope.find(result.input(i)) == nullptr) result.set_input(i, "");
  }
  result.clear_attribute();
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      *result.add_attribute() = attribute;
    } else if (const auto given = scope.attributes.find(attribute.ref_attr_name());
               given != scope.attributes.end()) {
      onnx::AttributeProto& filled = *result.add_attribute();
      filled = *given->second;
      filled.set_name(attribute.name());
    }
  }
  return result;
}

// The function makes `made` outputs; the call may name fewer.
void check_function_outputs(const onnx::NodeProto& node, const std::string& what, int made,
                            const std::string& path) {
  int named = node.output_size();
  while (named > 0 && node.output(named - 1).empty()) --named;
  if (named <= made) return;
  throw Error(
      ErrorKind::usage,
      Diagnostic{.message = fmt::format("{} has no output for '{}'", what, node.output(named - 1)),
                 .path = path,
                 .expected = fmt::format("at most {} output{}", made, made == 1 ? "" : "s"),
                 .got = std::to_string(named),
                 .fix = "the file is damaged: export the model again"});
}

}  // namespace

void unsupported(const std::string& path, std::string message, std::string fix) {
  throw Unsupported(ErrorKind::usage,
                    Diagnostic{.message = std::move(message), .path = path, .fix = std::move(fix)});
}

// Its own names, its operands under the names of the formal inputs.
void lower_function(Session& session, Scope& caller, const onnx::NodeProto& call,
                    const onnx::FunctionProto& function, const Opsets& opsets,
                    const std::string& path, bool fixed_path) {
  if (caller.depth >= session.file.limits.nesting) {
    unsupported(path, fmt::format("functions call each other more than {} deep",
                                  session.file.limits.nesting));
  }
  Scope scope;
  scope.opsets = &opsets;
  scope.path = path;
  scope.fixed_path = fixed_path;
  scope.in_function = true;
  scope.depth = caller.depth + 1;
  scope.prefix = fmt::format("{}:", ++session.scopes);
  scope.key = caller.key + first_output(call) + "()/";
  if (call.input_size() > function.input_size()) unsupported(path, "a call with too many inputs");
  check_function_outputs(call, fmt::format("function '{}'", function.name()),
                         function.output_size(), path);
  for (int i = 0; i < call.input_size(); ++i) {
    if (call.input(i).empty()) continue;
    const Term* term = caller.find(call.input(i));
    if (term != nullptr) scope.names[function.input(i)] = *term;
  }
  for (const onnx::AttributeProto& attribute : function.attribute_proto()) {
    scope.attributes[attribute.name()] = &attribute;
  }
  for (const onnx::AttributeProto& attribute : call.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      scope.attributes[attribute.name()] = &attribute;
    } else if (const auto given = caller.attributes.find(attribute.ref_attr_name());
               given != caller.attributes.end()) {
      scope.attributes[attribute.name()] = given->second;
    }
  }
  for (const onnx::NodeProto& node : function.node()) {
    lower_node(session, scope, settled(node, scope));
  }
  for (int i = 0; i < call.output_size() && i < function.output_size(); ++i) {
    if (call.output(i).empty()) continue;
    const Term* term = scope.find(function.output(i));
    if (term == nullptr) {
      unsupported(path, fmt::format("'{}' is output '{}' of function '{}', an input that this call "
                                    "leaves out",
                                    call.output(i), function.output(i), function.name()));
    }
    caller.names[call.output(i)] = *term;
    session.record.shapes[caller.prefix + call.output(i)] = term->type.shape;
    if (caller.main && term->id &&
        session.builder.graph().value(term->id).kind == ValueKind::computed) {
      session.builder.rename(term->id, name_in_graph(call.output(i), *term));
    }
  }
}

}  // namespace tandem::importer
