#include "engine/data/subset_source.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/data/forwarding_source.h"

namespace tandem {
namespace {

struct Listed {
  std::vector<std::int64_t> samples;
  std::int64_t count() const { return static_cast<std::int64_t>(samples.size()); }
  std::int64_t at(std::int64_t i) const { return samples[static_cast<std::size_t>(i)]; }
};

struct Consecutive {
  SampleShare part;
  std::int64_t count() const { return part.count; }
  std::int64_t at(std::int64_t i) const { return part.first + i; }
};

/// `Numbers` says which sample of the whole each one is.
template <class Numbers>
class SubsetSource final : public ForwardingSource {
 public:
  SubsetSource(std::shared_ptr<const DataSource> whole, Numbers numbers)
      : ForwardingSource(std::move(whole)), numbers_(std::move(numbers)) {}

  std::int64_t samples() const override { return numbers_.count(); }
  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    thread_local std::vector<std::int64_t> of_whole;
    of_whole.clear();
    for (const std::int64_t sample : samples) of_whole.push_back(numbers_.at(sample));
    source_->fill(field, of_whole, augmentation, to);
  }
  std::string describe(int field, std::int64_t sample) const override {
    return source_->describe(field, numbers_.at(sample));
  }
  std::vector<std::int64_t> nan_samples(int field) const override {
    const std::vector<std::int64_t> all = source_->nan_samples(field);
    std::vector<std::int64_t> own;
    for (std::int64_t i = 0; i < samples() && !all.empty(); ++i) {
      if (std::binary_search(all.begin(), all.end(), numbers_.at(i))) own.push_back(i);
    }
    return own;
  }

 private:
  Numbers numbers_;
};

}  // namespace

std::shared_ptr<const DataSource> make_subset_source(std::shared_ptr<const DataSource> source,
                                                     std::vector<std::int64_t> samples) {
  return std::make_shared<SubsetSource<Listed>>(std::move(source), Listed{std::move(samples)});
}

std::shared_ptr<const DataSource> make_part_source(std::shared_ptr<const DataSource> source,
                                                   const SampleShare& part) {
  assert(part.first >= 0 && part.first + part.count <= source->samples());
  if (part.first == 0 && part.count == source->samples()) return source;
  return std::make_shared<SubsetSource<Consecutive>>(std::move(source), Consecutive{part});
}

}  // namespace tandem
