// Prints what a training step of a model takes on each device, without training.
// plan_only MODEL.onnx BATCH
#include <tandem/tandem.h>

#include <cstdio>
#include <cstdlib>

namespace api = tandem::api;

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: plan_only MODEL.onnx BATCH\n"), 2;
  try {
    const api::Model model(argv[1]);
    for (const tandem::Diagnostic& problem : model.problems())
      std::printf("does not train: %s\n", problem.message.c_str());

    api::PolicyOptions options;
    options.model = argv[1];
    options.bind = {{"batch", std::atoll(argv[2])}};
    const api::Plan plan = api::policy_plan(options);
    for (const api::Plan::Device& device : plan.devices) {
      std::printf("%s: peak %.1f KiB, of it %.1f KiB of parameters and %.1f KiB of activations\n",
                  device.name.c_str(), static_cast<double>(device.peak) / 1024,
                  static_cast<double>(device.parameters) / 1024,
                  static_cast<double>(device.activations) / 1024);
    }
    std::printf("%.3f ms a step by the cost model\n", plan.seconds * 1e3);
    return plan.fits ? 0 : 3;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
