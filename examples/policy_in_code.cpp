// Trains under a policy of rules, to which it adds the remedy that makes the plan fit.
// policy_in_code TRAIN.toml POLICY.toml RUN_DIR
#include <tandem/tandem.h>
#include <tandem/train_config.h>

#include <algorithm>
#include <cstdio>

namespace api = tandem::api;

int main(int argc, char** argv) {
  if (argc != 4)
    return std::fprintf(stderr, "usage: policy_in_code TRAIN.toml POLICY.toml RUN_DIR\n"), 2;
  try {
    std::vector<api::Rule> rules{{.at = "**", .on = "gpu", .why = "everything, if it fits"}};

    api::PolicyOptions planned;
    planned.config = argv[1];
    planned.devices = {"gpu=emulated:0,memory=1150KiB"};  // an accelerator in software
    planned.made = api::Policy::of(rules);
    api::Plan plan = api::policy_plan(planned);
    for (const api::Plan::Remedy& remedy : plan.remedies)
      std::printf("%s frees %llu bytes%s\n", remedy.text.c_str(),
                  static_cast<unsigned long long>(remedy.freed), remedy.suffices ? ": fits" : "");
    const auto remedy = std::ranges::find_if(plan.remedies, [](const api::Plan::Remedy& one) {
      return one.suffices && one.rule.state;  // the operators stay on the accelerator
    });
    if (remedy != plan.remedies.end()) {
      rules.push_back(remedy->rule);
      planned.made = api::Policy::of(rules);
      plan = api::policy_plan(planned);
    }
    for (const api::Plan::Copy& copy : plan.copies)
      std::printf("%s > %s: %s, %llu bytes\n", copy.from.c_str(), copy.to.c_str(),
                  copy.producer.c_str(), static_cast<unsigned long long>(copy.bytes));
    planned.made->save(argv[2]);
    std::printf("%s:\n%s", argv[2], planned.made->text().c_str());
    if (!plan.fits) return 3;

    api::TrainConfig config = api::TrainConfig::load(argv[1]);
    config.epochs = 2;
    api::TrainOptions options;
    options.run_dir = argv[3];
    options.policy = planned.made;
    options.devices = planned.devices;
    const api::TrainResult result = api::Trainer(config, options).run();
    std::printf("accuracy %.2f\n", result.evaluation.at("accuracy"));
    return result.evaluation.at("accuracy") > 0.5 ? 0 : 1;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
