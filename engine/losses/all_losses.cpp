// The losses of the list all_losses.inl, by name and by what they score.
#include "engine/losses/loss.h"

#include <algorithm>

namespace tandem {
namespace losses {
#define TANDEM_LOSS(name) LossKind name();
#include "engine/losses/all_losses.inl"
}  // namespace losses

std::span<const LossKind> all_losses() {
  static const std::vector<LossKind> list{
#define TANDEM_LOSS(name) losses::name(),
#include "engine/losses/all_losses.inl"
  };
  return list;
}

const LossKind* find_loss(std::string_view name) { return find_named(all_losses(), name); }

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
