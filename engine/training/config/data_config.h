// [data] of train.toml.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/types.h"
#include "engine/training/config/config_types.h"

namespace tandem {

enum class DataKind : std::uint8_t { idx, cifar, npz, csv, tsv };
template <>
inline constexpr std::string_view names_of<DataKind> = "idx|cifar|npz|csv|tsv";
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
template <>
inline constexpr std::string_view names_of<OutOfRange> = "error|zero";
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
template <>
inline constexpr std::string_view names_of<OnBad> = "error|skip";
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
void visit(KeyVisitor& v, DataConfig& c);

}  // namespace tandem
