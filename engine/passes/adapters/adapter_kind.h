// A kind of adapters as a value: what trains for a weight, what its products compute, how it is
// merged and exported.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/passes/adapted_weights.h"
#include "engine/passes/adapters/weight_adapters.h"

namespace tandem {

class GraphRewrite;

/// Draws a start value, uniform in [-bound, bound), that is determined by the name.
using DrawUniform =
    std::function<HostTensor(const std::string& name, const TensorType& type, double bound)>;

/// A state that trains for a weight.
struct AdapterPart {
  std::string_view name;  // the state is called WEIGHT/name; begins with "lora_"
  HostTensor (*start)(const AdaptedWeight&, const HostTensor& w, const DrawUniform&) = nullptr;
  bool starts_at_zero = false;
  std::string_view of_weight = {};  // what starts with what of w, for messages; else "": not of w
  std::string_view peft_name = {};  // in a module
  HostTensor (*peft)(const AdaptedWeight&, const HostTensor& part) = nullptr;  // in PEFT's layout
};

/// Keys of adapter_config.json.
struct PeftKeys {
  std::string_view type = {}, alpha = {}, dropout = {};
  std::string_view constants = {};  // a JSON object
};

/// A weight with its parts in the graph that gets them.
struct AdapterValues {
  const AdaptedWeight& weight;
  bool training = true;  // false: no dropout
  ValueId w;
  std::vector<ValueId> parts = {};
  ValueId shared = {};  // what several products use, once one of them has made it
};

/// `parts` of the functions are in the order of the kind's. What a kind leaves out is as in plain
/// adapters, or as in another kind that the rule chooses, too.
struct AdapterKind {
  std::string_view name;
  bool AdapterRule::*flag = nullptr;  // what its key sets
  std::string_view help = {};         // about the key
  double (*scale)(const AdapterRule&) = nullptr;
  std::vector<AdapterPart> parts = {};
  /// Replaces the output of a product with the weight.
  void (*add)(GraphRewrite& to, NodeId product, AdapterValues&) = nullptr;
  /// `w`: the weight, row-major, which becomes the one with its adapters.
  void (*merge)(const AdaptedWeight&, std::span<double> w,
                const std::vector<HostTensor>& parts) = nullptr;
  /// Adds operands and steps.
  void (*write)(const AdaptedWeight&, const std::vector<HostTensor>& parts,
                WeightAdapters& to) = nullptr;
  std::string_view not_written = {};  // why nodes of an exported model cannot do it
  PeftKeys peft = {};
  std::string_view peft_flag = {};  // a key that is true for it
};

/// The list all_adapters.inl.
const std::vector<AdapterKind>& all_adapters();
AdapterKind lora();
#define TANDEM_ADAPTER(name) AdapterKind name();
#include "engine/passes/adapters/all_adapters.inl"

/// x as the adapters read it.
ValueId dropped(GraphBuilder& g, ValueId x, const AdapterValues& adapter);
/// scale (x A) B, as the node multiplies x by W.
ValueId low_rank_product(GraphBuilder& g, const Node& node, ValueId x, const AdapterValues&);

}  // namespace tandem
