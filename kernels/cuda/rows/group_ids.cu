#include "kernels/cuda/rows/group_ids.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/rows/select.h"
#include "kernels/cuda/rows/sort_digits.h"

namespace tandem::cuda {
namespace {

/// All ids of a table's lookups, one array after the other, as keys: the row, or `rows` for an
/// absent one.
struct AllIds {
  const void* data[IdGroups::most_arrays];
  std::int32_t starts[IdGroups::most_arrays];
  bool wide[IdGroups::most_arrays];
  int arrays;
  std::int64_t rows;
  IdReport report;

  TANDEM_HOST_DEVICE std::int64_t key(std::int64_t i, bool reports) const {
    int k = 0;
    for (int above = arrays; above - k > 1;) {
      const int middle = (k + above) / 2;
      (starts[middle] <= i ? k : above) = middle;
    }
    const std::int64_t row =
        row_of({data[k], wide[k]}, i - starts[k], rows, reports ? &report : nullptr);
    return row < 0 ? rows : row;
  }
};

/// Keys of ids, which are kept for the passes to come.
template <class Key>
struct KeysOfIds {
  AllIds ids;
  Key* keys;

  TANDEM_HOST_DEVICE Key key(std::int64_t i) const {
    const auto key = static_cast<Key>(ids.key(i, true));
    keys[i] = key;
    return key;
  }
};

template <class Key>
struct KeptKeys {
  const Key* keys;

  TANDEM_HOST_DEVICE Key key(std::int64_t i) const { return keys[i]; }
};

/// Selects the first of the sorted pairs of each row; all of them become groups.
template <class Key, class Position>
struct Groups {
  const Key* keys;
  const Position* positions;
  std::int64_t count, capacity, rows;
  std::int32_t* present;  // how many pairs name a row
  GroupOutputs to;

  TANDEM_HOST_DEVICE bool names_row(std::int64_t i) const {
    return keys[i] != static_cast<Key>(rows);
  }
  TANDEM_HOST_DEVICE void note(std::int64_t i) const {
    if (i >= count) return;
    if (names_row(i)) {
      if (i + 1 == count) *present = static_cast<std::int32_t>(count);
    } else if (i == 0 || names_row(i - 1)) {
      *present = static_cast<std::int32_t>(i);
    }
  }
  TANDEM_HOST_DEVICE bool selected(std::int64_t i) const {
    return i < count && names_row(i) && (i == 0 || keys[i] != keys[i - 1]);
  }
  TANDEM_HOST_DEVICE void emit(std::int64_t i, bool picked, std::int64_t before,
                               std::int64_t all) const {
    if (i < count) {
      const bool in_group = names_row(i);
      const auto group = static_cast<std::int32_t>(picked ? before : before - 1);
      const auto position = static_cast<std::int32_t>(positions[i]);
      if (to.order != nullptr) to.order[i] = in_group ? position : -1;
      if (to.inverse != nullptr) to.inverse[position] = in_group ? group : absent_narrow;
      if (picked && to.unique != nullptr) to.unique[before] = static_cast<std::int64_t>(keys[i]);
      if (picked && to.offsets != nullptr) to.offsets[before] = static_cast<std::int32_t>(i);
    }
    if (i >= all && i <= capacity) {
      if (to.unique != nullptr && i < capacity) to.unique[i] = -1;
      if (to.offsets != nullptr) to.offsets[i] = *present;
    }
    if (i == 0 && to.count != nullptr) *to.count = static_cast<std::int32_t>(all);
  }
};

constexpr int small_threads = 512, small_items = 8;
constexpr int small_warps = small_threads / 32;
constexpr std::int64_t most_small = small_threads * small_items;

/// The whole grouping in one block, for up to `most_small` ids.
struct GroupFew {
  AllIds ids;
  int passes;
  Groups<std::uint32_t, std::uint16_t> groups;  // keys, positions and `present` are the block's own

  static constexpr std::size_t positions_at = most_small * sizeof(std::uint32_t);
  static constexpr std::size_t counters_at = positions_at + most_small * sizeof(std::uint16_t);
  static constexpr std::size_t scratch_at =
      counters_at + small_warps * digits * sizeof(std::uint16_t);
  static constexpr std::size_t present_at = scratch_at + 2 * small_threads * sizeof(int);
  static constexpr std::size_t shared_bytes = present_at + sizeof(std::int32_t);

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    auto* const keys = block.template shared<std::uint32_t>();
    auto* const positions = block.template shared<std::uint16_t>(positions_at);
    auto* const counters = block.template shared<std::uint16_t>(counters_at);
    int* const scratch = block.template shared<int>(scratch_at);
    auto* const present = block.template shared<std::int32_t>(present_at);
    const auto size = static_cast<int>(groups.count);
    typename Block::template Private<Items<std::uint32_t, small_items>> own;
    typename Block::template Private<Items<int, small_items>> ranks, places;
    typename Block::template Private<int> starts;
    block.each([&](int thread) {
      TANDEM_UNROLL
      for (int j = 0; j < small_items; ++j) {
        const int place = item_place<small_items>(thread, j);
        places(thread).at[j] = place;
        own(thread).at[j] = place < size ? static_cast<std::uint32_t>(ids.key(place, true)) : 0;
      }
    });
    for (int pass = 0; pass < passes; ++pass) {
      const int shift = pass * digit_bits;
      block.each([&](int thread) {
        for (int i = thread; i < small_warps * digits; i += small_threads) counters[i] = 0;
        if (pass == 0) return;
        TANDEM_UNROLL
        for (int j = 0; j < small_items; ++j) {
          const int place = item_place<small_items>(thread, j);
          if (place >= size) continue;
          own(thread).at[j] = keys[place];
          places(thread).at[j] = positions[place];
        }
      });
      block.sync();
      rank_items<std::uint16_t, std::uint32_t, small_items>(block, own, shift, size, counters,
                                                            ranks);
      block.sync();
      block.each([&](int digit) {
        int all = 0;
        for (int warp = 0; warp < small_warps && digit < digits; ++warp) {
          std::uint16_t& counter = counters[warp * digits + digit];
          const int in_warp = counter;
          counter = static_cast<std::uint16_t>(all);
          all += in_warp;
        }
        starts(digit) = all;
      });
      scan_block(block, starts, scratch);
      block.each([&](int digit) {
        if (digit < digits) scratch[digit] = starts(digit);
      });
      block.sync();
      block.each([&](int thread) {
        TANDEM_UNROLL
        for (int j = 0; j < small_items; ++j) {
          if (item_place<small_items>(thread, j) >= size) continue;
          const std::uint32_t key = own(thread).at[j];
          const int digit = static_cast<int>(key >> shift & 255u);
          const int to =
              scratch[digit] + counters[thread / 32 * digits + digit] + ranks(thread).at[j];
          keys[to] = key;
          positions[to] = static_cast<std::uint16_t>(places(thread).at[j]);
        }
      });
      block.sync();
    }
    Groups<std::uint32_t, std::uint16_t> mine = groups;
    mine.keys = keys;
    mine.positions = positions;
    mine.present = present;
    block.each([&](int thread) {
      int picked = 0;
      for (int i = thread * small_items; i < (thread + 1) * small_items; ++i) {
        mine.note(i);
        picked += mine.selected(i) ? 1 : 0;
      }
      starts(thread) = picked;
    });
    const int all = scan_block(block, starts, scratch);
    block.each([&](int thread) {
      int before = starts(thread);
      for (int i = thread * small_items; i < (thread + 1) * small_items; ++i) {
        const bool picked = mine.selected(i);
        mine.emit(i, picked, before, all);
        before += picked ? 1 : 0;
      }
      if (thread == 0 && mine.capacity == most_small) mine.emit(most_small, false, all, all);
    });
  }
};

}  // namespace

IdGroups::IdGroups(std::vector<Ids> arrays, std::int64_t rows)
    : arrays_(std::move(arrays)), rows_(rows) {
  for (const Ids& ids : arrays_) count_ += ids.count;
  capacity_ = std::min(count_, rows_);
  // Keys are 0 to `rows`, with `rows` for absent ones.
  int bits = 1;
  while (bits < 63 && rows_ >> bits != 0) ++bits;
  passes_ = (bits + digit_bits - 1) / digit_bits;
  wide_keys_ = bits > 32;
  small_ = count_ <= most_small && !wide_keys_;
  if (count_ == 0 || small_) return;
  const auto n = static_cast<std::size_t>(count_);
  const std::int64_t tiles = (count_ + sort_tile - 1) / sort_tile;
  const std::int64_t segments = (tiles + sort_segment - 1) / sort_segment;
  bytes_ = 2 * padded(n * (wide_keys_ ? 8 : 4)) + 2 * padded(n * 4) +
           padded(static_cast<std::size_t>(tiles) * digits * 4) +
           padded(static_cast<std::size_t>(segments) * digits * 4) + padded(4) +
           select_bytes(count_ + 1);
}

template <class Key>
void IdGroups::sort(GpuContext& gpu, const void* const* ids, const GroupOutputs& outputs,
                    void* workspace, const IdReport& report, void* queue) const {
  AllIds all{};
  all.rows = rows_;
  all.report = report;
  std::int64_t start = 0;
  for (std::size_t k = 0; k < arrays_.size(); start += arrays_[k++].count) {
    if (arrays_[k].count == 0) continue;
    all.data[all.arrays] = ids[k];
    all.starts[all.arrays] = static_cast<std::int32_t>(start);
    all.wide[all.arrays++] = arrays_[k].wide;
  }
  if (small_) {
    const GroupFew body{
        all, passes_, {nullptr, nullptr, count_, capacity_, rows_, nullptr, outputs}};
    const LaunchShape shape{.threads = small_threads, .shared_bytes = GroupFew::shared_bytes};
    gpu.launch(launch_of("group few ids", shape, body), queue);
    return;
  }
  const auto n = static_cast<std::size_t>(count_);
  const std::int64_t tiles = (count_ + sort_tile - 1) / sort_tile;
  const std::int64_t parts = (tiles + sort_segment - 1) / sort_segment;
  char* memory = static_cast<char*>(workspace);
  const auto take = [&](std::size_t bytes) {
    void* const own = memory;
    memory += padded(bytes);
    return own;
  };
  Key* keys[2];
  std::int32_t* positions[2];
  for (Key*& buffer : keys) buffer = static_cast<Key*>(take(n * sizeof(Key)));
  for (std::int32_t*& buffer : positions) buffer = static_cast<std::int32_t*>(take(n * 4));
  auto* const counts =
      static_cast<std::int32_t*>(take(static_cast<std::size_t>(tiles) * digits * 4));
  auto* const segments =
      static_cast<std::int32_t*>(take(static_cast<std::size_t>(parts) * digits * 4));
  auto* const present = static_cast<std::int32_t*>(take(4));

  const auto shape = [&](std::int64_t blocks, std::size_t shared) {
    return LaunchShape{
        .blocks = static_cast<unsigned>(blocks), .threads = sort_threads, .shared_bytes = shared};
  };
  for (int pass = 0; pass < passes_; ++pass) {
    const int shift = pass * digit_bits, from = pass % 2;
    const auto count_digits = [&](const auto& source) {
      const CountDigits<Key, std::decay_t<decltype(source)>> body{source, count_, shift, counts};
      gpu.launch(launch_of("count digits", shape(tiles, body.shared_bytes), body), queue);
    };
    if (pass == 0)
      count_digits(KeysOfIds<Key>{all, keys[0]});
    else
      count_digits(KeptKeys<Key>{keys[from]});
    if (parts > 1) {
      const SumDigits body{counts, tiles, segments};
      gpu.launch(launch_of("sum digits", shape(parts, 0), body), queue);
    }
    const ScatterDigits<Key> body{keys[from],
                                  pass == 0 ? nullptr : positions[from],
                                  keys[1 - from],
                                  positions[1 - from],
                                  count_,
                                  tiles,
                                  shift,
                                  counts,
                                  parts > 1 ? segments : nullptr};
    gpu.launch(launch_of("scatter digits", shape(tiles, body.shared_bytes), body), queue);
  }
  const Groups<Key, std::int32_t> select{
      keys[passes_ % 2], positions[passes_ % 2], count_, capacity_, rows_, present, outputs};
  select_in_order(gpu, select, count_ + 1, memory, queue);
}

void IdGroups::run(GpuContext& gpu, const void* const* ids, const GroupOutputs& outputs,
                   void* workspace, const IdReport& report, void* queue) const {
  if (count_ == 0) {
    zero_bytes(gpu, outputs.offsets, sizeof(std::int32_t), queue);
    zero_bytes(gpu, outputs.count, sizeof(std::int32_t), queue);
  } else if (wide_keys_) {
    sort<std::uint64_t>(gpu, ids, outputs, workspace, report, queue);
  } else {
    sort<std::uint32_t>(gpu, ids, outputs, workspace, report, queue);
  }
}

}  // namespace tandem::cuda
