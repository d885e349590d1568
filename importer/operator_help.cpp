#include "importer/operator_help.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "importer/file/onnx_content.h"
#include "onnx/defs/schema.h"

namespace tandem::importer {
namespace {

const char* listed(const std::string& name) {
  static const std::unordered_map<std::string_view, const char*> words{
#define TANDEM_HELP(name, text) {name, text},
#include "importer/operator_help.inl"
  };
  const auto at = words.find(name);
  return at == words.end() ? nullptr : at->second;
}

}  // namespace

std::string full_name(const onnx::NodeProto& node) {
  const std::string domain = domain_of(node.domain());
  return domain.empty() ? node.op_type() : domain + "::" + node.op_type();
}

std::string what_would_help(const onnx::NodeProto& node, int opset) {
  if (const char* words = listed(full_name(node))) return words;
  const std::string domain = domain_of(node.domain());
  if (!domain.empty()) {
    if (const char* words = listed(domain + "::")) return words;
    return "export it as a function of ai.onnx's operators (custom_translation_table of "
           "PyTorch's exporter), or cut the model before it";
  }
  const onnx::OpSchema* newest = onnx::OpSchemaRegistry::Schema(node.op_type(), "");
  if (newest == nullptr) return "the name is wrong, or newer than ONNX 1.23";
  const bool in_opset = onnx::OpSchemaRegistry::Schema(node.op_type(), opset, "") != nullptr;
  if (!in_opset) {
    return fmt::format("export the model with opset_version={}, which has it",
                       newest->SinceVersion());
  }
  return "export with PyTorch's other exporter (dynamo=True or False), another opset_version, or "
         "other operators in its place";
}

}  // namespace tandem::importer
