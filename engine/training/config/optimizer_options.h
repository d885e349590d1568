// Which optimizer kinds know which of their options; one table for reading, checking and writing.
#pragma once

#include <string_view>

#include "engine/training/config/run_config.h"

namespace tandem {

constexpr unsigned kinds(OptimizerKind kind) { return 1u << static_cast<unsigned>(kind); }
template <class... More>
constexpr unsigned kinds(OptimizerKind first, More... more) {
  return kinds(first) | kinds(more...);
}
inline constexpr unsigned sgd_kinds = kinds(OptimizerKind::sgd);
inline constexpr unsigned adam_kinds =
    kinds(OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::lazy_adam);
inline constexpr unsigned adagrad_kinds =
    kinds(OptimizerKind::adagrad, OptimizerKind::rowwise_adagrad);
inline constexpr unsigned ftrl_kinds = kinds(OptimizerKind::ftrl, OptimizerKind::group_ftrl);
inline constexpr unsigned lamb_kinds = kinds(OptimizerKind::lamb);
inline constexpr unsigned moment_kinds = adam_kinds | lamb_kinds;

struct OptionUse {
  std::string_view key;
  unsigned kinds;                              // that know it
  double OptimizerOptions::*number = nullptr;  // where it is one plain number
};

inline constexpr OptionUse option_uses[] = {
    {"weight_decay", sgd_kinds | moment_kinds | adagrad_kinds, &OptimizerOptions::weight_decay},
    {"momentum", sgd_kinds, &OptimizerOptions::momentum},
    {"dampening", sgd_kinds, &OptimizerOptions::dampening},
    {"nesterov", sgd_kinds},
    {"betas", moment_kinds},
    {"beta1", moment_kinds},
    {"beta2", moment_kinds},
    {"eps", moment_kinds | adagrad_kinds, &OptimizerOptions::eps},
    {"epsilon", moment_kinds | adagrad_kinds},
    {"epsilon_form", adam_kinds},
    {"bias_correction", moment_kinds},
    {"lr_decay", adagrad_kinds, &OptimizerOptions::lr_decay},
    {"initial_accumulator", adagrad_kinds | ftrl_kinds, &OptimizerOptions::initial_accumulator},
    {"l1", ftrl_kinds, &OptimizerOptions::l1},
    {"l2", ftrl_kinds, &OptimizerOptions::l2},
    {"beta", ftrl_kinds, &OptimizerOptions::beta},
    {"l2_shrinkage", ftrl_kinds, &OptimizerOptions::l2_shrinkage},
    {"lr_power", ftrl_kinds, &OptimizerOptions::lr_power},
    {"l21", kinds(OptimizerKind::group_ftrl), &OptimizerOptions::l21},
    {"dialect", ftrl_kinds},
    {"always_adapt", lamb_kinds},
    {"trust_clip", lamb_kinds, &OptimizerOptions::trust_clip},
};

constexpr bool knows(OptimizerKind kind, const OptionUse& use) {
  return (use.kinds & kinds(kind)) != 0;
}

}  // namespace tandem
