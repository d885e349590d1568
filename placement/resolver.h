// Does the work of `resolve`: applies rules in order, then fills in what follows from others, then
// looks for rules and homes that deserve a warning.
#pragma once

#include "placement/resolve.h"

namespace tandem {

constexpr int host = 0;  // the first device of every policy

class PolicyResolver {
 public:
  PolicyResolver(const Policy& policy, const Graph& forward, const ResolveOptions& options,
                 const PlacementFacts& facts);
  ResolvedPolicy run();

 private:
  static std::vector<DeviceBinding> all_bindings(const Policy& policy,
                                                 const ResolveOptions& options);
  void start();
  void apply(int rule);
  template <class T>
  void decide(Decided<T>& attribute, T value, int rule);
  void apply_to_parameter(int parameter, int rule, int run, int param, int state);
  void finish_parameter(std::size_t parameter);
  void refuse_two_readers(std::size_t parameter);

  // ship.cpp
  void find_traffic(std::size_t parameter);
  void finish_ship(std::size_t parameter);
  int reader_device(ValueId result) const;

  // shard.cpp
  void apply_shard(const std::vector<int>& parameters, int rule);
  void finish_shards();
  std::string shard_obstacle(std::size_t parameter) const;
  bool is_beside_a_matrix(std::size_t parameter) const;

  // cache.cpp
  void finish_caches();
  std::string cache_obstacle(std::size_t parameter, int& device) const;
  void note_missing_caches();

  // fall_back.cpp
  void fall_back(Reason& reason, int rule, int device, std::string because);
  void say_fallen(Reason& reason) const;
  std::optional<std::string> no_kernel(int device, const std::string& path) const;
  std::optional<std::string> refusal(int item, int device) const;
  std::optional<std::string> update_refusal(std::size_t parameter, int device) const;
  std::optional<std::string> readers_refusal(std::size_t parameter, int device) const;
  void refuse_missing_kernels();
  void note_fall_backs();

  // resolve_warnings.cpp
  void count_decisions();
  void warn_about_model();
  void warn_about_rules();
  void warn_about_homes();
  void warn_about_acts();
  void warn_about_lookahead();
  void warn_about_ship();
  void warn_about_devices();
  void note_tf32();
  std::vector<int> winners_over(int rule) const;

  const Policy& policy_;
  const Graph& graph_;
  const ResolveOptions& options_;
  const PlacementFacts& facts_;
  PolicyItems items_;
  RuleMatcher matcher_;
  std::vector<Diagnostic> errors_;
  DeviceNames names_;
  ResolvedPolicy result_;
};

template <class T>
void PolicyResolver::decide(Decided<T>& attribute, T value, int rule) {
  Reason& reason = attribute.reason;
  if (reason.rule >= 0) reason.overridden.insert(reason.overridden.begin(), reason.rule);
  std::vector<int> lost;
  for (const FallBack& fallen : reason.fallen) lost.push_back(fallen.rule);
  reason.overridden.insert(reason.overridden.begin(), lost.begin(), lost.end());
  reason.fallen.clear();
  const PolicyRule& by = policy_.rules[rule];
  attribute.value = value;
  reason.rule = rule;
  reason.layer = by.layer;
  reason.text = short_text(by.where);
  reason.prefer = by.prefer;
}

}  // namespace tandem
