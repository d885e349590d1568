// [model] and [precision] of train.toml.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/keys/config_types.h"
#include "engine/graph/types.h"

namespace tandem {

/// What the operators do that a selector covers; the last rule that covers one counts.
struct ModeRule {
  std::string at = "**";
  std::string mode;
  Where where;
  bool operator==(const ModeRule&) const = default;
};

struct ModelConfig {
  std::string file;                          // absolute
  std::map<std::string, std::int64_t> bind;  // free dimensions, inputs of one value
  std::vector<ModeRule> batch_norm;          // "train" (without a rule), "inference", "file"
  std::vector<ModeRule> random;              // "known" (without a rule), "train", "always"
  bool sync_batch_norm = false;              // statistics over the samples of all ranks
  Where where;
  bool operator==(const ModelConfig&) const = default;
};
void visit(KeyVisitor& v, ModelConfig& c);

struct PrecisionConfig {
  DType compute = DType::float32;       // for products and convolutions: or bfloat16, float16
  bool tf32 = false;                    // float32 products of GPUs use 10 bits of mantissa
  std::optional<double> loss_scale;     // for float16; unset: dynamic
  std::int64_t growth_interval = 2000;  // good steps until a dynamic scale doubles
  struct Kept {
    std::string at;  // operators that stay float32
    Where where;
    bool operator==(const Kept&) const = default;
  };
  std::vector<Kept> keep_float32;
  bool scales_loss() const { return compute == DType::float16; }
  bool operator==(const PrecisionConfig&) const = default;
};
void visit(KeyVisitor& v, PrecisionConfig& c);

}  // namespace tandem
