// [loss] of train.toml.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/keys/config_types.h"
#include "engine/config/kinds/kind_options.h"

namespace tandem {

struct LossKind;  // engine/losses/loss.h
enum class LossReduction : std::uint8_t {
  mean,       // over all losses; where they have weights, divided by the sum of these
  sum,        //
  batchmean,  // the sum, divided by the number of samples
};
template <>
inline constexpr std::string_view names_of<LossReduction> = "mean|sum|batchmean";
struct LossTerm {
  std::string name;
  const LossKind* kind = nullptr;   // one of all_losses()
  std::vector<std::string> values;  // graph values, in the order of kind->values
  std::string labels;               // the data field, under kind->labels.key; "" where it has none
  std::vector<std::string> other_fields;  // in the order of kind->fields; "": not named
  std::string sample_weights;             // the data field; "" = all 1
  double weight = 1;                      // factor of this term in the sum
  LossReduction reduction = LossReduction::mean;
  AnyOptions options;  // as kind->options
  Where where;
  bool operator==(const LossTerm&) const = default;

  /// The data fields that it reads; labels that are a value of the teacher are none.
  std::vector<std::string> fields() const;
  bool reads_value(std::string_view value) const;
};
struct LossConfig {
  std::vector<LossTerm> terms;  // empty: the graph itself ends in a loss
  std::string output;           // which output is the loss, where the graph has several; else ""
  Where where;
  bool operator==(const LossConfig&) const = default;

  /// Whether the loss of a sample depends on the other samples of its batch.
  bool compares_samples() const;
};
void visit(KeyVisitor& v, LossConfig& c);

}  // namespace tandem
