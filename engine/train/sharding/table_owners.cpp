#include "engine/train/sharding/table_owners.h"

#include <algorithm>

namespace tandem {

std::map<std::string, int> table_owners(std::vector<TableLoad> tables, int ranks) {
  double bytes = 0, looked_bytes = 0;
  for (const TableLoad& table : tables) {
    bytes += table.bytes;
    looked_bytes += table.looked_bytes;
  }
  const auto load = [&](const TableLoad& table) {
    return (bytes > 0 ? table.bytes / bytes : 0) +
           (looked_bytes > 0 ? table.looked_bytes / looked_bytes : 0);
  };
  std::sort(tables.begin(), tables.end(), [&](const TableLoad& a, const TableLoad& b) {
    return load(a) != load(b) ? load(a) > load(b) : a.name < b.name;
  });
  std::vector<double> loads(static_cast<std::size_t>(ranks), 0);
  std::map<std::string, int> owners;
  for (const TableLoad& table : tables) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += load(table);
    owners[table.name] = static_cast<int>(least - loads.begin());
  }
  return owners;
}

}  // namespace tandem
