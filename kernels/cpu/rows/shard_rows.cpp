// ShardIds, a division for each id; ShardRows, whose places are ascending: those of a rank lie in a
// row; ShardColumns, which copies; OwnRows, a comparison for each place.
#include "engine/operators/tables/shard_rows.h"

#include <limits>
#include <type_traits>

#include "engine/device/kernel_forms.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/outside_ids.h"

namespace tandem {
namespace {

ShardedRows shards_of(const KernelRequest& r) {
  return {r.attributes().integer("rows"), r.attributes().integer("ranks")};
}

/// f of values of the integer types of input and output 0.
template <class F>
std::unique_ptr<PreparedKernel> with_integers(const KernelRequest& r, F f) {
  const auto with_output = [&](auto in) {
    return r.outputs[0].type.dtype == DType::int32 ? f(in, std::int32_t{}) : f(in, std::int64_t{});
  };
  return r.inputs[0].type.dtype == DType::int32 ? with_output(std::int32_t{})
                                                : with_output(std::int64_t{});
}

// Number: of 32 bits where rows fit, since its division takes a third of the time.
template <class Number, class Id, class Place>
void place(const ShardedRows& shards, const Id* ids, Place* places, std::int64_t count) {
  const auto ranks = static_cast<Number>(shards.ranks);
  const std::int64_t part = shards.part();
  for (std::int64_t i = 0; i < count; ++i) {
    bool outside = false;
    const std::int64_t row = shards.row_of(ids[i], outside);
    const auto number = static_cast<Number>(row);
    const std::int64_t place = static_cast<std::int64_t>(number % ranks) * part +
                               static_cast<std::int64_t>(number / ranks);
    places[i] = row < 0 ? absent_id<Place> : static_cast<Place>(place);
  }
}

template <class Id, class Place>
void place_ids(const ShardedRows& shards, const KernelArguments& a, std::int64_t begin,
               std::int64_t end) {
  const Id* ids = static_cast<const Id*>(a.inputs[0]) + begin;
  auto* places = static_cast<Place*>(a.outputs[0]) + begin;
  if (shards.rows <= std::numeric_limits<std::uint32_t>::max())
    place<std::uint32_t>(shards, ids, places, end - begin);
  else
    place<std::uint64_t>(shards, ids, places, end - begin);
}

template <class Id, class Place>
std::unique_ptr<PreparedKernel> shard_ids(const KernelRequest& r) {
  return prepared([shards = shards_of(r), count = r.inputs[0].type.elements(),
                   threads = r.facts->threads, node = r.node_index](const KernelArguments& a) {
    const IdArray ids{a.inputs[0], count, sizeof(Id) == sizeof(std::int64_t)};
    report_outside(a, ids, shards.rows, threads, node);
    parallel_ranges(threads, count, count * 32, [&](std::int64_t begin, std::int64_t end) {
      place_ids<Id, Place>(shards, a, begin, end);
    });
  });
}

std::unique_ptr<PreparedKernel> prepare_shard_ids(const KernelRequest& r) {
  return with_integers(
      r, [&](auto id, auto place) { return shard_ids<decltype(id), decltype(place)>(r); });
}

std::unique_ptr<PreparedKernel> prepare_shard_rows(const KernelRequest& r) {
  return prepared(
      [shards = shards_of(r), capacity = r.inputs[0].type.elements()](const KernelArguments& a) {
        const auto* places = static_cast<const std::int64_t*>(a.inputs[0]);
        const std::int64_t count = *static_cast<const std::int32_t*>(a.inputs[1]);
        auto* rows = static_cast<std::int64_t*>(a.outputs[0]);
        auto* counts = static_cast<std::int32_t*>(a.outputs[1]);
        const std::int64_t part = shards.part();
        std::int64_t begin = 0;
        for (std::int64_t rank = 0; rank < shards.ranks; ++rank) {
          const std::int64_t end =
              std::lower_bound(places + begin, places + count, (rank + 1) * part) - places;
          if (counts != nullptr) counts[rank] = static_cast<std::int32_t>(end - begin);
          for (std::int64_t i = begin; rows != nullptr && i < end; ++i)
            rows[i] = places[i] - rank * part;
          begin = end;
        }
        if (rows != nullptr) std::fill(rows + count, rows + capacity, absent_id<std::int64_t>);
      });
}

std::unique_ptr<PreparedKernel> prepare_shard_columns(const KernelRequest& r) {
  return prepared([ranks = r.attributes().integer("ranks"),
                   capacity = r.inputs[0].type.elements()](const KernelArguments& a) {
    const auto* unique = static_cast<const std::int64_t*>(a.inputs[0]);
    const std::int32_t count = *static_cast<const std::int32_t*>(a.inputs[1]);
    if (auto* rows = static_cast<std::int64_t*>(a.outputs[0]); rows != nullptr) {
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        std::copy_n(unique, count, rows + rank * count);
      std::fill(rows + ranks * count, rows + ranks * capacity, absent_id<std::int64_t>);
    }
    if (auto* counts = static_cast<std::int32_t*>(a.outputs[1]); counts != nullptr)
      std::fill_n(counts, ranks, count);
    if (auto* positions = static_cast<std::int64_t*>(a.outputs[2]); positions != nullptr) {
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t rank = 0; rank < ranks; ++rank)
          positions[i * ranks + rank] = rank * count + i;
      }
      std::fill(positions + ranks * count, positions + ranks * capacity, absent_id<std::int64_t>);
    }
  });
}

// Absent places stay outside, too: the difference to the first place may go round.
template <class Place, class Row>
std::unique_ptr<PreparedKernel> own_rows(const KernelRequest& r) {
  using Number = std::make_unsigned_t<Place>;
  const std::int64_t part = shards_of(r).part(), first = r.attributes().integer("rank") * part;
  return prepared([first = static_cast<Number>(first), part = static_cast<Number>(part),
                   count = r.inputs[0].type.elements(),
                   threads = r.facts->threads](const KernelArguments& a) {
    const auto* places = static_cast<const Place*>(a.inputs[0]);
    auto* rows = static_cast<Row*>(a.outputs[0]);
    parallel_ranges(threads, count, count * 12, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto row = static_cast<Number>(static_cast<Number>(places[i]) - first);
        rows[i] = row < part ? static_cast<Row>(row) : absent_id<Row>;
      }
    });
  });
}

std::unique_ptr<PreparedKernel> prepare_own_rows(const KernelRequest& r) {
  return with_integers(
      r, [&](auto place, auto row) { return own_rows<decltype(place), decltype(row)>(r); });
}

}  // namespace

void add_shard_row_kernels(KernelList& list) {
  add_row_major(list, "cpu.shard_ids", "ShardIds", refuse_nothing, prepare_shard_ids);
  add_row_major(list, "cpu.shard_rows", "ShardRows", refuse_nothing, prepare_shard_rows);
  add_row_major(list, "cpu.shard_columns", "ShardColumns", refuse_nothing, prepare_shard_columns);
  add_row_major(list, "cpu.own_rows", "OwnRows", refuse_nothing, prepare_own_rows);
}

}  // namespace tandem
