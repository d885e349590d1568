#include "importer/batch/old_batch.h"

#include <fmt/format.h>

namespace tandem::importer {

std::string fixed_batch_fix(const BatchRecord& old) {
  return fmt::format(
      "the file was exported with a batch of {}, which is fixed here: export it with a free one "
      "(dynamic_axes, dynamic_shapes), or train with batch_size = {} (with several ranks: this "
      "many for each) and data.drop_last = true",
      old.batch, old.batch);
}

const Shape* shape_before(const Session& session, const Scope& scope, const std::string& name) {
  const BatchRecord* old = session.old_batch;
  if (old == nullptr) return nullptr;
  for (const Scope* at = &scope; at != nullptr; at = at->outer) {
    if (at->names.count(name) == 0) continue;
    const auto shape = old->shapes.find(at->prefix + name);
    return shape == old->shapes.end() ? nullptr : &shape->second;
  }
  return nullptr;
}

std::optional<BatchAxis> changed_axis(const Shape& before, const Shape& now,
                                      const BatchRecord& old) {
  if (before.size() != now.size()) return std::nullopt;
  std::optional<BatchAxis> result;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (before[i] == now[i]) continue;
    if (result || before[i] % old.batch != 0 || before[i] / old.batch * old.new_batch != now[i])
      return std::nullopt;
    result = BatchAxis{now.size() - i, before[i], now[i]};
  }
  return result;
}

}  // namespace tandem::importer
