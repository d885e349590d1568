// Static ranges of all axes, as the engine's Slice has them.
#pragma once

#include "importer/node_context.h"

namespace tandem::importer::operators {

struct Ranges {
  Ints starts, sizes, steps;
  explicit Ranges(const Shape& x) : starts(x.size(), 0), sizes(x), steps(x.size(), 1) {}
  Attributes attributes() const { return {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}; }
};

/// numpy's start:end:step on an axis of `extent` elements.
void set_range(Ranges& ranges, std::size_t axis, std::int64_t extent, std::int64_t start,
               std::int64_t end, std::int64_t step);

/// x cut to that shape, or with zeros around it: at the ends of its axes, or `centred` at both
/// sides alike, the odd one at the end. x itself where it has that shape.
Term fitted(NodeContext& node, const Term& x, const Shape& shape, bool centred);

}  // namespace tandem::importer::operators
