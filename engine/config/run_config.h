// All that train.toml says about a run, checked and resolved: plain values with every default
// filled in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/average_config.h"
#include "engine/config/data_config.h"
#include "engine/config/distillation_config.h"
#include "engine/config/loss_config.h"
#include "engine/config/model_config.h"
#include "engine/config/parameters_config.h"
#include "engine/config/report_config.h"
#include "engine/config/schedule_config.h"
#include "engine/graph/error.h"
#include "engine/graph/structures/out_of_line.h"
#include "engine/optimizers/options.h"

namespace tandem {

struct ConfigValue;

struct OptimizerGroup {
  COPIED_OUT_OF_LINE(OptimizerGroup);

  std::string at;                          // the last group that covers a parameter takes it
  OptimizerOptions options;                // resolved: the optimizer's own options, overridden
  std::optional<ScheduleConfig> schedule;  // unset: in proportion to the optimizer's
  /// Limit for the norm of these parameters' gradients together, separate from the others'.
  std::optional<double> clip_norm;
  std::optional<double> clip_value, clip_adaptive;  // unset: the optimizer's; 0: not clipped
  Where where;
  bool operator==(const OptimizerGroup&) const;
};
struct OptimizerConfig {
  COPIED_OUT_OF_LINE(OptimizerConfig);

  OptimizerOptions base;
  std::vector<OptimizerGroup> groups;
  ScheduleConfig schedule;
  std::optional<double> clip_norm, clip_value, clip_adaptive;
  double clip_adaptive_eps = 1e-3;
  double layer_decay = 1;  // see engine/train/updates/layer_decay.h
  std::optional<EmaConfig> ema;
  std::optional<SwaConfig> swa;
  std::optional<LookaheadConfig> lookahead;
  Where where;
  bool operator==(const OptimizerConfig&) const;
};
void visit(KeyVisitor& v, OptimizerConfig& c);

/// A batch size that the memory plan decides: who trains or plans sets the number before anything
/// is compiled (api/policy/batch_size.h).
struct BatchChoice {
  bool is_open = false;
  std::vector<std::int64_t> sizes;  // to choose from; empty: powers of two
  bool operator==(const BatchChoice&) const = default;
};

/// What a train.toml says.
struct RunKeys {
  COPIED_OUT_OF_LINE(RunKeys);

  ModelConfig model;
  std::string policy;           // absolute path, or ""
  std::string device = "auto";  // "auto" | "cpu" | "gpu"
  std::int64_t batch_size = 32;
  BatchChoice batch_choice;      // where it is open, batch_size is the default
  std::int64_t micro_batch = 0;  // 0 = batch_size; divides batch_size
  std::optional<double> epochs;
  std::optional<std::int64_t> steps;
  std::optional<double> max_seconds;
  std::uint64_t seed = 1;
  int threads = 0;      // 0 = all usable cores
  std::string name;     // for the run directory: runs/NAME-0001
  std::string run_dir;  // absolute; exactly this directory; "" = by name
  ParametersConfig parameters;
  LossConfig loss;
  DistillationConfig distillation;
  OptimizerConfig optimizer;
  PrecisionConfig precision;
  std::optional<DataConfig> data;  // unset where the file has no [data]
  EvalConfig eval;
  CheckpointConfig checkpoint;
  LogConfig log;

  /// Samples of one micro-batch.
  std::int64_t micro_batch_size() const { return micro_batch > 0 ? micro_batch : batch_size; }
  bool operator==(const RunKeys&) const;
};
struct RunConfig : RunKeys {
  std::string file;    // train.toml itself, absolute
  Where policy_where;  // place of the key that names the policy
  /// About values of the file that the command line has ruled out.
  std::vector<Diagnostic> notes;
  bool operator==(const RunConfig& other) const { return RunKeys::operator==(other); }
};
/// The whole file, in the order of the page of keys and of the resolved file.
void visit(KeyVisitor& v, RunConfig& c);

/// Reads a file, lays the overrides ("optimizer.lr=0.01", "optimizer.groups.0.lr=0.1") over it,
/// checks and resolves everything. Where an override makes a choice, options that the file has for
/// another one are left out and noted. Throws one Error{usage} with every diagnostic. Opens no
/// data.
RunConfig read_run_config(const std::string& path, const std::vector<std::string>& overrides = {});
/// Like read_run_config, but from text; `path` names it in messages and anchors its relative paths.
RunConfig parse_run_config(std::string_view text, const std::string& path,
                           const std::vector<std::string>& overrides = {});
/// Like parse_run_config, but from settings that a program has made.
RunConfig run_config_of(ConfigValue settings, const std::string& path,
                        const std::vector<std::string>& overrides = {});
/// Every key with its value, paths absolute: train.resolved.toml. Read again it gives an equal
/// RunConfig.
std::string to_toml(const RunConfig& config);

}  // namespace tandem
