// Times of the host functions of embedding tables at the size of the wide and deep networks:
// 184,968 rows, 624,000 lookups a step, 80 columns with lazy Adam and 1 column with FTRL.
// Usage: bench_rows [threads] [repeats]
#include <fmt/format.h>

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "engine/optimizers/settings.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/row_rule.h"
#include "kernels/cpu/rows/rows.h"

namespace tandem {
namespace {

constexpr std::int64_t table_rows = 184968, positions = 624000, columns = 80;

/// Memory in huge pages if the system has them, already touched, as in the engine's arenas.
template <class T>
class Array {
 public:
  explicit Array(std::int64_t count, T value = T{})
      : data_(static_cast<T*>(std::aligned_alloc(huge, bytes(count)))) {
    madvise(data_, bytes(count), MADV_HUGEPAGE);
    std::fill(data_, data_ + count, value);
  }
  ~Array() { std::free(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  T* data() { return data_; }
  T& operator[](std::int64_t i) { return data_[i]; }

 private:
  static constexpr std::size_t huge = std::size_t{2} << 20;
  static std::size_t bytes(std::int64_t count) {
    return (static_cast<std::size_t>(count) * sizeof(T) + huge) / huge * huge;
  }
  T* data_;
};

struct Times {
  double median, least;  // milliseconds
};

int repeats = 15;

Times time(const std::function<void()>& f) {
  std::vector<double> all;
  for (int i = 0; i < repeats + 2; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (i >= 2) all.push_back(took.count());
  }
  std::sort(all.begin(), all.end());
  return {all[all.size() / 2], all.front()};
}

/// GB/s of x += 1 in place over an array larger than the caches, counting reads and writes; the
/// best of the repeats.
double in_place_bandwidth(int threads) {
  constexpr std::int64_t count = std::int64_t{64} << 20;
  Array<float> x(count, 1.0f);
  const Times t = time([&] {
    parallel_ranges(threads, count, count * 8, [&](std::int64_t begin, std::int64_t end) {
      float* data = x.data();
      for (std::int64_t i = begin; i < end; ++i) data[i] += 1.0f;
    });
  });
  return static_cast<double>(count) * 8e-6 / t.least;
}

double bandwidth = 0;

void report(const std::string& name, double bytes, const std::function<void()>& f) {
  const Times t = time(f);
  fmt::print("  {:<34} {:8.2f} {:8.2f} {:8.1f} {:8.1f} {:9.2f}\n", name, t.median, t.least,
             bytes * 1e-6, bytes * 1e-6 / t.least, t.least / (bytes * 1e-6 / bandwidth));
}

std::vector<std::int64_t> draw(bool zipf) {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> ids(positions);
  if (!zipf) {
    std::uniform_int_distribution<std::int64_t> any(0, table_rows - 1);
    for (auto& id : ids) id = any(random);
    return ids;
  }
  std::vector<double> sums(table_rows);
  double total = 0;
  for (std::int64_t k = 0; k < table_rows; ++k) {
    total += std::pow(static_cast<double>(k + 1), -1.05);
    sums[static_cast<std::size_t>(k)] = total;
  }
  std::vector<std::int64_t> permuted(table_rows);
  std::iota(permuted.begin(), permuted.end(), 0);
  std::shuffle(permuted.begin(), permuted.end(), random);
  std::uniform_real_distribution<double> uniform(0, total);
  for (auto& id : ids) {
    const auto at = std::lower_bound(sums.begin(), sums.end(), uniform(random)) - sums.begin();
    id = permuted[static_cast<std::size_t>(std::min<std::int64_t>(at, table_rows - 1))];
  }
  return ids;
}

void run(bool zipf, Isa isa, int threads) {
  const std::vector<std::int64_t> ids = draw(zipf);
  const IdArray id_array{ids.data(), positions, true};
  Array<std::int32_t> rows(table_rows), offsets(table_rows + 1), order(positions),
      inverse(positions);
  const RowGroups groups{rows.data(), false, offsets.data(), order.data(), nullptr};
  RowGroups with_inverse = groups;
  with_inverse.inverse = inverse.data();
  Array<unsigned char> unique_scratch(
      static_cast<std::int64_t>(unique_rows_scratch_bytes(positions, table_rows, threads)));
  const std::int64_t count =
      unique_rows(&id_array, 1, table_rows, groups, unique_scratch.data(), threads);
  fmt::print("{}: {} distinct rows\n", zipf ? "zipf(1.05)" : "uniform", count);
  fmt::print("  {:<34} {:>8} {:>8} {:>8} {:>8} {:>9}\n", "", "ms", "least", "MB", "GB/s",
             "x in place");  // the last two follow from the least time
  const double index_bytes = positions * (8.0 + 4) + static_cast<double>(count) * 8;
  report("unique_rows", index_bytes,
         [&] { unique_rows(&id_array, 1, table_rows, groups, unique_scratch.data(), threads); });
  report("unique_rows with inverse", index_bytes + positions * 4.0, [&] {
    unique_rows(&id_array, 1, table_rows, with_inverse, unique_scratch.data(), threads);
  });

  Array<float> weights(table_rows * columns, 0.01f), first(table_rows * columns),
      second(table_rows * columns), y(positions * columns);
  const RowLookup lookup{weights.data(), table_rows, columns, id_array, y.data(), columns};
  report("lookup x80", positions * (columns * 4.0 + 8) + static_cast<double>(count) * columns * 4,
         [&] { gather_rows(lookup, isa, threads); });
  const RowLookup packed{weights.data(), table_rows, columns, {rows.data(), count, false},
                         y.data(),       columns};
  report("touched rows x80, packed", static_cast<double>(count) * (columns * 8.0 + 4),
         [&] { gather_rows(packed, isa, threads); });
  Array<std::uint16_t> tops(table_rows * columns, 0x3c24);
  Array<std::int16_t> tails(table_rows * columns, -0x285d);
  RowLookup of_halves = lookup;
  of_halves.table = tops.data();
  of_halves.bfloat16 = of_halves.widen = true;
  report("lookup x80, split",
         positions * (columns * 4.0 + 8) + static_cast<double>(count) * columns * 2,
         [&] { gather_rows(of_halves, isa, threads); });
  RowLookup packed_halves = packed;
  packed_halves.table = tops.data();
  packed_halves.bfloat16 = true;
  report("touched rows x80, packed, split", static_cast<double>(count) * (columns * 4.0 + 4),
         [&] { gather_rows(packed_halves, isa, threads); });

  Array<float> dy(positions * columns, 1e-3f), sums(count * columns);
  const GradientArray deep_array{dy.data(), positions, columns};
  const RowGradients deep{&deep_array, 1, columns, false, offsets.data(), order.data(), count};
  Array<unsigned char> scratch(
      static_cast<std::int64_t>(row_scratch_bytes(count, columns, threads)));
  report("segment_sum x80",
         positions * (columns * 4.0 + 4) + static_cast<double>(count) * columns * 4,
         [&] { segment_sum(deep, sums.data(), scratch.data(), isa, threads); });
  report("rows_sum_of_squares x80", positions * (columns * 4.0 + 4),
         [&] { rows_sum_of_squares(deep, scratch.data(), isa, threads); });
  const auto step_of = [](const char* op, const Attributes& settings, double lr) {
    return row_factors(op, settings).step(lr, 10, 1.0);
  };
  const RowStep adam = step_of("AdamUpdate", attributes_of(Adam::Settings{}), 1e-3);
  const RowTable deep_table{weights.data(), {first.data(), second.data()}, rows.data(), false};
  report("update x80 lazy adam", update_rows_bytes(adam.layout, deep, positions),
         [&] { update_rows(adam, deep_table, deep, scratch.data(), isa, threads); });
  const RowStep rowwise =
      step_of("RowwiseAdagradUpdate", attributes_of(RowwiseAdagrad::Settings{}), 1e-2);
  Array<float> row_sums(table_rows, 0.1f);
  const RowTable rowwise_table{weights.data(), {row_sums.data(), nullptr}, rows.data(), false};
  report("update x80 rowwise adagrad", update_rows_bytes(rowwise.layout, deep, positions),
         [&] { update_rows(rowwise, rowwise_table, deep, scratch.data(), isa, threads); });
  RowTable split_table = deep_table;
  split_table.weights = nullptr;
  split_table.tops = tops.data();
  split_table.tails = tails.data();
  report("update x80 lazy adam, split", update_rows_bytes(adam.layout, deep, positions),
         [&] { update_rows(adam, split_table, deep, scratch.data(), isa, threads); });

  Array<float> wide(table_rows), n(table_rows, 0.1f), z(table_rows), wide_y(positions),
      wide_dy(positions, 1e-3f);
  const RowLookup wide_lookup{wide.data(), table_rows, 1, id_array, wide_y.data(), 1};
  report("lookup x1", positions * 12.0 + static_cast<double>(count) * 4,
         [&] { gather_rows(wide_lookup, isa, threads); });
  const GradientArray wide_array{wide_dy.data(), positions, 1};
  const RowGradients wide_gradients{&wide_array, 1, 1, false, offsets.data(), order.data(), count};
  const RowStep ftrl =
      step_of("FtrlUpdate", attributes_of(Ftrl::Settings{.l1 = 1e-8, .l2 = 1e-8}), 5e-2);
  const RowTable wide_table{wide.data(), {n.data(), z.data()}, rows.data(), false};
  report("update x1 ftrl", update_rows_bytes(ftrl.layout, wide_gradients, positions),
         [&] { update_rows(ftrl, wide_table, wide_gradients, scratch.data(), isa, threads); });
  RowTable split_wide = wide_table;
  split_wide.weights = nullptr;
  split_wide.tops = tops.data();
  split_wide.tails = tails.data();
  report("update x1 ftrl, split", update_rows_bytes(ftrl.layout, wide_gradients, positions),
         [&] { update_rows(ftrl, split_wide, wide_gradients, scratch.data(), isa, threads); });
  report("all of a step",
         update_rows_bytes(adam.layout, deep, positions) +
             update_rows_bytes(ftrl.layout, wide_gradients, positions) + index_bytes +
             positions * (columns * 4.0 + 20) + static_cast<double>(count) * (columns * 4.0 + 4),
         [&] {
           unique_rows(&id_array, 1, table_rows, groups, unique_scratch.data(), threads);
           gather_rows(lookup, isa, threads);
           gather_rows(wide_lookup, isa, threads);
           update_rows(adam, deep_table, deep, scratch.data(), isa, threads);
           update_rows(ftrl, wide_table, wide_gradients, scratch.data(), isa, threads);
         });
}

/// Larger tables, to compare the two sorts.
void run_sizes(int threads) {
  fmt::print("unique_rows, uniform ids, {} positions\n", positions);
  for (const std::int64_t size : {1LL << 20, 4LL << 20, 40LL << 20, 1LL << 31}) {
    std::mt19937_64 random(1);
    std::uniform_int_distribution<std::int64_t> any(0, size - 1);
    std::vector<std::int64_t> ids(positions);
    for (auto& id : ids) id = any(random);
    const IdArray array{ids.data(), positions, true};
    Array<std::int64_t> rows(positions);
    Array<std::int32_t> offsets(positions + 1), order(positions);
    const auto bytes =
        static_cast<std::int64_t>(unique_rows_scratch_bytes(positions, size, threads));
    Array<unsigned char> scratch(bytes);
    const RowGroups groups{rows.data(), true, offsets.data(), order.data(), nullptr};
    const Times t = time([&] { unique_rows(&array, 1, size, groups, scratch.data(), threads); });
    fmt::print("  {:>12} rows {:8.2f} ms, scratch {:.1f} MB\n", size, t.median,
               static_cast<double>(bytes) * 1e-6);
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  using namespace tandem;
  const int threads = argc > 1 ? std::atoi(argv[1]) : usable_cores();
  if (argc > 2) repeats = std::atoi(argv[2]);
  const Isa isa = isa_of({"cpu", processor_features(), threads});
  bandwidth = in_place_bandwidth(threads);
  fmt::print("{} threads, in-place update {:.1f} GB/s\n", threads, bandwidth);
  run(true, isa, threads);
  run(false, isa, threads);
  run_sizes(threads);
  return 0;
}
