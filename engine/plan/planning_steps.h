// The steps of planning, in order: instructions with their accesses, waits, memory offsets.
#pragma once

#include <utility>
#include <vector>

#include "engine/plan/plan.h"

namespace tandem {

/// Where buffers, slots and constants begin: multiples of 64 bytes.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// An instruction before waits are put in; `order` is the position in one list of all queues in
/// which everything that an instruction depends on (in its step) comes before it.
struct PlannedItem {
  int queue = 0;
  Instruction instruction;
  // Filled by `synchronise`: what has finished before this item ends, per queue, counted in items
  // over three consecutive steps; [0] in the first of them.
  std::vector<int> clock[3];
  int position = 0;  // among the items of its queue
};

/// Per value: whether anything reads it, or it is an output of the graph or a state's final value.
std::vector<char> needed_values(const Lowered& lowered);

/// Bytes [begin, end) that a value touches in its buffer.
struct ByteRange {
  std::size_t begin = 0, end = 0;
};
ByteRange bytes_of(const Lowered& lowered, ValueId value);

/// Buffers of values and workspaces; fills plan.buffers, buffer_of and workspace_of.
void make_buffers(const Lowered& lowered, const std::vector<std::size_t>& workspace_bytes,
                  Plan& plan);

/// Two copies for what a device gets straight from an input slot, and for the few bytes that it
/// gives straight to an output slot.
void double_inputs(const Lowered& lowered, Plan& plan);

/// All instructions but events, in an order that respects every dependency; names the queues.
std::vector<PlannedItem> make_items(const Lowered& lowered, Plan& plan);

/// Two items: as far as memory goes, the second starts after the first has finished.
using ItemOrder = std::pair<int, int>;

/// Copies with a `lookahead` take turns with the computing of their device: they start after the
/// items before them in the list have ended, and the items after them start after they have ended.
std::vector<ItemOrder> copies_in_turn(const std::vector<PlannedItem>& items, const Lowered& lowered,
                                      const Plan& plan);

/// At most a bucket of bytes of ReduceScatters with `prompt` waits to be summed while the operand
/// of a later one is made: as far as memory goes, that starts after the earlier ones have ended.
std::vector<ItemOrder> reductions_in_turn(const std::vector<PlannedItem>& items,
                                          const Lowered& lowered, const Plan& plan);

/// The clocks that items have when every conflict and these orders are waited for.
void set_clocks(std::vector<PlannedItem>& items, Plan& plan, const std::vector<ItemOrder>& orders);

/// Events and waits for every conflict between queues, also with the step before; none redundant.
/// `by_place`: also for buffers that overlap in an arena, whose items `set_clocks` ordered.
void synchronise(std::vector<PlannedItem>& items, Plan& plan, bool by_place);

/// Fills plan.launches.
void order_launches(Plan& plan);

/// Offsets of arena buffers, those of a group of `side_by_side` one after the other, and the memory
/// report.
void place_buffers(const std::vector<PlannedItem>& items, const Lowered& lowered, Plan& plan);

}  // namespace tandem
