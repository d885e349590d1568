#include "engine/data/buckets/cut_source.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "engine/data/forwarding_source.h"

namespace tandem {
namespace {

class CutSource final : public ForwardingSource {
 public:
  CutSource(std::shared_ptr<const DataSource> source, const std::vector<int>& fields,
            std::int64_t length)
      : ForwardingSource(std::move(source)), fields_(source_->fields()) {
    for (const int field : fields) {
      Shape& shape = fields_[static_cast<std::size_t>(field)].sample.shape;
      assert(!shape.empty() && shape[0] >= length);
      shape[0] = length;
    }
  }

  const std::vector<DataField>& fields() const override { return fields_; }
  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    const std::size_t kept = fields_[static_cast<std::size_t>(field)].sample.bytes();
    const std::size_t whole = source_->fields()[static_cast<std::size_t>(field)].sample.bytes();
    if (kept == whole) return source_->fill(field, samples, augmentation, to);
    constexpr std::size_t most_bytes = std::size_t{1} << 16;  // whole rows read at a time
    const std::size_t piece = std::max<std::size_t>(most_bytes / whole, 1);
    thread_local std::vector<std::uint64_t> rows;  // words, so that every element type is aligned
    if (rows.size() * sizeof(std::uint64_t) < piece * whole)
      rows.resize((piece * whole + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
    auto* out = static_cast<std::uint8_t*>(to);
    for (std::size_t first = 0; first < samples.size(); first += piece) {
      const std::size_t count = std::min(piece, samples.size() - first);
      const Augmentation own =
          augmentation != nullptr ? augmentation->part(first, count) : Augmentation{};
      source_->fill(field, samples.subspan(first, count), augmentation != nullptr ? &own : nullptr,
                    rows.data());
      const auto* row = reinterpret_cast<const std::uint8_t*>(rows.data());
      for (std::size_t i = 0; i < count; ++i, row += whole, out += kept)
        std::memcpy(out, row, kept);
    }
  }

 private:
  std::vector<DataField> fields_;
};

}  // namespace

std::shared_ptr<const DataSource> cut_source(std::shared_ptr<const DataSource> source,
                                             const std::vector<int>& fields, std::int64_t length) {
  const bool is_whole = std::all_of(fields.begin(), fields.end(), [&](int field) {
    return source->fields()[static_cast<std::size_t>(field)].sample.shape[0] == length;
  });
  if (is_whole) return source;
  return std::make_shared<CutSource>(std::move(source), fields, length);
}

}  // namespace tandem
