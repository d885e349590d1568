#include "engine/data/bounded_source.h"

#include <algorithm>

#include "engine/data/forwarding_source.h"

namespace tandem {
namespace {

class BoundedSource final : public ForwardingSource {
 public:
  BoundedSource(std::shared_ptr<const DataSource> source, std::map<int, IdBound> bounds)
      : ForwardingSource(std::move(source)), bounds_(std::move(bounds)) {}

  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    source_->fill(field, samples, augmentation, to);
    const auto found = bounds_.find(field);
    if (found == bounds_.end()) return;
    const TensorType& type = fields()[static_cast<std::size_t>(field)].sample;
    const std::int64_t count = type.elements() * static_cast<std::int64_t>(samples.size());
    with_type(type.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        // A negative value is a large one here.
        const auto limit = static_cast<std::uint64_t>(found->second.limit);
        const T outside = static_cast<T>(found->second.outside);
        T* values = static_cast<T*>(to);
        for (std::int64_t i = 0; i < count; ++i) {
          const auto value = static_cast<std::uint64_t>(static_cast<std::int64_t>(values[i]));
          values[i] = value < limit ? values[i] : outside;
        }
      }
    });
  }

  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    const auto found = bounds_.find(field);
    if (found == bounds_.end()) return source_->check_range(field, limit, ignore);
    const IdBound& bound = found->second;
    if (bound.limit <= limit && ignore != nullptr && *ignore == bound.outside) return;
    source_->check_range(field, std::min(limit, bound.limit), ignore);
  }

 private:
  std::map<int, IdBound> bounds_;
};

}  // namespace

std::shared_ptr<const DataSource> make_bounded_source(std::shared_ptr<const DataSource> source,
                                                      std::map<int, IdBound> bounds) {
  if (bounds.empty()) return source;
  return std::make_shared<BoundedSource>(std::move(source), std::move(bounds));
}

}  // namespace tandem
