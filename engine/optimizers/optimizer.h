// The kinds of optimizers that users name, from the list of optimizers: their settings, and the
// update that these lead to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/attributes.h"
#include "engine/optimizers/options.h"
#include "engine/optimizers/settings.h"

namespace tandem {

/// The update that an optimizer's options lead to, with its settings. A table's gradient that comes
/// as rows stays rows where the kind is `lazy`, or it `takes_rows` and few occur. The rows without
/// ids then stay as they are where it is lazy, or where a gradient of zeros changes nothing
/// (UpdateKind::keeps_still); else they take the step of a gradient of zeros.
struct UpdateChoice {
  std::string op;  // a name from engine/operators/update_kind.h
  Attributes settings;
  std::vector<double> starts;  // start values of all states
  bool lazy = false;           // rows without a gradient stay as they are, by the kind's definition
  bool takes_rows = true;      // a gradient of few rows need not be made dense
  std::string rows_need;       // the options that takes_rows is about: "without momentum"
};

/// A setting that users write, and its default.
struct OptimizerSetting {
  SettingInfo info;
  OptimizerValue fallback;
};

struct OptimizerKind {
  std::string_view name;
  std::string_view source;
  double lr = 1e-3;  // by default
  std::vector<OptimizerSetting> settings;
  /// Settings that do not fit together.
  SettingsProblem (*problem)(const OptimizerValues& values) = nullptr;
  UpdateChoice (*choose)(const OptimizerValues& values) = nullptr;
  /// For parameters of fewer elements, another choice.
  std::int64_t least_elements = 0;
  UpdateChoice (*choose_small)(const OptimizerValues& values) = nullptr;
};

/// All of them, in the order of the list; addresses stay valid.
std::span<const OptimizerKind> all_optimizers();
/// Null where there is no such kind.
const OptimizerKind* find_optimizer(std::string_view name);

/// For a parameter with that many elements; of a shard: of its whole.
UpdateChoice choose_update(const OptimizerOptions& options, std::int64_t elements);
/// The kinds that update rows, and with which options: "sgd without momentum, adam, ...".
std::string kinds_of_rows();

}  // namespace tandem
