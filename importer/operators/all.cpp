#include "importer/operators/all.h"

#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/operators/scalar_functions.h"

namespace tandem::importer {
namespace operators {

#define TANDEM_IMPORT(name, function, ...) void function(NodeContext& node);
#include "importer/operators/all.inl"

void composed_function(NodeContext& node);

namespace microsoft {

#define TANDEM_IMPORT(name, function, ...) void function(NodeContext& node);
#include "importer/operators/microsoft/list.inl"

}  // namespace microsoft

namespace ml {

#define TANDEM_IMPORT(name, function, ...) void function(NodeContext& node);
#include "importer/operators/ml/list.inl"

}  // namespace ml

namespace training {

#define TANDEM_IMPORT(name, function, ...) void function(NodeContext& node);
#include "importer/operators/training/list.inl"

}  // namespace training
}  // namespace operators

namespace {

using ByName = std::unordered_map<std::string_view, const Lowering*>;

const Lowering listed[] = {
#define TANDEM_IMPORT(name, function, ...) \
  {.op = #name, .lower = operators::function __VA_OPT__(, ) __VA_ARGS__},
#include "importer/operators/all.inl"
};

const Lowering of_microsoft[] = {
#define TANDEM_IMPORT(name, function, ...) \
  {.op = "com.microsoft::" #name,          \
   .lower = operators::microsoft::function __VA_OPT__(, ) __VA_ARGS__},
#include "importer/operators/microsoft/list.inl"
};

const Lowering of_ml[] = {
#define TANDEM_IMPORT(name, function, ...) \
  {.op = "ai.onnx.ml::" #name, .lower = operators::ml::function __VA_OPT__(, ) __VA_ARGS__},
#include "importer/operators/ml/list.inl"
};

const Lowering of_training[] = {
#define TANDEM_IMPORT(name, function, ...)   \
  {.op = "ai.onnx.preview.training::" #name, \
   .lower = operators::training::function __VA_OPT__(, ) __VA_ARGS__},
#include "importer/operators/training/list.inl"
};

using ByDomain = std::map<std::string_view, std::vector<Lowering>>;

template <std::size_t count>
std::vector<Lowering> list_of(const Lowering (&lowerings)[count]) {
  return {std::begin(lowerings), std::end(lowerings)};
}

const ByDomain& by_domain() {
  static const ByDomain lists{{"com.microsoft", list_of(of_microsoft)},
                              {"ai.onnx.ml", list_of(of_ml)},
                              {"ai.onnx.preview.training", list_of(of_training)}};
  return lists;
}

const std::string extension_prefix = "com.microsoft::";

}  // namespace

const std::vector<Lowering>& all_lowerings() {
  static const std::vector<Lowering> list = [] {
    std::vector<Lowering> all(std::begin(listed), std::end(listed));
    std::unordered_set<std::string_view> names;
    for (const Lowering& lowering : all) names.insert(lowering.op);
    for (const ScalarRow& row : scalar_rows()) {
      if (row.engine_only() || names.count(row.name) > 0) continue;
      all.push_back({row.name, operators::scalar_function});
    }
    for (const ComposedFunction& row : composed_functions()) {
      all.push_back({row.name, operators::composed_function});
    }
    return all;
  }();
  return list;
}

const std::vector<Lowering>& lowerings_of(std::string_view domain) {
  static const std::vector<Lowering> none;
  const auto at = by_domain().find(domain);
  return at == by_domain().end() ? none : at->second;
}

std::string lowering_name(const onnx::NodeProto& node) {
  const std::string domain = domain_of(node.domain());
  return domain.empty() ? node.op_type() : domain + "::" + node.op_type();
}

const Lowering* find_lowering(const std::string& name) {
  static const ByName by_name = [] {
    ByName map;
    for (const Lowering& lowering : all_lowerings()) map.emplace(lowering.op, &lowering);
    for (const auto& [domain, lowerings] : by_domain()) {
      for (const Lowering& lowering : lowerings) {
        const std::string_view full = lowering.op;
        map.emplace(full, &lowering);
        if (lowering.extends_onnx) map.emplace(full.substr(extension_prefix.size()), &lowering);
      }
    }
    return map;
  }();
  const auto at = by_name.find(name);
  return at == by_name.end() ? nullptr : at->second;
}

const Lowering* find_extension(const std::string& op) {
  const Lowering* lowering = find_lowering(extension_prefix + op);
  return lowering != nullptr && lowering->extends_onnx ? lowering : nullptr;
}

bool is_setting(const std::string& op, std::size_t input) {
  const Lowering* lowering = find_lowering(op);
  return lowering != nullptr && lowering->settings.has(input);
}

bool is_weight(const std::string& op, std::size_t input, std::size_t rank) {
  const Lowering* lowering = find_lowering(op);
  if (lowering == nullptr || rank < lowering->weight_rank) return false;
  return lowering->weights.has(input) || lowering->more_weights.has(input);
}

}  // namespace tandem::importer
