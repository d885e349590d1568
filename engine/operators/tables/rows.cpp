// The gradients of lookups among the inputs of RowsUpdate and RowsSumOfSquares.
#include "engine/operators/tables/rows.h"

#include <algorithm>

#include "engine/operators/network_checks.h"

namespace tandem {

std::vector<AttributeSpec> lookup_attributes() { return {{"bags", Ints()}, {"weighted", Ints()}}; }

std::vector<LookupGradient> lookup_gradients(const Node& node, std::size_t first) {
  const Ints& bags = node.attributes.integers("bags");
  const Ints& weighted = node.attributes.integers("weighted");
  const std::size_t count = bags.empty() ? node.inputs.size() - first : bags.size();
  std::size_t weights = first + count;
  std::vector<LookupGradient> list;
  for (std::size_t k = 0; k < count; ++k) {
    LookupGradient next{.dy = first + k};
    if (!bags.empty()) next.bag = bags[k];
    if (!weighted.empty() && weighted[k] != 0) next.weights = weights++;
    list.push_back(next);
  }
  return list;
}

void require_lookup_gradients(const NodeView& view, std::size_t first, std::int64_t ids,
                              std::int64_t columns) {
  const Ints& bags = view.attributes().integers("bags");
  const Ints& weighted = view.attributes().integers("weighted");
  if (bags.size() != weighted.size()) {
    view.fail("length of attribute 'weighted'", std::to_string(bags.size()),
              std::to_string(weighted.size()));
  }
  std::size_t wanted = bags.empty() ? view.input_count() : first + bags.size();
  for (std::size_t k = 0; k < bags.size(); ++k) {
    if (bags[k] < 1) view.fail("attribute 'bags'", "at least 1 each", to_string(bags));
    if (weighted[k] != 0 && weighted[k] != 1) {
      view.fail("attribute 'weighted'", "0 or 1 each", to_string(weighted));
    }
    wanted += static_cast<std::size_t>(weighted[k]);
  }
  if (view.input_count() != wanted || wanted <= first) {
    view.fail("gradients of lookups are missing or too many",
              std::to_string(std::max(wanted, first + 1)) + " inputs",
              std::to_string(view.input_count()));
  }
  std::int64_t elements = 0;
  for (const LookupGradient& lookup : lookup_gradients(view.node, first)) {
    require_float(view, lookup.dy);
    require_dtype(view, lookup.dy, view.input(first).dtype);
    const std::int64_t own = view.input(lookup.dy).elements() * lookup.bag;
    elements += own;
    if (lookup.weights == 0) continue;
    require_float(view, lookup.weights);
    if (view.input(lookup.weights).elements() * columns != own) {
      view.fail("the weights do not fit their gradient",
                std::to_string(own / columns) + " elements", to_string(view.input(lookup.weights)));
    }
  }
  if (elements != ids * columns) {
    view.fail("the gradients do not fit the ids", std::to_string(ids * columns) + " elements",
              std::to_string(elements));
  }
}

}  // namespace tandem
