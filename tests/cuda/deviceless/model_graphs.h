// The cuDNN graphs that some well-known models need, as their kernels build them.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/networks/plans.h"

namespace tandem::testing {

/// The type in which a model computes: float32 in full, or with products in TF32.
enum class Numbers { float16, bfloat16, float32, tf32 };
inline constexpr Numbers all_numbers[] = {Numbers::float16, Numbers::bfloat16, Numbers::float32,
                                          Numbers::tf32};
std::string name_of(Numbers numbers);

/// One line of the table: one operation in every type.
struct Question {
  std::string section;    // "ResNet-50, forward"
  std::string operation;  // "3 x 3, 64 to 64 channels, 56 x 56"
  int uses = 1;           // how often the model has it
  /// Each type's graph, and the engines that may compute it. A graph is empty if one of Tandem's
  /// own kernels computes the operation in that type.
  cuda::NetworkGraph graphs[4];
  cuda::EngineRules rules[4];
};

std::vector<Question> resnet50(std::int64_t batch);
/// 12 heads of 64, with a mask of the keys and without.
std::vector<Question> bert_base(std::int64_t batch, std::int64_t sequence);
/// Like `bert_base`, but causal, with q, k and v next to each other in memory.
std::vector<Question> gpt(std::int64_t batch, std::int64_t sequence);

/// All that docs/gpu/cudnn.md lists.
std::vector<Question> all_questions();

}  // namespace tandem::testing
