// All that train.toml says of a run, checked and resolved: plain values with every default filled
// in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/graph/types.h"
#include "engine/optimizers/options.h"

namespace tandem {

/// Where a value was written; for messages only, so positions never make two configurations differ.
struct Where {
  std::string file;  // or "command line"
  int line = 0;
  int column = 0;
  bool operator==(const Where&) const { return true; }
};

/// "500 steps", "1 epoch", "30 min".
struct Duration {
  enum class Unit : std::uint8_t { steps, epochs, seconds };
  double value = 0;
  Unit unit = Unit::steps;

  bool operator==(const Duration&) const = default;
  /// In optimizer steps, at least 1 (rounded to nearest); a time has no steps: 0.
  std::int64_t steps(std::int64_t steps_per_epoch) const;
};
std::string to_string(const Duration& duration);

struct ModelConfig {
  std::string file;                          // absolute
  std::map<std::string, std::int64_t> bind;  // free dimensions by name
  bool train_batch_norm = true;              // batch_norm = "train" | "inference"
  Where where;
  bool operator==(const ModelConfig&) const = default;
};

struct FreezeRule {
  std::string at;
  std::optional<Duration> until;  // unset: for the whole run
  Where where;
  bool operator==(const FreezeRule&) const = default;
};
/// "fc1 until 1.5 epochs"
std::string to_string(const FreezeRule& rule);

struct PrecisionConfig {
  DType compute = DType::float32;       // of products and convolutions: or bfloat16, float16
  bool tf32 = false;                    // float32 ones of cards in 10 bits of mantissa
  std::optional<double> loss_scale;     // of float16; unset: dynamic
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

struct LoadRule {
  std::string from;  // absolute path of a .safetensors or .npz file
  std::string at = "**";
  bool missing_is_error = true;  // missing = "error" | "keep"
  Where where;
  bool operator==(const LoadRule&) const = default;
};

enum class InitKind : std::uint8_t {
  zeros,
  ones,
  constant,
  normal,
  uniform,
  kaiming_uniform,
  kaiming_normal,
  xavier_uniform,
  xavier_normal,
};
struct InitRule {
  std::string at;
  InitKind kind = InitKind::normal;
  double mean = 0, std = 1;  // normal
  double low = 0, high = 1;  // uniform
  double value = 0;          // constant
  Where where;
  bool operator==(const InitRule&) const = default;
};

/// Axis 0 of a table that the file holds a placeholder of.
struct ShapeRule {
  std::string at;
  std::int64_t rows = 0;   // as written, or
  std::string vocabulary;  // the field whose vocabulary has a row each: "vocabulary(FIELD)"
  Where where;
  bool operator==(const ShapeRule&) const = default;
};

/// How the values of tables are kept between steps.
enum class StorageKind : std::uint8_t {
  float32,
  split_bfloat16,  // float32 as a bfloat16, which look-ups read, and 16 bits more for the update
};
/// The last rule that covers a parameter wins.
struct StorageRule {
  std::string at;
  StorageKind kind = StorageKind::float32;
  Where where;
  bool operator==(const StorageRule&) const = default;
};

struct ParametersConfig {
  std::vector<FreezeRule> freeze;
  std::vector<LoadRule> load;
  std::vector<ShapeRule> shape;
  std::vector<InitRule> init;
  std::vector<StorageRule> storage;
  bool operator==(const ParametersConfig&) const = default;
};

struct LossKind;  // engine/losses/loss.h
enum class Reduction : std::uint8_t {
  mean,       // over all losses; where they have weights, divided by the sum of these
  sum,        //
  batchmean,  // the sum, divided by the number of samples
};
/// An option that some kinds of loss have.
using LossOption = std::variant<std::int64_t, double, bool, std::string, std::vector<double>>;
struct LossTerm {
  std::string name;
  const LossKind* kind = nullptr;   // one of all_losses()
  std::vector<std::string> values;  // of the graph, in the order of kind->values
  std::string labels;               // the data field, under kind->labels.key; "" where it has none
  std::string sample_weights;       // the data field; "" = all 1
  double weight = 1;                // of this term in the sum
  Reduction reduction = Reduction::mean;
  std::map<std::string, LossOption, std::less<>> options;  // those set, and those with a default
  Where where;
  bool operator==(const LossTerm&) const = default;

  /// The data fields that it reads.
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
  const LossOption& option_of(std::string_view option) const;
};
struct LossConfig {
  std::vector<LossTerm> terms;  // empty: the graph itself ends in a loss
  std::string output;           // which output is the loss, where the graph has several; else ""
  Where where;
  bool operator==(const LossConfig&) const = default;
};

struct OptimizerGroup {
  std::string at;            // the last group that covers a parameter takes it
  OptimizerOptions options;  // resolved: the optimizer's own options, overridden
  Where where;
  bool operator==(const OptimizerGroup&) const = default;
};
enum class ScheduleKind : std::uint8_t { constant, cosine, step, linear };
/// Of the base learning rate; groups follow in proportion.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::constant;
  std::optional<Duration> warmup;     // linear from 0
  double final = 0;                   // cosine, linear: the learning rate at the end of the run
  std::optional<Duration> step_size;  // step: times gamma after every step_size
  double gamma = 0.1;
  bool operator==(const ScheduleConfig&) const = default;
};
struct OptimizerConfig {
  OptimizerOptions base;
  std::vector<OptimizerGroup> groups;
  ScheduleConfig schedule;
  std::optional<double> clip_norm;
  Where where;
  bool operator==(const OptimizerConfig&) const = default;
};

enum class DataKind : std::uint8_t { idx, cifar, npz, csv, tsv };
/// Text tables: fields are made of columns.
inline bool is_table(DataKind kind) { return kind == DataKind::csv || kind == DataKind::tsv; }
struct ShuffleConfig {
  enum class Kind : std::uint8_t { none, full, buffer };
  Kind kind = Kind::full;
  std::int64_t buffer = 0;  // samples
  bool operator==(const ShuffleConfig&) const = default;
};

/// One function of a field's `as` or `augment`; it sees one sample, without the batch axis.
enum class TransformKind : std::uint8_t {
  scale,        // x * factor, float32
  normalize,    // (x - mean) / std, float32; one number, or one per index of axis 0
  cast,         // to dtype
  flatten,      // one axis
  reshape,      // to shape (one extent may be -1)
  one_hot,      // integer -> float32 with a new last axis of `classes`
  resize,       // the last two axes to height x width, bilinear (half-pixel centres)
  random_crop,  // the last two axes, after zero padding on all four sides
  random_flip,  // the last axis, with probability 1/2
  log1p,        // log(1 + max(x, 0)), float32
  bucketize,    // how many of the bounds are <= x, int64
  // Of the text in a column:
  missing,     // what stands for an empty field
  split,       // several values in one field: a new last axis, filled up with `pad`
  hash,        // of (column, value), modulo `count`
  vocabulary,  // the number of (column, value), or of the value, in the training data
};
struct Transform {
  TransformKind kind = TransformKind::scale;
  double factor = 1;
  std::vector<double> mean, std;
  DType dtype = DType::float32;
  Shape shape;
  std::int64_t classes = 0;
  std::int64_t height = 0, width = 0, padding = 0;
  std::vector<double> bounds;  // bucketize, rising
  std::string word;            // missing: the text; split: the separator; vocabulary: its name
  std::int64_t count = 0;      // split: most values; hash: modulus; vocabulary: least count
  std::int64_t pad = 0;        // split: the id of places without a value
  bool by_value = false;       // vocabulary: one id for a value in all columns
  std::string text;            // as written
  Where where;
  bool operator==(const Transform&) const = default;
};

enum class OutOfRange : std::uint8_t { error, zero };
struct FieldConfig {
  std::string name;
  std::string from;  // the array of the data files; of a table the column, or "" where `stacked`
  std::vector<std::string> columns = {};  // of a table, at least one, in order
  bool stacked = false;                   // the columns make an axis
  std::vector<Transform> as;              // in order
  std::vector<Transform>
      augment;  // training only; act after the reshape and resize that `as` starts with
  OutOfRange out_of_range = OutOfRange::error;  // of ids that go straight into a look-up
  Where where;
  bool operator==(const FieldConfig&) const = default;
};

/// One entry per array, its name and its files, where `files` is a table (always for idx; never for
/// cifar); else one entry with an empty name, for files that name their arrays themselves.
struct ArrayFiles {
  std::string name;
  std::vector<std::string> paths;  // absolute
  Where where;
  bool operator==(const ArrayFiles&) const = default;
};
struct SplitConfig {
  std::vector<ArrayFiles> files;
  bool operator==(const SplitConfig&) const = default;
};
enum class OnBad : std::uint8_t { error, skip };
struct DataConfig {
  DataKind kind = DataKind::npz;
  std::vector<std::string> columns;  // of a table; empty: the header names them
  bool header = false;               // the first row names the columns
  OnBad on_bad = OnBad::error;       // rows of a table that cannot be read
  std::string cache;                 // absolute: where prepared tables lie
  SplitConfig train, eval;
  double eval_fraction = 0;         // > 0: that part of train is held out instead of eval files
  ShuffleConfig shuffle;            // of train
  std::vector<FieldConfig> fields;  // empty: every array, under its own name
  int workers = 1;                  // loader threads
  bool drop_last = false;
  Where where;
  bool operator==(const DataConfig&) const = default;
};

struct EvalConfig {
  std::optional<Duration> every;     // unset: after the last step only
  std::vector<std::string> metrics;  // names of metric_kinds (engine/training/metrics.h)
  std::string best;                  // one of the metrics, or ""
  std::int64_t patience = 0;         // evaluations without a better `best`; 0 = never stop
  bool operator==(const EvalConfig&) const = default;
};
struct CheckpointConfig {
  Duration every{1800, Duration::Unit::seconds};
  std::int64_t keep = 3;          // besides the best one; 0 = all
  std::int64_t shard_mib = 1024;  // larger tensors go into files of about this many MiB
  bool operator==(const CheckpointConfig&) const = default;
};
struct LogConfig {
  Duration every{100, Duration::Unit::steps};
  bool operator==(const LogConfig&) const = default;
};

struct RunConfig {
  std::string file;  // train.toml itself, absolute
  ModelConfig model;
  std::string policy;           // absolute path, or ""
  std::string device = "auto";  // "auto" | "cpu" | "gpu"
  std::int64_t batch_size = 32;
  std::int64_t micro_batch = 0;  // 0 = batch_size; divides batch_size
  std::optional<double> epochs;
  std::optional<std::int64_t> steps;
  std::optional<double> max_seconds;
  std::uint64_t seed = 1;
  int threads = 0;      // 0 = all usable cores
  std::string name;     // of the run directory: runs/NAME-0001
  std::string run_dir;  // absolute; exactly this directory; "" = by name
  ParametersConfig parameters;
  LossConfig loss;
  OptimizerConfig optimizer;
  PrecisionConfig precision;
  std::optional<DataConfig> data;  // unset where the file has no [data]
  EvalConfig eval;
  CheckpointConfig checkpoint;
  LogConfig log;

  /// Samples in one pass of the graph.
  std::int64_t pass_size() const { return micro_batch > 0 ? micro_batch : batch_size; }
  /// `file` and positions aside.
  bool operator==(const RunConfig& other) const;
};

/// Reads a file, lays the overrides ("optimizer.lr=0.01", "optimizer.groups.0.lr=0.1") over it,
/// checks and resolves everything. Throws one Error{usage} with every diagnostic. Opens no data.
RunConfig read_run_config(const std::string& path, const std::vector<std::string>& overrides = {});
/// The same from text; `path` names it in messages and anchors its relative paths.
RunConfig parse_run_config(std::string_view text, const std::string& path,
                           const std::vector<std::string>& overrides = {});
/// Every key with its value, paths absolute: train.resolved.toml. Read again it gives an equal
/// RunConfig.
std::string to_toml(const RunConfig& config);

}  // namespace tandem
