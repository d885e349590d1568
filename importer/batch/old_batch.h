// What values were in the import with the file's own batch, where another one is bound anew.
#pragma once

#include <optional>
#include <string>

#include "importer/session.h"

namespace tandem::importer {

/// What helps where constants of the file hold its batch.
std::string fixed_batch_fix(const BatchRecord& old);

/// The shape that a name of the scope had; null where nothing is bound anew or the name had none.
const Shape* shape_before(const Session& session, const Scope& scope, const std::string& name);

/// Where the batch is: that many axes from the end, and its extents in the file and now.
struct BatchAxis {
  std::size_t distance = 0;
  std::int64_t old_extent = 0, new_extent = 0;
  bool operator==(const BatchAxis&) const = default;
};

/// The one axis that differs, where it does so as the batch does.
std::optional<BatchAxis> changed_axis(const Shape& before, const Shape& now,
                                      const BatchRecord& old);

}  // namespace tandem::importer
