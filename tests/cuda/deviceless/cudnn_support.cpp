// Prints docs/gpu/cudnn.md: which of the graphs that Tandem builds for well-known models cuDNN
// takes, asked without a GPU. Takes a minute or two.
#include <cstdio>

#include "tests/cuda/deviceless/support_table.h"

namespace {

using namespace tandem::testing;

constexpr const char* about =
    "\n"
    "Written by `cudnn_support`, which asks the library itself for GPUs that are only described, "
    "through\n"
    "the functions that build the kernels' graphs. It knows what is accepted, by how many engines, "
    "and with\n"
    "how much workspace; not how fast it is.\n"
    "\n"
    "A cell says how many engines the rules allow, the workspace of the plan that is taken, and "
    "`c` where\n"
    "cuDNN compiles the plan when it is made (0.2 to 1.5 s, once: it is kept on disk). The rules: "
    "float32\n"
    "products are not shortened unless TF32 is allowed, 16-bit floats add in float32, and the same "
    "input\n"
    "gives the same bits unless a line says so. Activations and weights are channels-last, but for "
    "float32\n"
    "without TF32: the engines for it lay maps out by planes, so that channels-last ones would be "
    "copied\n"
    "through workspaces of up to 1 GiB. `own`: a kernel of Tandem's own computes it.\n"
    "\n"
    "Attention in float32 is not asked for: a kernel of Tandem's own computes it "
    "(`cuda.attention`,\n"
    "`cuda.attention_grad`). Matrix products are cuBLASLt's, which is not asked here. Pooling, "
    "normalisation and\n"
    "what else has no line are kernels of Tandem's own in every type.\n";

}  // namespace

int main() {
  const DevicelessCudnn cudnn = open_deviceless_cudnn();
  if (!cudnn.problem.empty()) {
    std::fprintf(stderr, "%s\n", cudnn.problem.c_str());
    return 1;
  }
  std::printf("%s%s", title(cudnn.version()).c_str(), about);
  SupportTable table(*cudnn.table);
  std::string section;
  for (const Question& question : all_questions()) {
    if (question.section != section) {
      section = question.section;
      std::printf("\n## %s\n\n%s", section.c_str(), SupportTable::head().c_str());
    }
    std::printf("%s", table.line(question).c_str());
    std::fflush(stdout);
  }
  std::printf("\n## All together\n\n%s", table.summary().c_str());
  return 0;
}
