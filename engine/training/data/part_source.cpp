#include "engine/training/data/part_source.h"

#include <cassert>

namespace tandem {
namespace {

class PartSource final : public DataSource {
 public:
  PartSource(std::shared_ptr<const DataSource> source, const SampleShare& part)
      : source_(std::move(source)), part_(part) {
    assert(part.first >= 0 && part.first + part.count <= source_->samples());
  }

  const std::vector<DataField>& fields() const override { return source_->fields(); }
  std::int64_t samples() const override { return part_.count; }
  std::string describe(int field, std::int64_t sample) const override {
    return source_->describe(field, part_.first + sample);
  }
  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    thread_local std::vector<std::int64_t> moved;
    moved.assign(samples.begin(), samples.end());
    for (std::int64_t& sample : moved) sample += part_.first;
    source_->fill(field, moved, augmentation, to);
  }
  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    source_->check_range(field, limit, ignore);
  }
  void check_numbers(int field, double least, double most,
                     const std::string& expected) const override {
    source_->check_numbers(field, least, most, expected);
  }
  std::vector<std::int64_t> nan_samples(int field) const override {
    std::vector<std::int64_t> found;
    for (const std::int64_t sample : source_->nan_samples(field)) {
      if (sample >= part_.first && sample < part_.first + part_.count)
        found.push_back(sample - part_.first);
    }
    return found;
  }

 private:
  std::shared_ptr<const DataSource> source_;
  SampleShare part_;
};

}  // namespace

std::shared_ptr<const DataSource> make_part_source(std::shared_ptr<const DataSource> source,
                                                   const SampleShare& part) {
  if (part.first == 0 && part.count == source->samples()) return source;
  return std::make_shared<PartSource>(std::move(source), part);
}

}  // namespace tandem
