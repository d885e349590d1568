// Orders each update right after the last of its operands, or after backward where ranks exchange
// its gradient.
#include "engine/lower/early_keys.h"

namespace tandem {

PlacedGraph early_updates(PlacedGraph placed, const LowerContext&) {
  const std::vector<double> keys = early_keys(placed.graph);
  return tidy(std::move(placed), keys);
}

}  // namespace tandem
