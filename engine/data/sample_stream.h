// Samples in the order of files that may be larger than the memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/data/table_plan.h"

namespace tandem {

/// Samples `first` to `first + count - 1` of a source.
struct SampleRange {
  std::shared_ptr<const DataSource> source;
  std::int64_t first = 0, count = 0;
  /// The row of the input that each sample is, from 0, where rows that were left out count.
  std::vector<std::int64_t> rows;
};

/// Texts that identify a row, in the order in which ids were asked for.
using IdTexts = std::vector<std::string>;

class SampleStream {
 public:
  virtual ~SampleStream() = default;

  /// The next samples, `most` of them but for the last time; nothing at the end. Throws Error{data}
  /// with file:line:column of the first bad rows where they are not to be left out.
  virtual std::optional<SampleRange> next(std::int64_t most) = 0;

  /// So far: all rows, and those of them that were left out, with what is wrong with the first.
  virtual std::int64_t rows() const = 0;
  virtual std::int64_t left_out() const { return 0; }
  virtual std::string first_bad() const { return ""; }
  /// Warnings about the words of all rows so far.
  virtual std::vector<std::string> warnings() const { return {}; }
  /// For each row that was read since the last call, bad ones too: a text for each id that was
  /// asked for.
  virtual std::vector<IdTexts> take_ids() { return {}; }
  /// The part of the input that was read, 0 to 1; negative where its length is not known.
  virtual double part_read() const = 0;
};

/// All samples of a source. `id_of` gives the ids of a sample; none: they are not needed.
std::unique_ptr<SampleStream> stream_samples(
    std::shared_ptr<const DataSource> source,
    std::function<IdTexts(std::int64_t sample)> id_of = {});

/// Rows of text tables, encoded with existing vocabularies.
struct TableRequest {
  DataConfig config;                     // its fields: those that are wanted; on_bad
  std::vector<std::string> paths;        // "-": standard input
  TablePlan plan;                        // plan of these fields
  std::vector<Vocabulary> vocabularies;  // by their number in the plan
  std::vector<char> may_lack;            // as TableFile takes it; only for streams
  OpenOptions options;
  std::vector<std::string> ids = {};  // only for streams: columns whose cells identify a row
  /// Only for `encode_tables`: gets the number of bytes read, from any thread; may throw.
  std::function<void(std::uint64_t)> on_read;
};

/// Holds the rows of one range at a time.
std::unique_ptr<SampleStream> stream_table(TableRequest request);

/// All rows, for sources that are read in any order: arrays in `folder`, which may be removed once
/// this returns. `on_message` of the options reports rows that were left out. `warnings` gets
/// warnings about words.
std::shared_ptr<const DataSource> encode_tables(const TableRequest& request,
                                                const std::string& folder,
                                                std::vector<std::string>* warnings = nullptr);

}  // namespace tandem
