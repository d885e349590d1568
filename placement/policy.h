// The policy file as plain values: rules in order of precedence, devices, the model it is for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/structures/out_of_line.h"
#include "engine/lower/placement.h"
#include "placement/device_binding.h"

namespace tandem {

/// Where a rule comes from; later ones win.
enum class Layer : std::uint8_t { builtin, automatic, rules, command_line };

template <>
inline constexpr std::string_view names_of<Activations> = "keep|offload|recompute";
std::string_view name_of(Activations acts);
std::string_view name_of(Ship ship);

/// The size of a cache: bytes, or a part of the table.
struct CacheSize {
  std::uint64_t bytes = 0;
  double part = 0;  // where `bytes` is 0
  bool operator==(const CacheSize&) const = default;
};
/// "2.0 GiB", "10%".
std::string cache_text(const CacheSize& size);

/// One line: a selector, filters, attributes. Attributes that it leaves open are unset.
struct PolicyRule {
  COPIED_OUT_OF_LINE(PolicyRule);

  Selector at{"**"};
  // Filters; all that are set must hold.
  std::string op;                         // operator type
  std::optional<std::uint64_t> min;       // bytes of the parameter
  std::optional<Selector> after, before;  // data-flow cones
  // Attributes. Devices by name; `on` is already spread over run, param and state.
  std::optional<std::string> run, param, state;
  std::optional<Activations> acts;
  std::optional<int> lookahead;
  std::optional<std::string> ship;
  std::optional<CacheSize> cache;
  std::optional<std::string> shard;  // "whole", "rows", "columns", "state"; others are refused
  bool prefer = false;               // need = "prefer"
  bool optional = false;             // may match nothing
  std::string why;
  Where where;  // place of the rule
  Layer layer = Layer::rules;
  std::vector<std::pair<std::string, Where>> keys;  // those written, with their values' places

  /// Place of a key's value ("on" for the parts that it sets); the rule's own where it is not
  /// there.
  Where where_of(std::string_view key) const;
};

using PolicyRules = std::vector<PolicyRule>;

/// { at = AT, on = DEVICE }
PolicyRule rule_on(std::string_view at, const std::string& device);
/// The rule as an item of a policy file's lists: `{ at = "**", on = "gpu0", state = "cpu" }`.
std::string to_toml(PolicyRule rule);

struct Policy {
  COPIED_OUT_OF_LINE(Policy);

  std::string file;   // as given; "" without a file
  PolicyRules rules;  // auto, rules, command line: later ones win
  std::vector<DeviceBinding> devices;
  std::string model_file;       // absolute, or ""
  std::string model_structure;  // "sha256:...", or ""
  Where model_where;
};

/// The text of a policy file. Throws Error{usage} where it is missing, no regular file, or larger
/// than any policy.
std::string read_policy_text(const std::string& path);
/// Reads a policy from text; `path` names it in messages. `place` are `--place` arguments, rules as
/// inline tables: '{ at = "wide.**", on = "cpu" }'. Problems, all of them, are one Error{usage}; or
/// are appended to `errors`, so that those of `resolve` can be added to them.
Policy parse_policy(std::string_view text, const std::string& path,
                    const std::vector<std::string>& place = {},
                    std::vector<Diagnostic>* errors = nullptr);
/// Without a file: only `--place` rules.
Policy policy_of_arguments(const std::vector<std::string>& place,
                           std::vector<Diagnostic>* errors = nullptr);

/// By file (the file first, then arguments), line and column.
void sort_diagnostics(std::vector<Diagnostic>& errors);
/// "policy.toml:4": the file without its folder.
std::string short_text(const Where& where);
/// The short text of a rule's place; "" where `rule` is -1.
std::string rule_text(const Policy& policy, int rule);
/// A rule's selector and filters, as the file has them: `at = "**", op = "Relu"`.
std::string selection_text(const PolicyRule& rule);

}  // namespace tandem
