// ShardIds, ShardRows, ShardColumns and OwnRows: whose the rows are that ids name, where ranks
// share a table.
#include "engine/operators/tables/shard_rows.h"

#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

ShardedRows shards_of(const KernelRequest& r) {
  return {r.attributes().integer("rows"), r.attributes().integer("ranks")};
}

template <class Id, class Place>
std::unique_ptr<PreparedKernel> shard_ids_of(const KernelRequest& r) {
  return prepared([shards = shards_of(r), count = r.inputs[0].type.elements(),
                   ids = Places(r.inputs[0]), places = Places(r.outputs[0]),
                   node = r.node_index](const KernelArguments& a) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Id id = static_cast<const Id*>(a.inputs[0])[ids(i)];
      bool outside = false;
      const std::int64_t row = shards.row_of(id, outside);
      if (outside) report(a, ErrorWord::index_out_of_range, node, std::int64_t{id});
      static_cast<Place*>(a.outputs[0])[places(i)] =
          row < 0 ? absent_id<Place> : static_cast<Place>(shards.place(row));
    }
  });
}

template <class Id>
std::unique_ptr<PreparedKernel> shard_ids(const KernelRequest& r, Id) {
  return r.outputs[0].type.dtype == DType::int32 ? shard_ids_of<Id, std::int32_t>(r)
                                                 : shard_ids_of<Id, std::int64_t>(r);
}

std::unique_ptr<PreparedKernel> shard_rows(const KernelRequest& r) {
  return prepared([shards = shards_of(r), capacity = r.inputs[0].type.elements(),
                   places = Places(r.inputs[0]), rows = Places(r.outputs[0]),
                   counts = Places(r.outputs[1])](const KernelArguments& a) {
    const std::int64_t count = *static_cast<const std::int32_t*>(a.inputs[1]);
    auto* to = static_cast<std::int64_t*>(a.outputs[0]);
    auto* numbers = static_cast<std::int32_t*>(a.outputs[1]);
    for (std::int64_t rank = 0; numbers != nullptr && rank < shards.ranks; ++rank)
      numbers[counts(rank)] = 0;
    for (std::int64_t i = 0; i < capacity; ++i) {
      const std::int64_t place = static_cast<const std::int64_t*>(a.inputs[0])[places(i)];
      if (to != nullptr) to[rows(i)] = i < count ? place % shards.part() : absent_id<std::int64_t>;
      if (numbers != nullptr && i < count) ++numbers[counts(place / shards.part())];
    }
  });
}

std::unique_ptr<PreparedKernel> shard_columns(const KernelRequest& r) {
  return prepared([ranks = r.attributes().integer("ranks"), capacity = r.inputs[0].type.elements(),
                   unique = Places(r.inputs[0]), rows = Places(r.outputs[0]),
                   counts = Places(r.outputs[1]),
                   positions = Places(r.outputs[2])](const KernelArguments& a) {
    const std::int64_t count = *static_cast<const std::int32_t*>(a.inputs[1]);
    auto* to = static_cast<std::int64_t*>(a.outputs[0]);
    auto* numbers = static_cast<std::int32_t*>(a.outputs[1]);
    auto* places = static_cast<std::int64_t*>(a.outputs[2]);
    for (std::int64_t k = 0; to != nullptr && k < ranks * capacity; ++k) {
      to[rows(k)] = k < ranks * count
                        ? static_cast<const std::int64_t*>(a.inputs[0])[unique(k % count)]
                        : absent_id<std::int64_t>;
    }
    for (std::int64_t rank = 0; numbers != nullptr && rank < ranks; ++rank)
      numbers[counts(rank)] = static_cast<std::int32_t>(count);
    for (std::int64_t i = 0; places != nullptr && i < capacity; ++i) {
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        places[positions(i * ranks + rank)] =
            i < count ? rank * count + i : absent_id<std::int64_t>;
    }
  });
}

template <class Place, class Row>
std::unique_ptr<PreparedKernel> own_rows_of(const KernelRequest& r) {
  return prepared([shards = shards_of(r), rank = r.attributes().integer("rank"),
                   count = r.inputs[0].type.elements(), places = Places(r.inputs[0]),
                   rows = Places(r.outputs[0])](const KernelArguments& a) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = static_cast<const Place*>(a.inputs[0])[places(i)];
      const bool is_own = place >= 0 && place / shards.part() == rank;
      static_cast<Row*>(a.outputs[0])[rows(i)] =
          is_own ? static_cast<Row>(place % shards.part()) : absent_id<Row>;
    }
  });
}

template <class Place>
std::unique_ptr<PreparedKernel> own_rows(const KernelRequest& r, Place) {
  return r.outputs[0].type.dtype == DType::int32 ? own_rows_of<Place, std::int32_t>(r)
                                                 : own_rows_of<Place, std::int64_t>(r);
}

}  // namespace

void add_shard_rows(KernelList& list) {
  list.push_back(kernel_for<std::int32_t, std::int64_t>(
      "reference.shard_ids", "ShardIds",
      [](const KernelRequest& r, auto tag) { return shard_ids(r, tag); }));
  list.push_back(reference_kernel("shard_rows", "ShardRows", refuse_nothing, shard_rows));
  list.push_back(reference_kernel("shard_columns", "ShardColumns", refuse_nothing, shard_columns));
  list.push_back(kernel_for<std::int32_t, std::int64_t>(
      "reference.own_rows", "OwnRows",
      [](const KernelRequest& r, auto tag) { return own_rows(r, tag); }));
}

}  // namespace tandem::reference
