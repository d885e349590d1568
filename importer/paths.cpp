#include "importer/paths.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "engine/graph/text.h"

namespace tandem::importer {
namespace {

// The strings of a Python list, as `repr` writes them: ['', 'encoder', 'linear'].
std::vector<std::string> python_strings(const std::string& text) {
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char quote = text[i];
    if (quote != '\'' && quote != '"') continue;
    std::string item;
    for (++i; i < text.size() && text[i] != quote; ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      item += text[i];
    }
    strings.push_back(std::move(item));
  }
  return strings;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// "/blocks/blocks.0/norm1/LayerNormalization": a part that begins with the one before it (a member
// of a container) replaces both.
std::string torchscript_scope(const std::string& name) {
  std::vector<std::string> parts = split(name.substr(1), '/');
  parts.pop_back();
  std::vector<std::string> kept;
  for (const std::string& part : parts) {
    if (!kept.empty() && part.size() > kept.back().size() &&
        part.compare(0, kept.back().size() + 1, kept.back() + ".") == 0) {
      kept.back() = part;
    } else {
      kept.push_back(part);
    }
  }
  return joined(kept, ".");
}

const std::string& common_type(const std::string& op_type) {
  static const std::unordered_map<std::string, std::string> names{
      {"Flatten", "Reshape"},   {"Squeeze", "Reshape"},
      {"Unsqueeze", "Reshape"}, {"GlobalAveragePool", "ReduceMean"},
      {"CastLike", "Cast"},     {"SplitToSequence", "Slice"}};
  const auto at = names.find(op_type);
  return at == names.end() ? op_type : at->second;
}

}  // namespace

namespace {

// "/fc1/Gemm", "/fc1/Gemm_1": the scope; nothing for other names.
std::optional<std::string> scope_in_name(const onnx::NodeProto& node) {
  const std::string& name = node.name();
  if (name.size() < 2 || name[0] != '/') return std::nullopt;
  const std::string last = name.substr(name.rfind('/') + 1);
  const std::string& op = node.op_type();
  const bool numbered = last.size() > op.size() + 1 &&
                        last.compare(0, op.size() + 1, op + "_") == 0 &&
                        all_digits(std::string_view(last).substr(op.size() + 1));
  if (last != op && !numbered) return std::nullopt;
  return torchscript_scope(name);
}

void add_with_outer(std::unordered_set<std::string>& scopes, std::string scope) {
  while (!scope.empty() && scopes.insert(scope).second) {
    const std::size_t dot = scope.rfind('.');
    scope.resize(dot == std::string::npos ? 0 : dot);
  }
}

}  // namespace

ModulePaths::ModulePaths(const onnx::ModelProto& model) {
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (const auto scope = scope_in_name(node)) add_with_outer(scopes_, *scope);
  }
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    const std::size_t dot = tensor.name().rfind('.');
    if (dot != std::string::npos) add_with_outer(modules_, tensor.name().substr(0, dot));
  }
}

// TorchScript numbers the calls of a module: relu, relu_1. A scope without parameters is such a
// call where one without the number exists.
std::string ModulePaths::without_repeats(const std::string& scope) const {
  std::string original, result;
  for (const std::string& part : split(scope, '.')) {
    const std::string outer = original.empty() ? "" : original + ".";
    const std::size_t bar = part.rfind('_');
    std::string kept = part;
    if (bar != std::string::npos && bar > 0 && all_digits(std::string_view(part).substr(bar + 1)) &&
        scopes_.count(outer + part.substr(0, bar)) > 0 && modules_.count(outer + part) == 0) {
      kept = part.substr(0, bar);
    }
    original = outer + part;
    result += (result.empty() ? "" : ".") + kept;
  }
  return result;
}

std::optional<std::string> ModulePaths::module_scope(const onnx::NodeProto& node) const {
  for (const onnx::StringStringEntryProto& entry : node.metadata_props()) {
    if (entry.key() != "pkg.torch.onnx.name_scopes") continue;
    // Scopes from outside to inside, then the name of the traced operation.
    const std::vector<std::string> scopes = python_strings(entry.value());
    if (scopes.size() < 2) return "";
    const std::string& scope = scopes[scopes.size() - 2];
    return scope == "_empty_nn_module_stack_from_metadata_hook" ? "" : scope;
  }
  const std::optional<std::string> scope = scope_in_name(node);
  if (!scope) return std::nullopt;
  return without_repeats(*scope);
}

std::string ModulePaths::operator_path(const onnx::NodeProto& node) const {
  if (const auto scope = module_scope(node)) {
    const std::string& type = common_type(node.op_type());
    return scope->empty() ? type : *scope + "." + type;
  }
  std::string path = node.name();
  std::replace(path.begin(), path.end(), '/', '.');
  const std::size_t first = path.find_first_not_of('.');
  return first == std::string::npos ? "" : path.substr(first);
}

std::string parameter_path(const std::string& initializer) {
  const std::size_t dot = initializer.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == initializer.size() ||
      initializer.find("::") != std::string::npos || initializer[0] == '/') {
    return initializer;
  }
  return initializer.substr(0, dot) + ":" + initializer.substr(dot + 1);
}

bool is_number(const std::string& name) { return all_digits(name); }

bool is_generated_name(const std::string& name) {
  if (name.empty() || name[0] == '/' || name.compare(0, 6, "onnx::") == 0) return true;
  if (all_digits(name)) return true;
  return name.compare(0, 4, "val_") == 0 && all_digits(std::string_view(name).substr(4));
}

std::string PathCounter::next(const std::string& path, const std::string& op_type) const {
  const std::string& stem = path.empty() ? op_type : path;
  const auto at = used_.find(path.empty() ? "#" + op_type : path);
  const int number = at == used_.end() ? 0 : at->second;
  return number == 0 && !path.empty() ? stem : stem + "#" + std::to_string(number);
}

void PathCounter::commit(const std::string& path, const std::string& op_type) {
  ++used_[path.empty() ? "#" + op_type : path];
}

}  // namespace tandem::importer
