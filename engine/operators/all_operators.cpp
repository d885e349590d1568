// Makes the set of all operators of the list all_operators.inl.
#include "engine/operators/update.h"

namespace tandem {
namespace operators {

#define TANDEM_OPERATOR(name) Operator name();
#define TANDEM_OPERATORS(name) void add_##name(OperatorSet& set);
#include "engine/operators/all_operators.inl"

void add_updates(OperatorSet& set) {
  for (const UpdateKind& kind : update_kinds()) {
    if (kind.compose == nullptr) set.add(update_operator(kind));
  }
}

}  // namespace operators

OperatorSet all_operators() {
  OperatorSet set;
#define TANDEM_OPERATOR(name) set.add(operators::name());
#define TANDEM_OPERATORS(name) operators::add_##name(set);
#include "engine/operators/all_operators.inl"
  return set;
}

}  // namespace tandem
