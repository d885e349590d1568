// Plans of the C library.
#include "tandem/plan.h"

#include <string>
#include <utility>

#include "api/c/guarded.h"
#include "api/c/policy_source.h"
#include "api/c/structs.h"
#include "api/c/texts.h"
#include "tandem/c.h"
#include "tandem/policy.h"

struct TandemPlan {
  tandem::api::Plan plan;
};

namespace tandem::c_library {
namespace {

api::PolicyOptions policy_options(const TandemPlanOptions& from) {
  api::PolicyOptions options;
  options.config = text_or_empty(from.config);
  options.model = text_or_empty(from.model);
  options.bind = sizes_of(from.bind, "options.bind");
  options.overrides = texts_of(from.overrides, "options.overrides");
  options.policy = text_or_empty(from.policy);
  if (from.policy_text != nullptr)
    options.made = given_policy(from.policy, from.policy_text, "options");
  options.place = texts_of(from.place, "options.place");
  options.devices = texts_of(from.devices, "options.devices");
  options.profile = text_or_empty(from.profile);
  options.network = text_or_empty(from.network);
  if (from.ranks != 0) options.ranks = from.ranks;
  return options;
}

}  // namespace
}  // namespace tandem::c_library

using namespace tandem::c_library;

TandemStatus tandem_plan_make(const TandemPlanOptions* options, TandemPlan** plan) {
  return guarded([&] {
    TandemPlan*& result = made(plan, "plan");
    result =
        new TandemPlan{tandem::api::policy_plan(policy_options(read_struct(options, "options")))};
  });
}

TandemStatus tandem_plan_info(const TandemPlan* plan, TandemPlanInfo* info) {
  return guarded([&] {
    const tandem::api::Plan& from = required(plan, "plan").plan;
    const TandemPlanInfo written{.struct_size = sizeof(TandemPlanInfo),
                                 .seconds = from.seconds,
                                 .text = from.text.c_str(),
                                 .json = from.json.c_str(),
                                 .fits = from.fits ? 1 : 0,
                                 .ranks = from.ranks};
    write_struct(written, info, "info");
  });
}

void tandem_plan_close(TandemPlan** plan) {
  if (plan == nullptr) return;
  delete *plan;
  *plan = nullptr;
}
