#include "kernels/cpu/products/gemm.h"

#include <unistd.h>

#include <cassert>
#include <utility>

#include "kernels/cpu/parallel.h"

namespace tandem {
namespace {

struct Machine {
  std::int64_t rows, width;     // tile: rows x 2 vectors
  std::int64_t k_block;         // so that a panel of B stays in a near cache
  std::int64_t k_block_packed;  // k_block where A is packed
  std::int64_t a_block_floats;  // packed A of one part: read in order, once for each block of B
  std::int64_t b_block_floats;  // packed B of one part: a good half of L2
  // Panels of B from which on it pays to pack A's rows, where their stride is harmless and where
  // they collide.
  std::int64_t pack_rows_from, pack_colliding_from;
};

/// Whether the first cache holds the lines that a tile's rows have in one set (Intel's of 48 KiB).
bool has_many_ways() {
  static const bool many = sysconf(_SC_LEVEL1_DCACHE_ASSOC) >= 12;
  return many;
}

Machine machine_of(Isa isa) {
  if (isa != Isa::avx512) return {6, 8, 320, 256, 256 * 1024, 64 * 1024, 16, 3};
  Machine machine{14, 16, 1024, 384, 1024 * 1024, 256 * 1024, 16, 3};
  if (has_many_ways()) machine.pack_rows_from = machine.pack_colliding_from = 48;
  return machine;
}

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

GemmShape transposed(const GemmShape& s) {
  return {.m = s.n,
          .n = s.m,
          .k = s.k,
          .a_m = s.b_n,
          .a_k = s.b_k,
          .b_k = s.a_k,
          .b_n = s.a_m,
          .c_m = s.c_n,
          .c_n = s.c_m,
          .bias_m = s.bias_n,
          .bias_n = s.bias_m,
          .multiplier_m = s.multiplier_n,
          .multiplier_n = s.multiplier_m};
}

// Where a tile's rows or panels lie at multiples of 4 KiB they fall into a few sets of the cache.
bool collides(std::int64_t stride) { return stride % 1024 == 0; }

bool should_pack_a(const GemmShape& s, std::int64_t panels, const Machine& machine) {
  if (s.a_m == 1) return panels >= 3;
  if (s.a_k == 1)
    return panels >= (collides(s.a_m) ? machine.pack_colliding_from : machine.pack_rows_from);
  return true;
}

bool should_pack_b(const GemmShape& s, std::int64_t tiles) { return s.b_n != 1 || tiles >= 4; }

// Cycles of one part, roughly: products at one vector FMA each half cycle, copies by their kind.
double cycles(const GemmShape& s, std::int64_t m, std::int64_t n, const Machine& machine) {
  const double k = static_cast<double>(s.k);
  const std::int64_t tiles = up(m, machine.rows), panels = up(n, 2 * machine.width);
  const auto vectors = static_cast<double>(up(n, machine.width));
  double sum = static_cast<double>(m) * vectors * k * 0.5;
  // A short tile waits for the latency of its own sums; one whose lines are C's columns is turned.
  const std::int64_t blocks = up(s.k, machine.k_block_packed);
  sum += static_cast<double>(tiles * panels * blocks) * (s.c_n == 1 ? 20.0 : 420.0);
  if (should_pack_b(s, tiles)) sum += static_cast<double>(n) * k * (s.b_n == 1 ? 0.2 : 0.5);
  if (should_pack_a(s, panels, machine))
    sum += static_cast<double>(m) * k * (s.a_m == 1 ? 0.25 : 0.5);
  // Reading A or B for the first time.
  return sum + 0.1 * k * static_cast<double>(m + n);
}

}  // namespace

GemmPlan plan_gemm(const GemmShape& shape, int threads, Isa isa) {
  assert(isa != Isa::baseline);
  assert(shape.c_m == 1 || shape.c_n == 1);
  const Machine machine = machine_of(isa);
  const std::int64_t flops = 2 * shape.m * shape.n * shape.k;
  threads = parts_for(threads, flops, grain_flops);

  GemmPlan plan;
  double least = -1;
  for (const bool swapped : {false, true}) {
    const GemmShape s = swapped ? transposed(shape) : shape;
    for (int parts_m = 1; parts_m <= threads; ++parts_m) {
      if (threads % parts_m != 0) continue;
      const int parts_n = threads / parts_m;
      const std::int64_t m = up(up(s.m, machine.rows / 2), parts_m) * (machine.rows / 2);
      const std::int64_t n = up(up(s.n, machine.width), parts_n) * machine.width;
      const double cost = cycles(s, std::min(m, s.m), std::min(n, s.n), machine);
      if (least >= 0 && cost >= least) continue;
      least = cost;
      plan.shape = s;
      plan.swapped = swapped;
      plan.parts_m = parts_m;
      plan.parts_n = parts_n;
    }
  }
  plan.isa = isa;
  const GemmShape& s = plan.shape;
  std::int64_t most_m = 0, most_n = 0;
  for (int i = 0; i < plan.parts_m; ++i) {
    most_m = std::max(most_m, part_of(s.m, i, plan.parts_m).size());
  }
  for (int i = 0; i < plan.parts_n; ++i) {
    most_n = std::max(most_n, part_of(s.n, i, plan.parts_n, machine.width).size());
  }
  plan.pack_a = should_pack_a(s, up(most_n, 2 * machine.width), machine);
  plan.pack_b = should_pack_b(s, up(most_m, machine.rows));
  const std::int64_t longest = plan.pack_a ? machine.k_block_packed : machine.k_block;
  const std::int64_t blocks = std::max<std::int64_t>(1, up(s.k, longest));
  plan.k_block = std::max<std::int64_t>(1, up(s.k, blocks));
  // Many tiles of A at once: each is packed once for all of B, and lines of its source are read
  // whole, from few pages.
  const std::int64_t step = up(machine.rows, machine.width) * machine.width;
  const std::int64_t tiles = std::max<std::int64_t>(1, up(most_m, machine.rows));
  plan.m_block = tiles;
  if (plan.pack_a) {
    plan.m_block =
        std::clamp<std::int64_t>(machine.a_block_floats / (plan.k_block * step), 1, tiles);
  }
  const std::int64_t panel = 2 * machine.width;
  plan.n_block = std::max(panel, machine.b_block_floats / plan.k_block / panel * panel);
  plan.n_block = std::min(plan.n_block, up(std::max<std::int64_t>(most_n, 1), panel) * panel);
  const std::int64_t a_panels = plan.pack_a ? plan.m_block : 0;
  const std::int64_t b_panels = plan.pack_b ? plan.n_block / panel : 1;
  const std::int64_t floats = a_panels * panel_distance(plan.k_block, step) +
                              b_panels * panel_distance(plan.k_block, panel);
  plan.part_bytes = static_cast<std::size_t>(up(floats * 4, 64) * 64);
  return plan;
}

void run_gemm(const GemmPlan& plan, const GemmArguments& arguments, void* workspace) {
  const GemmShape& s = plan.shape;
  parallel_parts(plan.parts(), [&](int index) {
    const Range m = part_of(s.m, index / plan.parts_n, plan.parts_m);
    const Range n = part_of(s.n, index % plan.parts_n, plan.parts_n, machine_of(plan.isa).width);
    if (m.size() == 0 || n.size() == 0) return;
    GemmPart part{&plan, arguments, m.size(), n.size(),
                  reinterpret_cast<float*>(static_cast<char*>(workspace) +
                                           plan.part_bytes * static_cast<std::size_t>(index))};
    GemmArguments& x = part.arguments;
    if (plan.swapped) std::swap(x.a, x.b);
    x.a += m.begin * s.a_m;
    x.b += n.begin * s.b_n;
    x.c += m.begin * s.c_m + n.begin * s.c_n;
    if (x.bias) x.bias += m.begin * s.bias_m + n.begin * s.bias_n;
    if (x.multiplier) x.multiplier += m.begin * s.multiplier_m + n.begin * s.multiplier_n;
    if (plan.isa == Isa::avx512) {
      gemm_part_avx512(part);
    } else {
      gemm_part_avx2(part);
    }
  });
}

}  // namespace tandem
