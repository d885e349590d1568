// Nodes that stand for other nodes: calls of functions, and If.
#pragma once

#include <string>

#include "importer/session.h"

namespace tandem::importer {

/// A call: the nodes of the function's body. `fixed_path`: all of them have the path of the call.
void lower_function(Session& session, Scope& caller, const onnx::NodeProto& call,
                    const onnx::FunctionProto& function, const Opsets& opsets,
                    const std::string& path, bool fixed_path);

/// If with a condition that is known: the nodes of the branch taken.
void lower_if(Session& session, Scope& scope, const onnx::NodeProto& node, const std::string& path);

/// Throws Unsupported.
[[noreturn]] void unsupported(const std::string& path, std::string message, std::string fix = "");

}  // namespace tandem::importer
