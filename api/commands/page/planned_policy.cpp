#include "api/commands/page/planned_policy.h"

#include "placement/auto/arguments.h"
#include "placement/device_use.h"
#include "placement/report/diff.h"
#include "placement/report/plan.h"

namespace tandem::api {
namespace {

std::unique_ptr<PolicyCase> case_of(const PolicyOptions& options, const std::string& text) {
  PlacingArguments placing{options.place, options.devices};
  placing.text = text;
  return std::make_unique<PolicyCase>(options, std::move(placing));
}

}  // namespace

PlannedPolicy::PlannedPolicy(const PolicyOptions& options, const std::string& text)
    : options_(options), of_(case_of(options, text)) {
  items_ = std::make_unique<PolicyItems>(of_->graph(), of_->imported().raw_names,
                                         of_->policy().options.added);
  take(text);
}

void PlannedPolicy::drop_plans() {
  full_plan_.reset();
  plan_.reset();
  step_.reset();  // it refers to the devices of the policy
}

void PlannedPolicy::set(const std::string& text) {
  if (text == text_ && is_right()) return;
  drop_plans();
  try {
    of_->replace_policy(text);
    of_->resolved();
    plan();
  } catch (...) {
    drop_plans();
    of_->replace_policy(text_);
    throw;
  }
  text_ = text;
  problems_.clear();
}

void PlannedPolicy::take(const std::string& text) {
  try {
    set(text);
  } catch (const Error& error) {
    problems_ = error.diagnostics();
    text_ = text;
    of_->replace_policy(text);
  }
}

const PlannedStep& PlannedPolicy::step() {
  if (!step_) step_ = of_->plan();
  return *step_;
}

const Plan& PlannedPolicy::plan() {
  if (!plan_) plan_ = plan_data(of_->policy().policy, of_->resolved(), step());
  return *plan_;
}

const Plan& PlannedPolicy::plan_with_remedies() {
  if (plan().fits) return plan();
  if (!full_plan_) full_plan_ = policy_plan(*of_, step());
  return *full_plan_;
}

void PlannedPolicy::keep_as_saved() {
  saved_.reset();
  if (is_right()) saved_.emplace(Saved{of_->resolved(), plan()});
}

std::string PlannedPolicy::compared() {
  if (!saved_ || !is_right()) return "";
  return difference({saved_->resolved, saved_->plan}, {of_->resolved(), plan()}).json;
}

std::vector<BoundDevice> PlannedPolicy::devices() {
  std::vector<BoundDevice> devices{{.name = "cpu", .use = "cpu"}};
  const auto add = [&](const std::string& name, const std::string& use,
                       std::optional<std::uint64_t> limit = {}) {
    for (BoundDevice& known : devices) {
      if (known.name != name) continue;
      if (known.use.empty()) known.use = use;
      if (!known.limit) known.limit = limit;
      return;
    }
    devices.push_back({name, use, limit});
  };
  const RunPolicy& policy = of_->policy();
  if (is_right())
    for (const ResolvedDevice& device : of_->resolved().devices) add(device.name, device.use);
  for (const auto* list : {&policy.policy.devices, &policy.options.bindings})
    for (const DeviceBinding& device : *list) add(device.name, device.use, device.memory_bytes);
  for (const auto& [name, profile] : of_->profiles()) add(name, "");
  return devices;
}

}  // namespace tandem::api
