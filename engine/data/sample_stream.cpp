#include "engine/data/sample_stream.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/data/cells/number_warnings.h"
#include "engine/data/cells/unknown_words.h"
#include "engine/data/encode_files.h"
#include "engine/data/prepare_table.h"
#include "engine/data/shown_problems.h"
#include "engine/data/table_file.h"
#include "engine/data/table_manifest.h"
#include "engine/formats/files.h"
#include "engine/formats/text_stream.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

[[noreturn]] void refuse_rows(std::vector<Diagnostic> problems) {
  tell_end_of_reading(problems);
  if (problems[0].fix.empty()) problems[0].fix = "data.on_bad = \"skip\" leaves such rows out";
  throw Error(ErrorKind::data, std::move(problems));
}

void check_not_empty(std::int64_t samples, const std::vector<std::string>& paths,
                     const std::string& first_bad) {
  if (samples > 0) return;
  Diagnostic d{.message = "there are no samples", .file = shown_path(paths.at(0))};
  if (!first_bad.empty()) d.fix = "the first bad row: " + first_bad;
  throw Error(ErrorKind::data, std::move(d));
}

/// Warnings about columns that are not as in training.
std::vector<std::string> column_warnings(const TableRequest& request,
                                         const std::vector<std::vector<ColumnStatistics>>& fields) {
  std::vector<std::string> all =
      unknown_warnings(unknown_words(request.plan, fields, request.vocabularies));
  for (const auto& found : {far_numbers(request.plan, fields), mixed_dates(request.plan, fields)})
    all.insert(all.end(), found.begin(), found.end());
  return all;
}

class WholeStream final : public SampleStream {
 public:
  WholeStream(std::shared_ptr<const DataSource> source, std::function<IdTexts(std::int64_t)> id_of)
      : source_(std::move(source)), id_of_(std::move(id_of)) {}

  std::optional<SampleRange> next(std::int64_t most) override {
    SampleRange range{source_, at_, std::min(most, source_->samples() - at_), {}};
    if (range.count <= 0) return std::nullopt;
    range.rows.resize(static_cast<std::size_t>(range.count));
    std::iota(range.rows.begin(), range.rows.end(), at_);
    for (std::int64_t i = 0; id_of_ && i < range.count; ++i) ids_.push_back(id_of_(at_ + i));
    at_ += range.count;
    return range;
  }
  std::int64_t rows() const override { return at_; }
  std::vector<IdTexts> take_ids() override { return std::exchange(ids_, {}); }
  double part_read() const override {
    return static_cast<double>(at_) / static_cast<double>(source_->samples());
  }

 private:
  std::shared_ptr<const DataSource> source_;
  std::function<IdTexts(std::int64_t)> id_of_;
  std::vector<IdTexts> ids_;  // that were not taken
  std::int64_t at_ = 0;
};

/// Rows that were taken, as arrays; they may come from several files.
class RangeBuilder {
 public:
  explicit RangeBuilder(const TablePlan& plan) : plan_(plan) {
    for (const TableField& field : plan.fields) arrays_.emplace_back(field.name, field.stored);
  }

  void add(RowEncoder& encoder, const std::string& file) {
    if (encoder.rows() == 0) return;
    const auto rows = static_cast<std::int64_t>(encoder.rows());
    HostTensor lines(TensorType{DType::uint32, {rows}});
    std::memcpy(lines.data(), encoder.lines().data(), lines.bytes());
    for (std::size_t f = 0; f < arrays_.size(); ++f) {
      TensorType type = plan_.fields[f].stored;
      type.shape.insert(type.shape.begin(), rows);
      HostTensor values(type);
      if (values.bytes() > 0) std::memcpy(values.data(), encoder.field(f), values.bytes());
      arrays_[f].append(std::move(values), file, lines);
    }
    count_ += rows;
    encoder.clear();
  }
  std::int64_t count() const { return count_; }

  std::shared_ptr<const DataSource> finish(const TableRequest& request) {
    auto set = std::make_shared<ArraySet>();
    for (ArrayRows& array : arrays_) set->add(std::move(array));
    std::vector<Diagnostic> errors;
    set->finish(errors);
    if (!errors.empty()) throw Error(ErrorKind::data, std::move(errors));
    PreparedTable table;
    table.plan = plan_;
    return source_of_arrays(std::move(set), array_fields(table, request.config.fields),
                            request.options);
  }

 private:
  const TablePlan& plan_;
  std::vector<ArrayRows> arrays_;
  std::int64_t count_ = 0;
};

class TableStream final : public SampleStream {
 public:
  explicit TableStream(TableRequest request) : request_(std::move(request)) {
    for (const std::string& path : request_.paths) {
      const bool is_known = path != "-" && path_exists(path);
      bytes_ += is_known ? static_cast<double>(file_size(path)) : unknown;
    }
  }

  std::optional<SampleRange> next(std::int64_t most) override {
    if (!encoder_) {
      capacity_ = most;
      encoder_.emplace(request_.plan, static_cast<std::size_t>(most), &request_.vocabularies,
                       counts_);
    }
    assert(most == capacity_);
    RangeBuilder range(request_.plan);
    SampleRange result;
    std::vector<Diagnostic> problems;
    while (result.count < most && problems.size() < shown_problems && to_row(range)) {
      const std::int64_t row = rows_++;
      std::optional<Diagnostic> problem = file_->take(*encoder_);
      if (!request_.ids.empty()) add_ids();
      if (problem) {
        if (++left_out_ == 1) first_bad_ = to_string(*problem);
        if (request_.config.table()->on_bad == OnBad::error)
          problems.push_back(*std::move(problem));
        continue;
      }
      result.rows.push_back(row);
      ++result.count;
    }
    if (file_) range.add(*encoder_, file_->name());
    if (!problems.empty()) refuse_rows(std::move(problems));
    if (result.count == 0) {
      check_not_empty(rows_ - left_out_, request_.paths, first_bad_);
      return std::nullopt;
    }
    result.source = range.finish(request_);
    return result;
  }

  std::int64_t rows() const override { return rows_; }
  std::int64_t left_out() const override { return left_out_; }
  std::string first_bad() const override { return first_bad_; }
  std::vector<std::string> warnings() const override {
    return encoder_ ? column_warnings(request_, counts_.fields) : std::vector<std::string>();
  }
  std::vector<IdTexts> take_ids() override { return std::exchange(ids_, {}); }
  double part_read() const override {
    const double read = read_ + (file_ ? static_cast<double>(file_->taken()) : 0);
    return bytes_ > 0 && std::isfinite(bytes_) ? read / bytes_ : -1;
  }

 private:
  static constexpr double unknown = std::numeric_limits<double>::infinity();

  /// Goes to the next row, through files that end; the rows of those go into `range`.
  bool to_row(RangeBuilder& range) {
    while (true) {
      if (file_ && file_->next()) return true;
      if (file_) {
        range.add(*encoder_, file_->name());
        read_ += static_cast<double>(file_->taken());
        file_.reset();
      }
      if (next_ == request_.paths.size()) return false;
      file_.emplace(request_.config, request_.plan, request_.paths[next_++], request_.may_lack);
      for (const std::string& id : request_.ids) expect_column(id);
    }
  }

  void expect_column(const std::string& id) const {
    const std::vector<std::string>& columns = file_->columns();
    if (std::find(columns.begin(), columns.end(), id) != columns.end()) return;
    throw Error(ErrorKind::usage, Diagnostic{.message = "there is no such column for --id",
                                             .file = file_->name(),
                                             .expected = joined(columns),
                                             .got = id,
                                             .fix = did_you_mean(nearest_name(id, columns))});
  }
  void add_ids() {
    IdTexts& texts = ids_.emplace_back();
    for (const std::string& id : request_.ids) texts.emplace_back(file_->cell(id));
  }

  TableRequest request_;
  std::optional<TableFile> file_;
  std::size_t next_ = 0;  // index of the next path
  std::optional<RowEncoder> encoder_;
  std::int64_t capacity_ = 0;
  EncodedFile counts_;
  double bytes_ = 0, read_ = 0;  // bytes of all files, and of those that have ended
  std::int64_t rows_ = 0, left_out_ = 0;
  std::string first_bad_;
  std::vector<IdTexts> ids_;  // that were not taken
};

}  // namespace

std::unique_ptr<SampleStream> stream_samples(std::shared_ptr<const DataSource> source,
                                             std::function<IdTexts(std::int64_t)> id_of) {
  return std::make_unique<WholeStream>(std::move(source), std::move(id_of));
}

std::unique_ptr<SampleStream> stream_table(TableRequest request) {
  return std::make_unique<TableStream>(std::move(request));
}

std::shared_ptr<const DataSource> encode_tables(const TableRequest& request,
                                                const std::string& folder,
                                                std::vector<std::string>* warnings) {
  PreparedTable table;
  table.folder = folder;
  table.plan = request.plan;
  const std::vector<std::string>& paths = request.paths;
  EncodeFilesOptions encode;
  for (std::size_t i = 0; i < paths.size(); ++i)
    encode.prefixes.push_back(table_prefix(folder, true, i));
  encode.vocabularies = &request.vocabularies;
  encode.threads = request.options.threads;
  encode.on_read = request.on_read;
  EncodedFiles encoded = encode_files(request.config, request.plan, paths, encode);
  std::vector<Diagnostic> problems;
  for (const TableField& field : request.plan.fields)
    table.eval.fields.emplace_back(field.columns.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    EncodedFile& file = encoded.files[i];
    if (encoded.failures[i]) std::rethrow_exception(encoded.failures[i]);
    table.eval.files.push_back({shown_path(paths[i]), file.rows, file.bad, ""});
    for (std::size_t f = 0; f < file.fields.size(); ++f) {
      for (std::size_t c = 0; c < file.fields[f].size(); ++c)
        table.eval.fields[f][c].add(file.fields[f][c]);
    }
    problems.insert(problems.end(), file.problems.begin(), file.problems.end());
  }
  if (!problems.empty() && request.config.table()->on_bad == OnBad::error)
    refuse_rows(std::move(problems));
  if (warnings != nullptr) {
    *warnings = column_warnings(request, table.eval.fields);
  }
  const std::string first_bad = problems.empty() ? "" : to_string(problems[0]);
  check_not_empty(table.eval.rows(), paths, first_bad);
  const std::int64_t left_out = table.eval.bad(), rows = table.eval.rows() + left_out;
  if (warnings != nullptr && are_many_left_out(left_out, rows)) {
    warnings->insert(warnings->begin(), left_out_text(left_out, rows, first_bad));
  } else if (left_out > 0 && request.options.on_message) {
    request.options.on_message("data       " + left_out_text(left_out, rows, first_bad));
  }
  return source_of_arrays(open_prepared(table, true), array_fields(table, request.config.fields),
                          request.options);
}

}  // namespace tandem
