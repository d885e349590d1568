// Rank-stabilised adapters (Kalajdzievski 2023), whose scale falls with the root of the rank.
#include <cmath>

#include "engine/passes/adapters/adapter_kind.h"

namespace tandem {

AdapterKind rslora() {
  return {.name = "rslora",
          .flag = &AdapterRule::rslora,
          .help =
              "rank-stabilised scaling: what the adapters make is multiplied by "
              "alpha / sqrt(rank)",
          .scale =
              [](const AdapterRule& r) { return r.alpha / std::sqrt(static_cast<double>(r.rank)); },
          .peft_flag = "use_rslora"};
}

}  // namespace tandem
