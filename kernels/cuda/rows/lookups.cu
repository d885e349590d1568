// Lookups that copy rows: Gather, GatherRows and GatherParts, of any element type; Gather that
// widens 16 bits to float32.
#include <algorithm>

#include "kernels/cuda/launching.h"
#include "kernels/cuda/rows/ids.h"
#include "kernels/cuda/rows/lane_groups.h"
#include "kernels/cuda/rows/row_lists.h"
#include "kernels/cuda/updates/floats.h"
#include "kernels/shared/block/block.h"

namespace tandem::cuda {
namespace {

constexpr int block_threads = 256;
constexpr int rows_at_once = 4;  // rows that a group of threads loads at the same time

/// Where result i comes from, in rows of `table`: -1 for zeros.
struct Checked {
  IdArray ids;
  std::int64_t rows;   // rows of a table, which ids refer to
  std::int64_t count;  // number of ids; there are `outer` tables with the same ids
  std::int64_t outer;
  IdReport report;

  TANDEM_HOST_DEVICE std::int64_t results() const { return outer * count; }
  TANDEM_HOST_DEVICE std::int64_t row(std::int64_t i, bool reports) const {
    const std::int64_t table = outer == 1 ? 0 : i / count;
    const std::int64_t row = row_of(ids, i - table * count, rows, reports ? &report : nullptr);
    return row < 0 ? -1 : table * rows + row;
  }
};

/// The first *count of `unique`.
struct Packed {
  const std::int64_t* unique;
  const std::int32_t* count;

  TANDEM_HOST_DEVICE std::int64_t results() const { return *count; }
  TANDEM_HOST_DEVICE std::int64_t row(std::int64_t i, bool) const { return unique[i]; }
};

/// Through `place`; rows from `first_rows` on are those of a second table.
struct Placed {
  const std::int32_t* place;
  const std::int32_t* indices;
  std::int64_t count;

  TANDEM_HOST_DEVICE std::int64_t results() const { return count; }
  TANDEM_HOST_DEVICE std::int64_t row(std::int64_t i, bool) const {
    return indices[i] < 0 ? -1 : place[indices[i]];
  }
};

struct Tables {
  const void* first;
  const void* second = nullptr;
  std::int64_t first_rows = 0;  // where there is a second one
};

/// y[i] = row i of the source. Unit: what a thread moves at once.
template <class Unit, class Source>
struct CopyRows {
  Source source;
  Tables tables;
  Unit* y;
  std::int64_t units;  // units of one row
  int lanes;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t results = source.results(), groups = block.threads() / lanes;
    const std::int64_t stride = static_cast<std::int64_t>(block.blocks()) * groups * rows_at_once;
    block.each([&](int thread) {
      const int lane = thread % lanes;
      const std::int64_t own =
          static_cast<std::int64_t>(block.index()) * groups * rows_at_once + thread / lanes;
      for (std::int64_t base = own; base < results; base += stride) {
        const Unit* from[rows_at_once];
        TANDEM_UNROLL
        for (int k = 0; k < rows_at_once; ++k) {
          const std::int64_t i = base + k * groups;
          const std::int64_t row = i < results ? source.row(i, lane == 0) : -1;
          from[k] = row < 0 ? nullptr : row_at(row);
        }
        for (std::int64_t u = lane; u < units; u += lanes) {
          Unit unit[rows_at_once];
          TANDEM_UNROLL
          for (int k = 0; k < rows_at_once; ++k) {
            unit[k] = from[k] == nullptr ? Unit{} : from[k][u];
          }
          TANDEM_UNROLL
          for (int k = 0; k < rows_at_once; ++k) {
            const std::int64_t i = base + k * groups;
            if (i < results) put(i * units + u, unit[k]);
          }
        }
      }
    });
  }

  TANDEM_HOST_DEVICE const Unit* row_at(std::int64_t row) const {
    if (tables.second != nullptr && row >= tables.first_rows) {
      return static_cast<const Unit*>(tables.second) + (row - tables.first_rows) * units;
    }
    return static_cast<const Unit*>(tables.first) + row * units;
  }
  TANDEM_HOST_DEVICE void put(std::int64_t at, const Unit& unit) const {
    const Unit one[] = {unit};
    store(y + at, one);
  }
};

template <class Unit, class Source>
void launch_copies(GpuContext& gpu, const Source& source, const Tables& tables, void* y,
                   std::int64_t results, std::int64_t row_bytes, void* queue) {
  const auto units = row_bytes / static_cast<std::int64_t>(sizeof(Unit));
  const int lanes = lanes_for(units);
  const CopyRows<Unit, Source> body{source, tables, static_cast<Unit*>(y), units, lanes};
  const LaunchShape shape{.blocks = blocks_for(gpu, results, block_threads / lanes * rows_at_once),
                          .threads = block_threads};
  gpu.launch(launch_of("copy rows", shape, body), queue);
}

/// Copies up to `results` rows, in the largest units that fit the addresses.
template <class Source>
void copy_rows(GpuContext& gpu, const Source& source, const Tables& tables, void* y,
               std::int64_t results, std::int64_t row_bytes, void* queue) {
  if (results == 0 || row_bytes == 0) return;
  const auto fits = [&](int bytes) {
    return row_bytes % bytes == 0 && is_aligned(y, bytes) && is_aligned(tables.first, bytes) &&
           is_aligned(tables.second, bytes);
  };
  if (fits(16)) {
    launch_copies<uint4>(gpu, source, tables, y, results, row_bytes, queue);
  } else if (fits(8)) {
    launch_copies<std::uint64_t>(gpu, source, tables, y, results, row_bytes, queue);
  } else if (fits(4)) {
    launch_copies<std::uint32_t>(gpu, source, tables, y, results, row_bytes, queue);
  } else if (fits(2)) {
    launch_copies<std::uint16_t>(gpu, source, tables, y, results, row_bytes, queue);
  } else {
    launch_copies<std::uint8_t>(gpu, source, tables, y, results, row_bytes, queue);
  }
}

/// y[i] = row i of the source, whose 16 bits become float32; n elements at a time.
template <int n>
struct WidenRows {
  Checked source;
  const void* table;
  Floats type;
  float* y;
  std::int64_t columns;
  int lanes;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t results = source.results(), groups = block.threads() / lanes;
    block.each([&](int thread) {
      const int lane = thread % lanes;
      for (std::int64_t i = block.index() * groups + thread / lanes; i < results;
           i += block.blocks() * groups) {
        const std::int64_t row = source.row(i, lane == 0);
        for (std::int64_t c = lane * n; c < columns; c += lanes * n) {
          Values<n> values{};
          if (row >= 0) values = load<n>(table, type, row * columns + c);
          store<n>(y, i * columns + c, values);
        }
      }
    });
  }
};

template <int n>
void launch_widening(GpuContext& gpu, const Checked& source, const void* table, Floats type,
                     float* y, std::int64_t columns, std::int64_t results, void* queue) {
  const int lanes = lanes_for((columns + n - 1) / n);
  const WidenRows<n> body{source, table, type, y, columns, lanes};
  const LaunchShape shape{.blocks = blocks_for(gpu, results, block_threads / lanes),
                          .threads = block_threads};
  gpu.launch(launch_of("widen rows", shape, body), queue);
}

std::unique_ptr<PreparedKernel> prepare_gather(const KernelRequest& r, const Gpu& gpu) {
  const TensorType &x = r.inputs[0].type, &indices = r.inputs[1].type;
  const std::int64_t axis = r.attributes().integer("axis");
  Checked source{};
  source.ids.wide = indices.dtype == DType::int64;
  source.rows = x.shape[static_cast<std::size_t>(axis)];
  source.count = indices.elements();
  source.outer = element_count(Shape(x.shape.begin(), x.shape.begin() + axis));
  const std::int64_t columns = element_count(Shape(x.shape.begin() + axis + 1, x.shape.end()));
  const std::int64_t results = source.outer * source.count;
  const bool widens = x.dtype != r.outputs[0].type.dtype;
  const auto row_bytes = columns * static_cast<std::int64_t>(size_of(x.dtype));
  return prepared([=, node = r.node_index,
                   type = floats_of(x.dtype).value_or(Floats::float32)](const KernelArguments& a) {
    if (results == 0 || columns == 0) return;
    Checked now = source;
    now.ids.data = a.inputs[1];
    now.report = IdReport(a, node);
    if (!widens) {
      copy_rows(*gpu, now, {a.inputs[0]}, a.outputs[0], results, row_bytes, a.queue);
      return;
    }
    auto* const to = static_cast<float*>(a.outputs[0]);
    const bool vector = columns % 4 == 0 && is_aligned(to, 16) && is_aligned(a.inputs[0], 8);
    const auto launch = vector ? launch_widening<4> : launch_widening<1>;
    launch(*gpu, now, a.inputs[0], type, to, columns, results, a.queue);
  });
}

std::optional<std::string> refuse_gather(const KernelRequest& r) {
  const DType x = r.inputs[0].type.dtype, y = r.outputs[0].type.dtype;
  if (r.inputs[0].type.shape[static_cast<std::size_t>(r.attributes().integer("axis"))] == 0)
    return "a table without rows";
  const bool widens = (x == DType::bfloat16 || x == DType::float16) && y == DType::float32;
  if (x == y || widens) return std::nullopt;
  return std::string(name_of(x)) + " looked up as " + std::string(name_of(y));
}

std::int64_t row_bytes_of(const TensorType& table) {
  return row_elements(table.shape) * static_cast<std::int64_t>(size_of(table.dtype));
}

std::unique_ptr<PreparedKernel> prepare_gather_rows(const KernelRequest& r, const Gpu& gpu) {
  return prepared([gpu, capacity = r.inputs[1].type.elements(),
                   row_bytes = row_bytes_of(r.inputs[0].type)](const KernelArguments& a) {
    const Packed source{static_cast<const std::int64_t*>(a.inputs[1]),
                        static_cast<const std::int32_t*>(a.inputs[2])};
    copy_rows(*gpu, source, {a.inputs[0]}, a.outputs[0], capacity, row_bytes, a.queue);
  });
}

std::unique_ptr<PreparedKernel> prepare_gather_parts(const KernelRequest& r, const Gpu& gpu) {
  return prepared([gpu, kept = r.inputs[0].type.shape[0], count = r.inputs[3].type.elements(),
                   row_bytes = row_bytes_of(r.inputs[0].type)](const KernelArguments& a) {
    const Placed source{static_cast<const std::int32_t*>(a.inputs[2]),
                        static_cast<const std::int32_t*>(a.inputs[3]), count};
    copy_rows(*gpu, source, {a.inputs[0], a.inputs[1], kept}, a.outputs[0], count, row_bytes,
              a.queue);
  });
}

}  // namespace

void add_lookups(KernelList& list, const Gpu& gpu) {
  add_row_major(list, "cuda.gather_rows", "Gather", refuse_gather, on(gpu, prepare_gather));
  add_row_major(list, "cuda.packed_rows", "GatherRows", refuse_nothing,
                on(gpu, prepare_gather_rows));
  add_row_major(list, "cuda.gather_parts", "GatherParts", refuse_nothing,
                on(gpu, prepare_gather_parts));
}

}  // namespace tandem::cuda
