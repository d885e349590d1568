// Taking items out of a repeated field of Protocol Buffers.
#pragma once

namespace tandem::importer {

/// Removes the items for which `drop` is true; the others keep their order.
template <class List, class Predicate>
void erase_items(List& list, Predicate drop) {
  int kept = 0;
  for (int i = 0; i < list.size(); ++i) {
    if (drop(list.Get(i))) continue;
    if (kept != i) list.SwapElements(kept, i);
    ++kept;
  }
  list.DeleteSubrange(kept, list.size() - kept);
}

}  // namespace tandem::importer
