// The list of losses: engine/losses/NAME.cpp has losses::NAME().
#include "engine/losses/loss.h"

#include <algorithm>

// clang-format off: one loss a line, in the order of messages and docs.
#define TANDEM_LOSSES(LOSS)   \
  LOSS(softmax_cross_entropy) \
  LOSS(mse)                   \
  LOSS(binary_cross_entropy)  \
  LOSS(sum_of_squares)        \
  LOSS(nll)                   \
  LOSS(softmax_focal)         \
  LOSS(sigmoid_focal)         \
  LOSS(hinge)                 \
  LOSS(multi_margin)          \
  LOSS(mae)                   \
  LOSS(huber)                 \
  LOSS(smooth_l1)             \
  LOSS(kl_div)                \
  LOSS(gaussian_kl)           \
  LOSS(cosine_embedding)      \
  LOSS(triplet_margin)        \
  LOSS(dice)                  \
  LOSS(distillation)
// clang-format on

namespace tandem {
namespace losses {
#define DECLARE_LOSS(name) LossKind name();
TANDEM_LOSSES(DECLARE_LOSS)
#undef DECLARE_LOSS
}  // namespace losses

std::span<const LossKind> all_losses() {
#define LIST_LOSS(name) losses::name(),
  static const std::vector<LossKind> list{TANDEM_LOSSES(LIST_LOSS)};
#undef LIST_LOSS
  return list;
}

const LossKind* find_loss(std::string_view name) {
  const std::span<const LossKind> all = all_losses();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const LossKind& kind) { return kind.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string losses_with(unsigned scores) {
  std::vector<std::string_view> names;
  for (const LossKind& kind : all_losses()) {
    if ((kind.scores & scores) != 0) names.push_back(kind.name);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace tandem
