// Calls of functions: nodes that are expanded into other nodes.
#pragma once

#include <string>

#include "importer/session.h"

namespace tandem::importer {

/// A call: the nodes of the function's body. `fixed_path`: all of them have the path of the call.
void lower_function(Session& session, Scope& caller, const onnx::NodeProto& call,
                    const onnx::FunctionProto& function, const Opsets& opsets,
                    const std::string& path, bool fixed_path);

/// Throws Unsupported.
[[noreturn]] void unsupported(const std::string& path, std::string message, std::string fix = "");

}  // namespace tandem::importer
