// Which rank has which table, where each table is whole on one rank.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tandem {

/// The cost of a table for the rank that has it.
struct TableLoad {
  std::string name;
  double bytes = 0;         // size of the table
  double looked_bytes = 0;  // rows that a sample looks up, every id counted
};

/// The rank of each table, the same wherever the loads are the same. A rank's load is its part of
/// all tables' bytes plus its part of all bytes that are looked up; the heaviest table comes first,
/// and each goes to the rank that has least so far, so that no rank has more than 4/3 of the best
/// possible (Graham 1969).
std::map<std::string, int> table_owners(std::vector<TableLoad> tables, int ranks);

}  // namespace tandem
