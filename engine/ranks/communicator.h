// The ranks of a run that compute together: operations over all of them, on streams of a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/device/device.h"
#include "engine/graph/types.h"
#include "engine/operators/collectives/collective_kind.h"

namespace tandem {

enum class Reduction : std::uint8_t {
  sum,
  mean,  // floats only
  maximum,
  minimum,
};

/// Elements of one type that each rank takes part with. All ranks give the same count and type.
struct RankElements {
  const void* from = nullptr;  // in memory of the communicator's device
  void* to = nullptr;
  std::size_t count = 0;  // number of elements; each operation says which
  DType dtype = DType::float32;
};

/// A whole in equal shards, one for each rank in their order; the last shards lack what the whole
/// does not fill.
struct PartSizes {
  std::size_t part = 0, whole = 0;
  /// Elements that a rank's shard has.
  std::size_t filled(int rank) const {
    const std::size_t begin = std::min(whole, static_cast<std::size_t>(rank) * part);
    return std::min(part, whole - begin);
  }
  bool operator==(const PartSizes&) const = default;
};

/// One of several operands that ranks gather, or scatter, together. All ranks give the same sizes.
struct RankParts {
  const void* from = nullptr;
  void* to = nullptr;
  PartSizes sizes;
};

/// How many rows each rank sends to which, in memory of the communicator's device that the host
/// reaches. They are read when the operation begins.
struct RowCounts {
  const std::int32_t* sent = nullptr;      // [ranks]: rows of `from` for each rank
  const std::int32_t* received = nullptr;  // [ranks]: rows that each rank has for this one
  std::size_t from_rows = 0, to_rows = 0;  // rows that fit into `from` and `to`; may differ by rank
};

/// One operation over all ranks.
struct Exchange {
  CollectiveKind kind = CollectiveKind::all_reduce;
  RankElements elements;
  Reduction reduction = Reduction::sum;  // where the kind reduces
  RowCounts counts = {};                 // for exchange_rows
  int root = 0;                          // whose data a broadcast sends
  /// For all_gather and reduce_scatter: operands that travel together, in place of those of
  /// `elements`, whose `count` is then the sum over all shards of one rank.
  std::span<const RankParts> parts = {};
};

/// The operands of an all_gather or reduce_scatter; nothing for other kinds. `one`: storage for the
/// operand of an exchange that has only one.
std::span<const RankParts> parts_of(const Exchange& exchange, int ranks, RankParts& one);

/// Bytes that a rank of an exchange reads of `from` and writes to `to`.
struct ExchangeBytes {
  std::size_t read = 0, written = 0;
};
/// Not for an exchange that has `parts`.
ExchangeBytes bytes_of(const Exchange& exchange, int rank, int ranks);
/// For one of the operands of an all_gather or reduce_scatter.
ExchangeBytes bytes_of(CollectiveKind kind, const PartSizes& sizes, DType dtype, int rank);

/// One rank's end of the operations. All ranks enqueue the same operations in the same order,
/// whatever streams they use, and capture the same ones. Enqueueing does not wait for other ranks;
/// `name` appears in errors and is not kept. Every call throws Error{runtime} once something has
/// gone wrong, with the rank's number, and from then on; Error{usage} where the operation does not
/// exist for the type. Calls may come from several threads.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;   // from 0
  virtual int ranks() const = 0;  // how many

  virtual void enqueue(Stream& stream, std::string_view name, const Exchange& exchange) = 0;

  /// to[i] = the reduction of from[i] over all ranks; `count` is that of both. `from` may be `to`.
  void all_reduce(Stream& stream, std::string_view name, const RankElements& e, Reduction r) {
    enqueue(stream, name, {CollectiveKind::all_reduce, e, r});
  }
  /// `to` has the `count` elements of each rank, in their order: ranks × count. In place where
  /// `from` is the rank's own part of `to`.
  void all_gather(Stream& stream, std::string_view name, const RankElements& e) {
    enqueue(stream, name, {CollectiveKind::all_gather, e});
  }
  /// `from` has ranks × count elements; `to` gets the reduction of the rank's own part. In place
  /// where `to` is that part of `from`.
  void reduce_scatter(Stream& stream, std::string_view name, const RankElements& e, Reduction r) {
    enqueue(stream, name, {CollectiveKind::reduce_scatter, e, r});
  }
  /// Several operands at once, whose parts need not be full: `from` is the rank's part, `to` the
  /// whole. Each may be in place.
  void gather_parts(Stream& stream, std::string_view name, DType dtype,
                    std::span<const RankParts> parts) {
    enqueue(stream, name, exchange_of(CollectiveKind::all_gather, dtype, parts));
  }
  /// Several operands at once, whose parts need not be full: `from` is the whole, `to` the rank's
  /// part of the reduction, with zeros where the whole does not fill it. Full ones may be in place.
  void scatter_parts(Stream& stream, std::string_view name, DType dtype,
                     std::span<const RankParts> parts, Reduction r) {
    enqueue(stream, name, exchange_of(CollectiveKind::reduce_scatter, dtype, parts, r));
  }
  /// Part p of `from` goes to rank p, part p of `to` comes from it: ranks × count each. Not in
  /// place.
  void all_to_all(Stream& stream, std::string_view name, const RankElements& e) {
    enqueue(stream, name, {CollectiveKind::all_to_all, e});
  }
  /// Unequal parts of rows of `count` elements: those for rank 0 come first in `from`, then those
  /// for rank 1, ...; `to` gets the rows of rank 0, then those of rank 1, ... The rest of `to` is
  /// filled with zeros, in int32 and int64 with the least number, which names no row. Not in place.
  /// Ranks whose counts do not fit each other, or the room, fail by name.
  void exchange_rows(Stream& stream, std::string_view name, const RankElements& e,
                     const RowCounts& counts) {
    enqueue(stream, name, {CollectiveKind::exchange_rows, e, Reduction::sum, counts});
  }
  /// The `from` of `root` in every rank's `to`; other ranks' `from` is not looked at. May be in
  /// place.
  void broadcast(Stream& stream, std::string_view name, const RankElements& e, int root) {
    enqueue(stream, name, {CollectiveKind::broadcast, e, Reduction::sum, {}, root});
  }

  /// The stream has just been given operations in a captured graph: they have to be done within the
  /// time limit, as those that are enqueued one by one.
  virtual void watch(Stream& stream, std::string_view name) = 0;
  /// Throws where an operation has failed, takes longer than the time limit or another rank has
  /// died; never waits. To be called between steps, not while capturing.
  virtual void check() = 0;
  /// For how many seconds operations have waited for messages of other ranks, since the start: a
  /// rank that computes longer than the others waits less than they do. 0 where it is not known.
  virtual double waited() const { return 0; }
  /// Waits until all of the stream is done, and throws what `check` finds meanwhile. A wait that
  /// does not check never returns when another rank has died.
  virtual void wait(Stream& stream) = 0;
  /// Ends all that is under way; `why` is what every later call throws. Each rank that is left
  /// calls it.
  virtual void abort(const std::string& why) = 0;

  /// An all_gather or reduce_scatter of these operands.
  static Exchange exchange_of(CollectiveKind kind, DType dtype, std::span<const RankParts> parts,
                              Reduction reduction = Reduction::sum) {
    Exchange exchange{kind, {nullptr, nullptr, 0, dtype}, reduction};
    for (const RankParts& one : parts) exchange.elements.count += one.sizes.part;
    exchange.parts = parts;
    return exchange;
  }
};

}  // namespace tandem
