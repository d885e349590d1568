// Which device each part of a run gets: the policy file and the command line's rules, resolved
// against the model, and the devices that they use.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/known_cards.h"
#include "engine/plan/plan.h"
#include "engine/runtime/device.h"
#include "engine/training/config/run_config.h"
#include "importer/import_graph.h"
#include "kernels/emulated/order_checker.h"
#include "placement/forward_placement.h"
#include "placement/resolve.h"

namespace tandem::api {

/// Different rows of a table that one pass of the graph looks up, by the parameter's name.
using RowCounter =
    std::function<std::optional<std::int64_t>(const Graph& pass, const std::string& parameter)>;

/// The caches that a policy asks for, one for each wish.
using CacheChooser =
    std::function<std::vector<TableCache>(const Graph& pass, const std::vector<CacheWish>& wishes)>;

using DeviceMaker = std::function<std::unique_ptr<Device>(
    const ResolvedDevice& device, const std::shared_ptr<OrderChecker>& monitor)>;

using CardMaker = std::function<std::unique_ptr<Device>(const CudaOptions& options)>;

/// What the command line adds to a policy.
struct PlacingArguments {
  std::vector<std::string> place;        // rules: '{ at = "wide.**", on = "cpu" }'
  std::vector<std::string> devices;      // bindings: "gpu=emulated:0,memory=2GiB"
  std::optional<std::string> text = {};  // of the policy, instead of its file's
  /// What devices are where policy and bindings leave it open: a plan needs no hardware.
  std::vector<DeviceBinding> stand_ins = {};
  /// Makes an accelerator of the policy, whether or not this machine has it; empty: as its `use`
  /// says.
  DeviceMaker make_device = {};
  KnownCards cards = KnownCards();
  /// Makes the cards that `use` names.
  CardMaker make_card = make_cuda_device;
  /// The monitor looks at every byte that is touched, also where all accelerators are cards, which
  /// wait for it; it does without in debug builds.
  bool check_order = false;
};

class Placing {
 public:
  /// Reads the policy of the configuration; what is wrong with it comes out of `resolve`.
  Placing(const RunConfig& config, const PlacingArguments& arguments);

  /// Asked about tables whose look-ups cross, before `ship = "auto"` is decided.
  void count_rows_by(RowCounter counter) { count_rows_ = std::move(counter); }
  void choose_caches_by(CacheChooser chooser) { choose_caches_ = std::move(chooser); }

  /// Against the imported forward graph; once, later calls return the first result. Throws
  /// Error{usage} with everything that is wrong in the policy.
  const ResolvedPolicy& resolve(const ImportResult& imported);
  const ResolvedPolicy& resolved() const { return *resolved_; }
  bool is_resolved() const { return resolved_.has_value(); }
  /// Resolves once more where a device has no kernel for a node of this graph, which comes from the
  /// imported one: rules with need = "prefer" fall back. Throws Error{usage} where others ask for
  /// it.
  void check_kernels(const Graph& graph, const ImportResult& imported);
  const Policy& policy() const { return policy_; }
  /// What bindings, else the policy, say of the cpu's compute threads.
  std::optional<int> host_threads() const;
  /// The text of the policy file, or what a file without rules would say.
  const std::string& text() const { return text_; }

  /// What the command line has added: rules, bindings.
  const std::vector<std::string>& added_rules() const { return added_rules_; }
  const std::vector<std::string>& added_devices() const { return added_devices_; }

  /// Of a graph that comes from the imported one.
  Placement place(const Graph& graph) const;

  /// "cpu" is given; the others are made. Index by index those of `resolved`.
  const std::vector<Device*>& open_devices(Device& cpu, std::shared_ptr<OrderChecker> monitor);
  const std::vector<Device*>& devices() const { return devices_; }

 private:
  ResolvedPolicy resolve_now(const ImportResult& imported) const;
  std::unique_ptr<Device> make_device(const ResolvedDevice& device,
                                      const std::shared_ptr<OrderChecker>& monitor) const;

  Policy policy_;
  std::string text_;
  std::vector<std::string> added_rules_, added_devices_;
  ResolveOptions options_;
  RowCounter count_rows_;
  CacheChooser choose_caches_;
  DeviceMaker make_device_;
  KnownCards cards_;
  CardMaker make_card_;
  bool check_order_ = false;
  bool tf32_ = false;
  std::optional<ResolvedPolicy> resolved_;
  std::vector<std::unique_ptr<Device>> own_;
  std::vector<Device*> devices_;
};

/// Compute threads of a run's host: those of its policy and bindings, else the key `threads`. 0:
/// all usable cores.
int run_threads(const RunConfig& config, const PlacingArguments& arguments);

/// Bytes that a device of a policy may use: what the binding says, or all that it has.
std::size_t memory_limit(const ResolvedDevice& device, std::size_t capacity);
/// Of one that was opened: an accelerator has the limit in its own `memory_bytes`.
std::size_t memory_limit(const ResolvedDevice& device, const Device& opened);

/// What kept a device from being made, at the place of the policy that asks for it, with the way to
/// do without it.
std::vector<Diagnostic> at_device(std::vector<Diagnostic> problems, const ResolvedDevice& device);

/// An accelerator, or the host where the policy limits it: without that it swaps.
bool is_limited(const ResolvedPolicy& resolved, std::size_t device);

/// Throws Error{does_not_fit} with the numbers and a rule to add where the plan needs more than
/// some accelerator has, or than the policy gives the cpu.
void check_fit(const Plan& plan, const ResolvedPolicy& resolved,
               const std::vector<Device*>& devices);

}  // namespace tandem::api
