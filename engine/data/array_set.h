// Arrays whose axis 0 counts samples, gathered from one file or several.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/error.h"
#include "engine/graph/host_tensor.h"

namespace tandem {

/// Rows that are not stored: each is made when it is read. Any number of threads may ask.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  virtual std::int64_t rows() const = 0;
  /// Writes a row of the array. Throws Error{data} with its file.
  virtual void make(std::int64_t index, void* to) const = 0;
  /// Row `index` before it is given the array's shape, in a buffer of the calling thread that is
  /// valid until it makes another row; `type` becomes its own. Null where rows have one shape.
  virtual const void* make_whole(std::int64_t index, TensorType& type) const = 0;
  /// Whether that may throw.
  virtual bool may_refuse() const { return false; }
  virtual std::string file(std::int64_t index) const = 0;
  /// Which row of that file it is, from 1; 0 where the file is the row.
  virtual std::int64_t row_in_file(std::int64_t) const { return 0; }
};

/// One array; its rows may come from several files.
class ArrayRows {
 public:
  ArrayRows(std::string name, TensorType sample)
      : name_(std::move(name)), sample_(std::move(sample)), row_bytes_(sample_.bytes()) {}
  ArrayRows(std::string name, TensorType sample, std::shared_ptr<const RowMaker> maker)
      : ArrayRows(std::move(name), std::move(sample)) {
    rows_ = maker->rows();
    maker_ = std::move(maker);
  }

  /// `lines`: uint32, where in the file each row is; empty: they count from 1.
  void append(HostTensor rows, std::string file, HostTensor lines = {});

  const std::string& name() const { return name_; }
  const TensorType& sample() const { return sample_; }
  std::int64_t rows() const { return rows_; }
  /// Null where rows lie in memory.
  const RowMaker* maker() const { return maker_.get(); }
  /// A made row is in a buffer of the calling thread, which is valid until it asks for another row.
  const std::uint8_t* row(std::int64_t index) const;
  /// The file and the row or line in it, from 1; 0 where the file is the row.
  std::pair<std::string, std::int64_t> place(std::int64_t index) const;
  /// The least and the greatest value, where they are known.
  std::optional<std::pair<double, double>> range;

 private:
  struct Segment {
    HostTensor data;
    const std::uint8_t* start;
    HostTensor lines;
    std::string file;
    std::int64_t first, end;  // rows
  };
  const Segment& segment(std::int64_t index) const;

  std::string name_;
  TensorType sample_;
  std::size_t row_bytes_;
  std::vector<Segment> segments_;
  std::shared_ptr<const RowMaker> maker_;
  std::int64_t rows_ = 0;
};

class ArraySet {
 public:
  /// Appends rows to the array of that name; reports what does not fit.
  void add(const std::string& name, const HostTensor& tensor, const std::string& file,
           std::vector<Diagnostic>& errors);
  ArrayRows& add(ArrayRows array) { return arrays_.emplace_back(std::move(array)); }
  /// The files have an array of that name, which was not read.
  void leave_out(const std::string& name) { left_out_.insert(name); }
  /// Reports arrays of different lengths and empty sets.
  void finish(std::vector<Diagnostic>& errors);

  const ArrayRows* find(std::string_view name) const;
  const std::vector<ArrayRows>& arrays() const { return arrays_; }
  /// Names of all arrays, including those that were left out.
  std::vector<std::string> names() const;
  std::int64_t rows() const { return rows_; }

 private:
  std::vector<ArrayRows> arrays_;
  std::set<std::string> left_out_;
  std::int64_t rows_ = 0;
};

/// What to do about a file that is not there, or "".
std::string fix_of_missing(const std::string& path);
/// Names of arrays; none: all of them.
using ArrayNames = std::optional<std::set<std::string>>;
/// Reads the arrays of these names from the files of a split; the others are not looked at. Null
/// where something was reported. Throws Error{does_not_fit} where they take more memory than there
/// is.
std::shared_ptr<const ArraySet> read_arrays(const DataKind& kind, const SplitConfig& split,
                                            const ArrayNames& names,
                                            std::vector<Diagnostic>& errors);

}  // namespace tandem
