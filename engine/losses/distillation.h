// The options of the loss `distillation`.
#pragma once

#include "engine/config/keys/key_visitor.h"
#include "engine/config/kinds/kind_options.h"

namespace tandem {

struct DistillationOptions final : KindOptions {
  double temperature = 2;
  std::int64_t axis = -1;
  void visit(KeyVisitor& v) override {
    v.key("temperature", temperature, between(1e-3, 1e6),
          "number by which both logits are divided");
    v.key("axis", axis, between(-8, 7), "axis of the classes");
  }
};

}  // namespace tandem
