// Policies: rules that say which device computes and stores what, and why each decision was made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/error.h"
#include "tandem/report.h"
#include "tandem/stop.h"

namespace tandem::api::inline v1 {

/// One rule of a policy; docs/policy_toml.md explains its keys. What it leaves unset, other rules and defaults decide.
/// Devices are names: "cpu", "gpu", "gpu1".
struct Rule {
  enum class Acts : std::uint8_t { keep, offload, recompute };
  enum class Ship : std::uint8_t { automatic, rows, results };
  enum class Shard : std::uint8_t { whole, rows, columns, state, state_and_gradient, table, heads };
  struct Cache {
    std::uint64_t bytes;
    double part;  ///< where `bytes` is 0: a part of the table, at most 1
    bool operator==(const Cache&) const = default;
  };
  std::string at = "**";                  ///< a selector of operators and parameters: "wide.**", "fc1:weight"
  std::string op = {};                    ///< filter: only operators of this type
  std::optional<std::uint64_t> min = {};  ///< filter: only parameters of at least this many bytes
  std::string after = {}, before = {};    ///< filters, selectors: only what depends on it, or it on
  std::optional<std::string> on = {};     ///< run, param and state at once
  std::optional<std::string> run = {}, param = {}, state = {};
  std::optional<Acts> acts = {};
  std::optional<int> lookahead = {};  ///< 0 to 64
  std::optional<Ship> ship = {};
  std::optional<Cache> cache = {};
  std::optional<Shard> shard = {};
  bool prefer = false;    ///< need = "prefer": fall back where a device has no kernel
  bool optional = false;  ///< the rule may match nothing
  std::string why = {};
  bool operator==(const Rule&) const = default;
};

/// A policy as a value. Copies are cheap and share one state that never changes. What makes one throws Error{usage}
/// with everything that is wrong in it; whether a model has what a rule names shows only where both are used.
class Policy {
 public:
  Policy();                                                                               ///< without rules
  static Policy of(const std::vector<Rule>& rules);                                       ///< later ones win
  static Policy open(const std::string& path);                                            ///< reads a policy.toml
  static Policy parse(const std::string& text, const std::string& name = "policy.toml");  ///< `name`: in messages
  const std::vector<Rule>& rules() const&;  ///< the list `auto`, then `rules`: later ones win
  const std::string& text() const&;         ///< the text of the file, as it is or would be
  const std::string& name() const&;         ///< the path that it was read from, or "policy.toml"
  // What a temporary returns is a copy.
  std::vector<Rule> rules() && { return std::as_const(*this).rules(); }
  std::string text() && { return std::as_const(*this).text(); }
  std::string name() && { return std::as_const(*this).name(); }
  /// Writes the text; the file appears once it is whole. Throws Error{runtime|usage} else.
  void save(const std::string& path) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// The train.toml or the model for which a policy is examined.
struct PolicyOptions {
  std::string config;                                      ///< train.toml, or
  std::string model;                                       ///< an ONNX file
  std::vector<std::pair<std::string, std::int64_t>> bind;  ///< dimensions of `model`: {"batch", 32}
  std::vector<std::string> overrides;                      ///< keys of train.toml
  std::string policy;                       ///< a policy.toml instead of the configuration's; "" = that one
  std::optional<Policy> made;               ///< a policy that is no file, instead of either
  std::vector<std::string> place, devices;  ///< as in TrainOptions
  /// For the cost model instead of assumptions: one of `known_accelerators`, which `gpu` then means, or a file of
  /// device profiles. The devices need not be here.
  std::string profile;
  int ranks = 1;        ///< plans are for one of that many, each with its share of the batch
  std::string network;  ///< the network between them for the cost model, "100Gb/s,5us"; "": the profile's, else 10 Gb/s
};

/// How many things of a model there are: running statistics are `buffers`, parts that training adds to the model
/// ("loss.total") are `added`.
struct PartCounts {
  int operators = 0, parameters = 0, buffers = 0, added = 0;
};
struct PolicyCheck : Report {
  struct Use {
    std::string at, file;  ///< the rule's selector and place
    int line = 0;          ///< counted from 1
    PartCounts matched;
    int decided = 0, fell_back = 0;  ///< attributes that it decides; those for which it fell back
  };
  std::vector<Use> rules;            ///< later ones win
  std::vector<Diagnostic> problems;  ///< none of which prevents training
};
/// Reads and resolves a policy: rules with what they match, warnings. Throws Error{usage} with everything that is
/// wrong; so do all functions below.
PolicyCheck policy_check(const PolicyOptions& options);

/// What a policy decides; `ahead`: whether rows are fetched for the next step.
enum class Attribute : std::uint8_t { run, param, state, acts, lookahead, ship, cache, shard, ahead };
std::string_view name(Attribute attribute);
/// Why an attribute of an operator or a parameter has its value.
struct Decision {
  Attribute attribute = Attribute::run;
  std::string value;               ///< a device for run, param and state; else a word or number as in a rule
  std::string reason;              ///< "policy.toml:4", "default", "follows fc1.Gemm (policy.toml:4)"
  std::string file;                ///< where the rule is that decides it; "": no rule does
  int line = 0;                    ///< counted from 1; 0: no rule
  std::string requested, why_not;  ///< what a stronger rule asked for in vain; "": there is none
};
/// The nodes that come from it are only in `text` and `json`.
struct Explanation : Report {
  std::string path;
  std::vector<Decision> decisions;  ///< none for a module or a selector: `json` has its groups
};
enum class Phase : std::uint8_t { forward, backward, update };
/// None for "". Throws Error{usage} where it is not the name of one.
std::optional<Phase> phase_of(std::string_view name);
/// Where an operator or a parameter is, which line of the policy decided it, and what became of all nodes that come
/// from it (`phase`: of those in this one). For a module ("blocks.3") or what a selector covers: how much each line
/// decides, and where that is.
Explanation policy_explain(const PolicyOptions& options, const std::string& name,
                           std::optional<Phase> phase = std::nullopt);

struct PolicyAutoOptions {
  std::vector<std::string> budgets;  ///< "gpu=20GiB": bytes that the plan may take there
  std::string to;                    ///< the file to write instead of the policy
  bool measure = false;              ///< kernels on the devices here, instead of assuming times
  std::string save_profile;          ///< where to store what was measured or taken
  int most_plans = 0;                ///< limit of a search; 0: 600, fewer above 100 operators
  /// Called after each comparison. `plans`: placements compared so far; `most`: their limit; `best_ms`: milliseconds of
  /// a step under the best one that fits, negative while none fits.
  std::function<void(int plans, int most, double best_ms)> on_progress;
  /// On request the search ends and writes the best placement so far; Error{runtime} "interrupted" where none fits yet.
  StopToken stop;
};
/// Searches a placement under the budgets and writes it as the policy's list `auto`; the file's own rules hold, its
/// comments and order stay. Equal input gives an equal file, unless it measures. Throws Error{does_not_fit} with the
/// numbers where no placement fits.
Report policy_auto(const PolicyOptions& options, const PolicyAutoOptions& automatic);
/// What the same search would write.
Policy find_policy(const PolicyOptions& options, const PolicyAutoOptions& automatic);

}  // namespace tandem::api::inline v1
