// [parameters] of train.toml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/init_config.h"
#include "engine/graph/structures/out_of_line.h"
#include "engine/passes/fine_tuning_rules.h"

namespace tandem {

struct FreezeRule {
  std::string at;
  std::optional<Duration> until;  // unset: for the whole run
  std::optional<Duration> from;   // trains before, and no more after; without `until`
  Where where;
  bool operator==(const FreezeRule&) const = default;
};
/// "fc1 until 1.5 epochs"
std::string to_string(const FreezeRule& rule);

/// An old and a new pattern of names, see engine/formats/weights/name_rules.h.
using RenamePair = std::pair<std::string, std::string>;

struct LoadRule {
  std::string from;  // absolute path; engine/formats/weights has the formats
  std::string at = "**";
  // What the file's names become, in this order.
  std::string strip;
  std::vector<RenamePair> rename;
  std::string add;
  std::string transpose;             // matrices that the file has the other way round; "": none
  bool missing_is_error = true;      // missing = "error" | "keep"
  bool unexpected_is_error = true;   // unexpected = "error" | "ignore"
  bool other_shape_is_error = true;  // other_shape = "error" | "keep"
  Where where;
  bool operator==(const LoadRule&) const = default;
};

/// Axis 0 of a table that the file holds a placeholder of.
struct ShapeRule {
  std::string at;
  std::int64_t rows = 0;   // as written, or
  std::string vocabulary;  // the field whose vocabulary has a row each: "vocabulary(FIELD)"
  Where where;
  bool operator==(const ShapeRule&) const = default;
};

/// How the values of a parameter are kept between steps.
enum class StorageKind : std::uint8_t {
  float32,
  split_bfloat16,  // float32 as a bfloat16, which lookups read, and 16 bits more for the update
  // Matrices that do not train (engine/operators/packed/pack.h):
  float16,
  bfloat16,
  int8,
  int4,
  nf4,
};
template <>
inline constexpr std::string_view names_of<StorageKind> =
    "float32|split_bfloat16|float16|bfloat16|int8|int4|nf4";
/// The last rule that covers a parameter wins.
struct StorageRule {
  std::string at;
  StorageKind kind = StorageKind::float32;
  std::int64_t block = 0;  // neighbours in a row that share a scale; 0: the kind's own number
  Where where;
  bool operator==(const StorageRule&) const = default;
};

/// Rows that keep the values that they start with.
struct FixedRowsRule {
  std::string at;
  std::vector<std::int64_t> rows;  // from 0
  Where where;
  bool operator==(const FixedRowsRule&) const = default;
};

struct ParametersConfig {
  COPIED_OUT_OF_LINE(ParametersConfig);

  std::vector<FreezeRule> freeze;
  std::vector<LoadRule> load;
  std::vector<ShapeRule> shape;
  std::vector<InitRule> init;
  std::vector<StorageRule> storage;
  std::vector<FixedRowsRule> fixed_rows;
  std::vector<LayerRule> head;
  std::vector<AdapterRule> lora;
  std::vector<TrainRule> train;
  bool operator==(const ParametersConfig&) const;
};
void visit(KeyVisitor& v, ParametersConfig& c);

/// Whether a rule of `storage` packs parameters that do not train.
bool packs(const StorageRule& rule);

}  // namespace tandem
