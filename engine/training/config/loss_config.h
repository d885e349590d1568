// [loss] of train.toml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/training/config/config_types.h"
#include "engine/training/config/kinds/kind_options.h"

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
  std::string sample_weights;       // the data field; "" = all 1
  double weight = 1;                // factor of this term in the sum
  LossReduction reduction = LossReduction::mean;
  OptionMap options;
  Where where;
  bool operator==(const LossTerm&) const = default;

  /// The data fields that it reads; labels that are a value of the teacher are none.
  std::vector<std::string> fields() const;
  bool reads_value(std::string_view value) const;
  // Options by key. The first three have a default; the last two are empty where not set.
  double number(std::string_view option) const { return std::get<double>(option_of(option)); }
  bool flag(std::string_view option) const { return std::get<bool>(option_of(option)); }
  const std::string& text(std::string_view option) const {
    return std::get<std::string>(option_of(option));
  }
  std::optional<std::int64_t> integer(std::string_view option) const;
  std::vector<double> numbers(std::string_view option) const;

 private:
  const OptionValue& option_of(std::string_view option) const;
};
struct LossConfig {
  std::vector<LossTerm> terms;  // empty: the graph itself ends in a loss
  std::string output;           // which output is the loss, where the graph has several; else ""
  Where where;
  bool operator==(const LossConfig&) const = default;
};
void visit(KeyVisitor& v, LossConfig& c);

}  // namespace tandem
