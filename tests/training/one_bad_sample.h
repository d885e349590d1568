// A data source in which one sample cannot be read.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/data/data_source.h"

namespace tandem::testing {

/// Samples, one of which cannot be read.
class OneBadSample final : public DataSource {
 public:
  OneBadSample(std::shared_ptr<const DataSource> source, std::int64_t bad)
      : source_(std::move(source)), bad_(bad) {}

  const std::vector<DataField>& fields() const override { return source_->fields(); }
  std::int64_t samples() const override { return source_->samples(); }
  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    if (std::find(samples.begin(), samples.end(), bad_) != samples.end())
      throw Error(ErrorKind::data, Diagnostic{.message = "cannot be read"});
    source_->fill(field, samples, augmentation, to);
  }
  std::string describe(int, std::int64_t) const override { return ""; }
  void check_range(int, std::int64_t, const std::int64_t*) const override {}
  void check_numbers(int, double, double, const std::string&) const override {}

 private:
  std::shared_ptr<const DataSource> source_;
  std::int64_t bad_;
};

}  // namespace tandem::testing
