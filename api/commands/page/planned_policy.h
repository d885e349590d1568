// A model under the text of a policy that changes: resolved and planned again, imported once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/policy/policy_case.h"

namespace tandem::api {

/// A name that rules may give as a device.
struct BoundDevice {
  std::string name, use;                    // "gpu0", "cuda:0"; "" if nothing says what it means
  std::optional<std::uint64_t> limit = {};  // bytes
};

class PlannedPolicy {
 public:
  /// Imports the model; `text` may be wrong in any way.
  PlannedPolicy(const PolicyOptions& options, const std::string& text);

  /// Takes another text. Throws Error{usage} with everything that is wrong in it, and keeps the
  /// text before.
  void set(const std::string& text);
  /// Takes it even where it is wrong: `problems` then says why.
  void take(const std::string& text);
  const std::vector<Diagnostic>& problems() const { return problems_; }
  bool is_right() const { return problems_.empty(); }

  PolicyCase& of() { return *of_; }
  const Graph& graph() { return of_->graph(); }
  /// What rules may name, in the order of the resolved policy.
  const PolicyItems& items() const { return *items_; }
  const PlannedStep& step();
  /// Without remedies.
  const Plan& plan();
  /// As `tandem policy plan` has it. Planned once for a text.
  const Plan& plan_with_remedies();
  bool has_remedies() const { return full_plan_.has_value(); }

  /// The policy that later ones are compared with: the one that is saved.
  void keep_as_saved();
  void forget_saved() { saved_.reset(); }
  /// The JSON of `tandem policy diff` from the saved policy to this one; "" without a saved one.
  std::string compared();

  /// Names that rules may give as devices, with what they mean.
  std::vector<BoundDevice> devices();

 private:
  struct Saved {
    ResolvedPolicy resolved;
    Plan plan;
  };

  void drop_plans();

  PolicyOptions options_;
  std::unique_ptr<PolicyCase> of_;
  std::unique_ptr<PolicyItems> items_;
  std::string text_;
  std::vector<Diagnostic> problems_;
  std::optional<PlannedStep> step_;
  std::optional<Plan> plan_, full_plan_;
  std::optional<Saved> saved_;
};

}  // namespace tandem::api
