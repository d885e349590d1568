#include "engine/training/data/bounded_source.h"

namespace tandem {
namespace {

class BoundedSource final : public DataSource {
 public:
  BoundedSource(std::shared_ptr<const DataSource> source, std::map<int, std::int64_t> limits)
      : source_(std::move(source)), limits_(std::move(limits)) {}

  const std::vector<DataField>& fields() const override { return source_->fields(); }
  std::int64_t samples() const override { return source_->samples(); }
  std::string describe(int field, std::int64_t sample) const override {
    return source_->describe(field, sample);
  }

  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    source_->fill(field, samples, augmentation, to);
    const auto found = limits_.find(field);
    if (found == limits_.end()) return;
    const TensorType& type = fields()[static_cast<std::size_t>(field)].sample;
    const std::int64_t count = type.elements() * static_cast<std::int64_t>(samples.size());
    with_type(type.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        // A negative value is a large one here.
        const auto limit = static_cast<std::uint64_t>(found->second);
        T* values = static_cast<T*>(to);
        for (std::int64_t i = 0; i < count; ++i) {
          if (static_cast<std::uint64_t>(static_cast<std::int64_t>(values[i])) >= limit) {
            values[i] = 0;
          }
        }
      }
    });
  }

  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    const auto found = limits_.find(field);
    if (found != limits_.end() && found->second <= limit) return;
    source_->check_range(field, limit, ignore);
  }

 private:
  std::shared_ptr<const DataSource> source_;
  std::map<int, std::int64_t> limits_;
};

}  // namespace

std::shared_ptr<const DataSource> make_bounded_source(std::shared_ptr<const DataSource> source,
                                                      std::map<int, std::int64_t> limits) {
  if (limits.empty()) return source;
  return std::make_shared<BoundedSource>(std::move(source), std::move(limits));
}

}  // namespace tandem
