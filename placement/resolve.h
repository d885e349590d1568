// Resolves a policy into the attributes of every operator and parameter of a forward graph, each
// with the reason for it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/structures/out_of_line.h"
#include "placement/device_names.h"
#include "placement/match.h"
#include "placement/policy.h"

namespace tandem {

/// A rule with need = "prefer" that did not get its way.
struct FallBack {
  int rule = -1;        // index into Policy::rules
  int device = -1;      // the device that it asked for
  std::string because;  // "Conv: cuda.conv: takes no float64"
};

/// Why an attribute has its value.
struct Reason {
  Layer layer = Layer::builtin;
  int rule = -1;                 // index into Policy::rules of the rule that decided; -1 = none
  std::string text;              // "policy.toml:4", "default", "follows fc1.Gemm (policy.toml:4)"
  std::vector<int> overridden;   // rules that set it too and lost, the strongest first
  std::vector<FallBack> fallen;  // rules that would have won, the strongest first
  bool follows = false;          // another attribute's value; `rule` is what decided that one
  bool prefer = false;           // may fall back where the device has no kernel
};

template <class T>
struct Decided {
  T value{};
  Reason reason;
};

/// What a rule asks for with `ship`; automatic: whatever moves fewer bytes.
enum class ShipRequest : std::uint8_t { automatic, rows, results };

struct OperatorAttributes {
  std::string path;
  Decided<int> run;  // index into ResolvedPolicy::devices
  Decided<Activations> acts;
  Decided<int> lookahead;
  bool added = false;  // not in the forward graph: "loss.ce"
};

/// What the lookups of one micro-batch move, there and back, where a table lives on the host.
struct TableTraffic {
  bool crosses = false;        // lookups run on the host, and one other device reads the results
  std::int64_t ids = 0;        // how many are looked up
  std::int64_t most_rows = 0;  // upper bound of the different rows among them
  std::int64_t rows = 0;       // those outside of a cache: counted in data, else `most_rows`
  bool counted = false;
  std::int64_t bytes_rows = 0, bytes_results = 0;  // by either way of shipping
  std::int64_t bytes_uncached = 0;                 // by the better way, without a cache
};

/// Rows of a table on the host that are cached on the device where its lookups are read.
struct TableCache {
  int device = -1;
  std::shared_ptr<const std::vector<std::int64_t>> rows;  // ascending; null: there is none
  std::int64_t bytes = 0;                                 // with the rows' optimizer states
  double hit_rate = 0;                                    // part of the data's ids that hit it
  std::int64_t cold_rows = 0;  // about how many different other rows one micro-batch looks up
  std::string off;             // why there is none where a rule asks for one
};

/// A cache that a rule asks for, where nothing prevents it.
struct CacheRequest {
  std::string parameter;
  CacheSize size;
  int device = -1;
  bool operator==(const CacheRequest&) const = default;
};

/// Attributes of a parameter or a buffer. A buffer's `state` is its `param`.
struct ParameterAttributes {
  std::string name;  // the initializer's
  std::string path;  // "fc1:weight"; "" for buffers
  StateKind kind = StateKind::parameter;
  std::size_t bytes = 0;
  std::vector<std::string> readers;  // paths of operators, without views of the parameter
  std::vector<int> run;              // devices of the readers, each once
  Decided<int> param, state;         // indices into ResolvedPolicy::devices
  Decided<int> lookahead;
  bool table = false;  // only lookups read it
  Decided<Ship> ship;  // what those lookups send
  ShipRequest ship_request = ShipRequest::automatic;
  Decided<CacheSize> cache;  // as a rule asks; its reason has no rule where none does
  TableCache cached;
  TableTraffic traffic;                    // for a table
  Decided<std::optional<Sharding>> shard;  // over ranks; nothing: whole on each

  /// Whether the next step's rows cross during this one: a rule says so, and rows are sent.
  bool fetches_ahead() const {
    return table && ship.value == Ship::rows && lookahead.reason.rule >= 0 && lookahead.value > 0;
  }
};

/// What one rule has achieved.
struct RuleUse {
  ItemCounts matched;
  int decided = 0;  // attributes of them that it decided
  int fallen = 0;   // attributes where it fell back
};

/// What is known from model, data and devices, next to the policy.
struct PlacementFacts {
  /// ONNX node names by path, so that raw names match too.
  std::unordered_map<std::string, std::string> raw_names;
  /// Why a device (index into ResolvedPolicy::devices) has no kernel: for an operator or its
  /// gradient by the operator's path, for an update by "optimizer." and the parameter's name.
  std::map<std::pair<int, std::string>, std::string> refusals;
  /// About how many different rows of a table the lookups of one micro-batch read, by its
  /// parameter's name; without tables whose rows the data does not determine. Unset: not counted.
  std::optional<std::map<std::string, std::int64_t>> unique_rows;
  /// One cache for each of these requests. Other requests get no cache, and no note.
  std::vector<CacheRequest> constraints;
  std::vector<TableCache> caches;
};

/// Facts that the policy depends on and that are unknown so far.
struct OpenQuestions {
  bool unique_rows = false;
  std::vector<CacheRequest> constraints;
  bool any() const { return unique_rows || !constraints.empty(); }
};

class ResolvedPolicy {
 public:
  COPIED_OUT_OF_LINE(ResolvedPolicy);

  std::vector<ResolvedDevice> devices;          // those in use; the first is "cpu"
  std::vector<OperatorAttributes> operators;    // one a path: the graph's order, then added parts
  std::vector<ParameterAttributes> parameters;  // parameters and buffers, in the graph's order
  std::vector<RuleUse> rules;                   // one a rule of the policy
  std::vector<Diagnostic> warnings;
  std::vector<Diagnostic> notes;  // what fell back: one a rule, device and reason
  OpenQuestions questions;        // with the answers, `resolve` may decide otherwise

  const std::string& device_name(int device) const { return devices[device].name; }
  /// Finds by path (paths survive rewrites; a derived node is found by its origins) or by the raw
  /// name where `raw_names` had it; null for what is neither in the forward graph nor an added
  /// part.
  const OperatorAttributes* find_node(std::string_view path) const;
  /// By path or by initializer name.
  const ParameterAttributes* find_parameter(std::string_view name) const;
  /// Operators and parameters of the model by device: where operators run, and where parameters are
  /// read (`param`).
  std::vector<ItemCounts> counts_by_device() const;
  /// Whether operators may become one: all known ones run on one device with equal `acts` and
  /// `lookahead`.
  bool may_merge(std::span<const std::string> paths) const;

 private:
  friend class PolicyResolver;
  std::unordered_map<std::string, std::size_t> by_path_, parameter_by_name_;
};

struct ResolveOptions {
  /// Accelerators of this machine, "cuda:0", ...; emulated ones need not be listed.
  std::vector<std::string> machine;
  /// Asked instead of `machine`, where set, about accelerators that the policy uses.
  MissingDevice missing;
  int local = 0;                        // index of this process's own accelerator
  std::vector<DeviceBinding> bindings;  // `--device`, over the policy's table
  std::string default_device = "cpu";   // for everything that no rule places
  std::string default_reason = "default";
  std::string model_file;  // the graph's file, absolute; "": not known
  /// What rules may name besides the forward graph. Empty: rules that begin with `loss.`, `data.`
  /// or `optimizer.` may match nothing yet.
  std::vector<AddedPart> added;
  bool tf32 = false;  // the configuration allows it
  /// Problems found while the policy was read; thrown together with those found here.
  std::vector<Diagnostic> earlier;
};

/// The added parts of a resolved policy.
std::vector<AddedPart> added_parts(const ResolvedPolicy& resolved);

/// The word that policies use, such as "rows"; "whole" for nothing.
std::string_view name_of(std::optional<Sharding> shard);
/// What is sharded over ranks, in the form that a training takes.
Shardings shardings_of(const ResolvedPolicy& resolved);

/// Throws one Error{usage} with everything that is wrong: unknown or missing devices, rules that
/// match nothing, parameters read on two devices without `param`, attributes of later versions,
/// devices without a kernel for what they have to run.
ResolvedPolicy resolve(const Policy& policy, const Graph& forward,
                       const ResolveOptions& options = {}, const PlacementFacts& facts = {});

}  // namespace tandem
