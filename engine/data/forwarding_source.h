// A source that wraps another one and forwards every call that a derived class does not override.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/data_source.h"

namespace tandem {

class ForwardingSource : public DataSource {
 public:
  explicit ForwardingSource(std::shared_ptr<const DataSource> source)
      : source_(std::move(source)) {}

  const std::vector<DataField>& fields() const override { return source_->fields(); }
  std::int64_t samples() const override { return source_->samples(); }
  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    source_->fill(field, samples, augmentation, to);
  }
  std::string describe(int field, std::int64_t sample) const override {
    return source_->describe(field, sample);
  }
  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    source_->check_range(field, limit, ignore);
  }
  void check_elements(int field, std::span<const std::int64_t> limits) const override {
    source_->check_elements(field, limits);
  }
  std::string origin_of(int field, std::int64_t element, std::int64_t value) const override {
    return source_->origin_of(field, element, value);
  }
  void check_numbers(int field, double least, double most,
                     const std::string& expected) const override {
    source_->check_numbers(field, least, most, expected);
  }
  std::vector<std::int64_t> nan_samples(int field) const override {
    return source_->nan_samples(field);
  }
  bool may_refuse() const override { return source_->may_refuse(); }

 protected:
  const std::shared_ptr<const DataSource> source_;
};

}  // namespace tandem
