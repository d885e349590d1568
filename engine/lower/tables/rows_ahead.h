// Fetches rows of tables a step ahead, where lookups ship rows: rows that the next step looks up
// and this one does not change are copied while this one computes, and stay on the device until
// then.
//
//   host:    N = UniqueIndices(the next step's ids);  early = RowsWithout(N, rows updated here)
//            kept = GatherRows(table, early) -> device
//   the next step, host:    late, place = PlanRows(unique, early of the step before)
//   the next step, device:  y = GatherParts(kept, GatherRows(table, late) -> device, place,
//   inverse)
//
// All rows are late where the step before fetched none for this one, or another program ran it:
// results never depend on what was fetched.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/lower/placed_graph.h"

namespace tandem {

/// A copy of the first `count` rows on device `to`; written into `into` where that is given.
ValueId copy_rows(PlacedEdit& edit, ValueId rows, ValueId count, int to, NodeId like,
                  ValueId into = {});

/// A lookup on the host whose rows a device reads.
struct ShippedLookup {
  NodeId node;            // Gather(table, ids)
  std::size_t table = 0;  // index of the state
  NodeId groups;          // UniqueIndices(ids) for this lookup only
  int device = 0;         // where the readers are
};

class RowsAhead {
 public:
  explicit RowsAhead(PlacedEdit& edit);

  /// Why the next step's rows cannot be fetched in this one; nothing where they can.
  std::optional<std::string> refusal(std::size_t table, ValueId ids) const;
  /// The looked-up rows on the device, one for each id: [ids, ...]. Adds states, and inputs for the
  /// next step's ids. The lookup must not be refused.
  ValueId lookup(const ShippedLookup& lookup);

 private:
  /// Shared by lookups that group the same ids and whose tables have the same rows updated.
  struct Fetch {
    NodeId groups;
    ValueId updated;                // rows that this step changes
    ValueId early, early_count;     // rows for the next step
    ValueId late, late_count;       // rows of this one that the step before did not fetch
    ValueId place;                  // per row of `groups`: its index among early and late rows
    std::map<int, ValueId> places;  // by device
  };

  std::optional<std::string> update_refusal(std::size_t table) const;
  std::optional<std::string> ids_refusal(ValueId ids) const;
  NodeId update_of(std::size_t table) const;
  std::size_t fetch_of(const ShippedLookup& lookup);
  Fetch make_fetch(const ShippedLookup& lookup, ValueId updated);
  /// What the value will be in the next step.
  ValueId next_of(ValueId value, NodeId like);
  NodeId add_late_in_order(std::string_view op, std::vector<ValueId> inputs, NodeId like);
  /// A state that lives between two steps; `add_state` follows once its final value is known.
  State new_state(std::size_t table, const std::string& name, const TensorType& type);
  void finish_state(State state, ValueId final, int device);

  PlacedEdit& edit_;
  double after_own_work_ = 0;  // key of what the host does once devices have all they wait for
  std::vector<Fetch> fetches_;
  std::map<std::int32_t, ValueId> next_;  // by value
};

}  // namespace tandem
