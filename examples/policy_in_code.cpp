// Builds a policy from rules, adds the remedy that makes its plan fit, and saves it.
// policy_in_code MODEL.onnx BATCH POLICY.toml
#include <tandem/tandem.h>

#include <cstdio>
#include <cstdlib>

namespace api = tandem::api;

int main(int argc, char** argv) {
  if (argc != 4)
    return std::fprintf(stderr, "usage: policy_in_code MODEL.onnx BATCH POLICY.toml\n"), 2;
  try {
    std::vector<api::Rule> rules{{.at = "**", .on = "gpu", .why = "everything, if it fits"}};

    api::PolicyOptions options;
    options.model = argv[1];
    options.bind = {{"batch", std::atoll(argv[2])}};
    options.devices = {"gpu=emulated:0,memory=600KiB"};  // an accelerator in software
    options.made = api::Policy::of(rules);
    api::Plan plan = api::policy_plan(options);
    for (const api::Plan::Remedy& remedy : plan.remedies)
      std::printf("%s frees %llu bytes%s\n", remedy.text.c_str(),
                  static_cast<unsigned long long>(remedy.freed), remedy.suffices ? ": fits" : "");
    if (!plan.fits && !plan.remedies.empty()) {
      rules.push_back(plan.remedies[0].rule);
      options.made = api::Policy::of(rules);
      plan = api::policy_plan(options);
    }
    for (const api::Plan::Copy& copy : plan.copies)
      std::printf("%s > %s: %s, %llu bytes\n", copy.from.c_str(), copy.to.c_str(),
                  copy.producer.c_str(), static_cast<unsigned long long>(copy.bytes));
    options.made->save(argv[3]);
    std::printf("%s:\n%s", argv[3], options.made->text().c_str());
    return plan.fits ? 0 : 3;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
