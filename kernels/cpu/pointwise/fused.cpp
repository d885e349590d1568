// The kernel of scalar operators, fused bodies and reductions: threads take units of the tile plan,
// fetch what does not lie as a tile needs it, and run the steps of the tile program.
#include "kernels/cpu/pointwise/fused.h"

#include <cassert>
#include <cstring>
#include <limits>

#include "engine/operators/operator.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/tile_plan.h"
#include "kernels/cpu/strided.h"

namespace tandem {
namespace {

constexpr int max_places = 256;
constexpr std::int64_t rows_per_flush = 256;

template <class T>
void copy_block(const T* from, const std::int64_t* from_strides, T* to,
                const std::int64_t* to_strides, const std::int64_t* extents, int axes) {
  const std::int64_t n = extents[axes - 1], in = from_strides[axes - 1], out = to_strides[axes - 1];
  std::int64_t index[max_tile_axes] = {};
  while (true) {
    if (in == 1 && out == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    } else if (in == 0 && out == 1) {
      const T value = *from;
      for (std::int64_t i = 0; i < n; ++i) to[i] = value;
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i * out] = from[i * in];
    }
    int axis = axes - 2;
    for (; axis >= 0; --axis) {
      from += from_strides[axis];
      to += to_strides[axis];
      if (++index[axis] < extents[axis]) break;
      from -= from_strides[axis] * extents[axis];
      to -= to_strides[axis] * extents[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

void copy_block(std::size_t bytes, const void* from, const std::int64_t* from_strides, void* to,
                const std::int64_t* to_strides, const std::int64_t* extents, int axes) {
  const auto run = [&](auto tag) {
    using T = decltype(tag);
    copy_block(static_cast<const T*>(from), from_strides, static_cast<T*>(to), to_strides, extents,
               axes);
  };
  if (bytes == 4)
    run(float{});
  else if (bytes == 1)
    run(std::uint8_t{});
  else if (bytes == 2)
    run(std::uint16_t{});
  else
    run(std::uint64_t{});
}

// One thread's state: addresses of all places and what it has summed up.
struct Part {
  Part(const TilePlan& p, const VectorFunctions& f, const KernelArguments& a, char* workspace)
      : plan(p), program(p.program), functions(f), arguments(a) {
    const int operands = program.inputs + program.outputs;
    for (int i = 0; i < program.registers; ++i) {
      places[operands + i] = reinterpret_cast<float*>(workspace + i * register_bytes);
    }
    for (const auto& [index, value] : program.constants) {
      for (std::int64_t i = 0; i < tile_elements; ++i) places[operands + index][i] = value;
    }
    bytes_buffer = workspace + plan.convert_staging * register_bytes;
    for (int i = 0; i < operands; ++i) {
      const TileOperand& operand = plan.operands[i];
      if (operand.staging >= 0) {
        places[i] = reinterpret_cast<float*>(workspace + operand.staging * register_bytes);
      }
      if (operand.access == TileAccess::pattern) fetch(i, 0, plan.chunk);
    }
    clear();
  }

  const char* input(int i) const { return static_cast<const char*>(arguments.inputs[i]); }
  char* output(int i) const { return static_cast<char*>(arguments.outputs[i]); }

  // Strides of a contiguous tile of m indices of the cut axis.
  void block(std::int64_t m, std::int64_t* extents, std::int64_t* strides) const {
    std::int64_t stride = 1;
    for (int a = plan.axes - 1; a >= plan.cut; --a) {
      extents[a - plan.cut] = a == plan.cut ? m : plan.extents[a];
      strides[a - plan.cut] = stride;
      stride *= extents[a - plan.cut];
    }
  }

  void fetch(int i, std::int64_t offset, std::int64_t m) {
    const TileOperand& operand = plan.operands[i];
    std::int64_t extents[max_tile_axes], strides[max_tile_axes];
    block(m, extents, strides);
    void* to = operand.convert ? static_cast<void*>(bytes_buffer) : places[i];
    copy_block(operand.bytes, input(i) + offset * static_cast<std::int64_t>(operand.bytes),
               operand.strides + plan.cut, to, strides, extents, plan.axes - plan.cut);
    if (!operand.convert) return;
    call(TileOp::from_uint8, {reinterpret_cast<const float*>(bytes_buffer), nullptr, nullptr,
                              places[i], m * plan.inner, 0, 0});
  }

  void call(TileOp op, const TileCall& c) const { functions.tile[static_cast<int>(op)](c); }

  void decode(const std::vector<Digit>& digits, std::int64_t number) {
    for (std::size_t d = digits.size(); d-- > 0;) {
      const Digit& digit = digits[d];
      index[digit.axis] = number % digit.count * digit.stride;
      number /= digit.count;
    }
  }

  std::int64_t offset_of(const std::int64_t* strides) const {
    std::int64_t offset = 0;
    for (int a = 0; a <= plan.cut; ++a) offset += index[a] * strides[a];
    return offset;
  }

  void run_unit(std::int64_t unit, std::int64_t first_step, std::int64_t last_step) {
    decode(plan.unit_digits, unit);
    for (std::int64_t step = first_step; step < last_step; ++step) {
      decode(plan.step_digits, step);
      run_tile();
    }
  }

  void run_tile() {
    const int operands = program.inputs + program.outputs;
    const std::int64_t m = std::min(plan.chunk, plan.extents[plan.cut] - index[plan.cut]);
    const std::int64_t n = m * plan.inner;
    for (int i = 0; i < operands; ++i) {
      const TileOperand& operand = plan.operands[i];
      if (operand.access == TileAccess::direct) {
        char* base = i < program.inputs ? const_cast<char*>(input(i)) : output(i - program.inputs);
        places[i] = reinterpret_cast<float*>(base + offset_of(operand.strides) *
                                                        static_cast<std::int64_t>(operand.bytes));
      } else if (operand.access == TileAccess::staged && i < program.inputs) {
        fetch(i, offset_of(operand.strides), m);
      }
    }
    for (const TileStep& step : program.steps) {
      call(step.op,
           {places[step.a], places[step.b], places[step.c], places[step.y], n, step.s, step.t});
    }
    for (int o = 0; o < program.outputs; ++o) {
      const TileOperand& operand = plan.operands[program.inputs + o];
      if (operand.access != TileAccess::staged) continue;
      std::int64_t extents[max_tile_axes], strides[max_tile_axes];
      block(m, extents, strides);
      copy_block(operand.bytes, places[program.inputs + o], strides,
                 output(o) + offset_of(operand.strides) * static_cast<std::int64_t>(operand.bytes),
                 operand.strides + plan.cut, extents, plan.axes - plan.cut);
    }
    if (program.reduction && arguments.outputs[program.reduction->output] != nullptr)
      reduce_tile(m, n);
  }

  void reduce_tile(std::int64_t m, std::int64_t n) {
    const float* x = places[program.reduction->source];
    const VectorFunctions& f = functions;
    const bool largest = plan.maximum();
    if (plan.final_in_tile) {
      reduce_whole(x, m, n);
    } else if (plan.row_width == 1) {
      if (largest) {
        const float here = f.maximum(x, n);
        f.max_rows(&here, 1, 1, 1, sum);  // NaN wins
      } else {
        total[0] += f.sum(x, n);
      }
    } else {
      const std::int64_t width = plan.row_width == 0 ? n : plan.row_width;
      const std::int64_t rows = n / width;
      if (largest) {
        f.max_rows(x, rows, width, width, sum);
        return;
      }
      f.add_rows(x, rows, width, width, sum);
      rows_summed += rows;
      if (rows_summed >= rows_per_flush) flush(width);
    }
  }

  // A tile of whole reduced blocks: [results outside][reduced][results inside].
  void reduce_whole(const float* x, std::int64_t m, std::int64_t n) {
    const VectorFunctions& f = functions;
    const std::int64_t width = plan.row_width, size = plan.reduced * width;
    const bool largest = plan.maximum();
    for (std::int64_t block_index = 0; block_index < n / size; ++block_index) {
      const float* from = x + block_index * size;
      float* to = sum + block_index * width;
      if (width == 1) {
        *to = finished(largest ? static_cast<double>(f.maximum(from, size)) : f.sum(from, size));
        continue;
      }
      for (std::int64_t i = 0; i < width; ++i)
        to[i] = largest ? -std::numeric_limits<float>::infinity() : 0;
      (largest ? f.max_rows : f.add_rows)(from, plan.reduced, width, width, to);
      for (std::int64_t i = 0; i < width; ++i) to[i] = finished(to[i]);
    }
    write_results(m);
  }

  float finished(double value) const {
    if (program.reduction->kind == TileReduction::Kind::mean)
      value /= static_cast<double>(plan.reduced);
    return static_cast<float>(value);
  }

  // Copies `sum` to the reduced output: kept axes after the cut, m indices of the cut where it is
  // kept.
  void write_results(std::int64_t m) {
    std::int64_t extents[max_tile_axes], from[max_tile_axes], to[max_tile_axes];
    int axes = 0;
    for (int a = plan.cut; a < plan.axes; ++a) {
      if (plan.groups[a] == 1) continue;
      extents[axes] = a == plan.cut ? m : plan.extents[a];
      to[axes++] = plan.result_strides[a];
    }
    if (axes == 0) {
      extents[0] = 1;
      to[axes++] = 1;
    }
    std::int64_t stride = 1;
    for (int a = axes - 1; a >= 0; --a) {
      from[a] = stride;
      stride *= extents[a];
    }
    float* y = static_cast<float*>(arguments.outputs[program.reduction->output]);
    std::int64_t offset = 0;
    for (int a = 0; a <= plan.cut; ++a) {
      if (plan.groups[a] != 1) offset += index[a] * plan.result_strides[a];
    }
    copy_block(sum, from, y + offset, to, extents, axes);
  }

  void clear() {
    rows_summed = 0;
    const float start = plan.maximum() ? -std::numeric_limits<float>::infinity() : 0;
    for (std::int64_t i = 0; i < plan.unit_width; ++i) {
      sum[i] = start;
      total[i] = 0;
    }
  }

  void flush(std::int64_t width) {
    functions.flush(sum, total, width);
    rows_summed = 0;
  }

  void take_totals(double* to) {
    if (plan.maximum()) {
      for (std::int64_t i = 0; i < plan.unit_width; ++i) to[i] = static_cast<double>(sum[i]);
    } else {
      flush(plan.unit_width);
      for (std::int64_t i = 0; i < plan.unit_width; ++i) to[i] = total[i];
    }
    clear();
  }

  void write_unit() {
    if (arguments.outputs[program.reduction->output] == nullptr) return;
    const bool cut_kept = plan.groups[plan.cut] == 2;
    const std::int64_t m =
        cut_kept ? std::min(plan.chunk, plan.extents[plan.cut] - index[plan.cut]) : 1;
    write_results(m);
  }

  void finish_unit() {
    if (!plan.maximum()) {
      flush(plan.unit_width);
      for (std::int64_t i = 0; i < plan.unit_width; ++i) sum[i] = finished(total[i]);
    }
    write_unit();
    clear();
  }

  void combine(const double* partial, std::int64_t part_size, std::int64_t unit) {
    decode(plan.unit_digits, unit);
    for (std::int64_t i = 0; i < plan.unit_width; ++i) {
      double value = partial[i];
      for (int part = 1; part < plan.parts; ++part) {
        const double other = partial[part * part_size + i];
        if (plan.maximum())
          value = other > value || other != other ? other : value;
        else
          value += other;
      }
      sum[i] = finished(value);
    }
    write_unit();
    clear();
  }

  const TilePlan& plan;
  const TileProgram& program;
  const VectorFunctions& functions;
  const KernelArguments& arguments;
  char* bytes_buffer = nullptr;
  std::int64_t rows_summed = 0;
  std::int64_t index[max_tile_axes] = {};
  float* places[max_places];
  alignas(64) float sum[tile_elements];
  alignas(64) double total[tile_elements];
};

class TileKernel final : public PreparedKernel {
 public:
  explicit TileKernel(const KernelRequest& request)
      : plan_(request), functions_(vector_functions(request)) {
    workspace_bytes = plan_.workspace_bytes();
  }

  void run(const KernelArguments& arguments) noexcept override {
    if (plan_.elements == 0) {
      run_empty(arguments);
      return;
    }
    char* workspace = static_cast<char*>(arguments.workspace);
    if (!plan_.by_steps) {
      parallel_parts(plan_.parts, [&](int part) {
        Part p(plan_, functions_, arguments, workspace + part * plan_.part_bytes);
        const Range units = part_of(plan_.units, part, plan_.parts);
        for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
          p.run_unit(unit, 0, plan_.steps);
          if (plan_.program.reduction && !plan_.final_in_tile) p.finish_unit();
        }
      });
      return;
    }
    double* partial = reinterpret_cast<double*>(workspace + plan_.parts * plan_.part_bytes);
    const std::int64_t part_size = plan_.units * plan_.unit_width;
    parallel_parts(plan_.parts, [&](int part) {
      Part p(plan_, functions_, arguments, workspace + part * plan_.part_bytes);
      const Range steps = part_of(plan_.steps, part, plan_.parts);
      for (std::int64_t unit = 0; unit < plan_.units; ++unit) {
        p.run_unit(unit, steps.begin, steps.end);
        p.take_totals(partial + part * part_size + unit * plan_.unit_width);
      }
    });
    Part p(plan_, functions_, arguments, workspace);
    for (std::int64_t unit = 0; unit < plan_.units; ++unit) {
      p.combine(partial + unit * plan_.unit_width, part_size, unit);
    }
  }

 private:
  void run_empty(const KernelArguments& arguments) const {
    if (!plan_.program.reduction) return;
    // A sum of nothing is 0, a mean NaN, a maximum -infinity; results exist where no kept axis is
    // empty.
    float* y = static_cast<float*>(arguments.outputs[plan_.program.reduction->output]);
    std::int64_t results = 1;
    for (std::size_t i = 0; i < plan_.program.space.size(); ++i) {
      if (!plan_.program.reduction->axes[i]) results *= plan_.program.space[i];
    }
    float value = 0;
    if (plan_.program.reduction->kind == TileReduction::Kind::mean)
      value = std::numeric_limits<float>::quiet_NaN();
    if (plan_.maximum()) value = -std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; y != nullptr && i < results; ++i) y[i] = value;
  }

  TilePlan plan_;
  const VectorFunctions& functions_;
};

bool same_order(const Layout& a, const Layout& b, const Shape& shape) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> refuse_tiles(const KernelRequest& request) {
  TileProgram program;
  if (auto reason = compile_tiles(request, program)) return reason;
  if (program.registers > 64 || program.inputs + program.outputs + program.registers > 240) {
    return "a body with too many values";
  }
  int axes = 0;
  for (std::int64_t extent : program.space) axes += extent != 1;
  if (axes > max_tile_axes) return "more than 8 axes";
  return std::nullopt;
}

Proposal one_order(const KernelRequest& request, const Shape& space) {
  Proposal proposal;
  const Layout* order = nullptr;
  for (const Operand& x : request.inputs) {
    LayoutConstraint constraint;
    if (x.type.shape == space && is_dense(x.layout, space)) {
      if (order == nullptr) order = &x.layout;
      if (same_order(*order, x.layout, space)) constraint.kind = LayoutConstraint::Kind::dense;
    }
    proposal.inputs.push_back(constraint);
  }
  proposal.outputs.assign(request.outputs.size(), {LayoutConstraint::Kind::dense, {}});
  return proposal;
}

// The result of a reduction is row-major.
std::vector<Proposal> propose_tiles(const KernelRequest& request) {
  TileProgram program;
  [[maybe_unused]] const auto reason = compile_tiles(request, program);
  assert(!reason);
  Proposal proposal = one_order(request, program.space);
  if (program.reduction) {
    proposal.outputs[program.reduction->output].kind = LayoutConstraint::Kind::row_major;
  }
  return {proposal};
}

std::unique_ptr<PreparedKernel> prepare_tiles(const KernelRequest& request) {
  return std::make_unique<TileKernel>(request);
}

Kernel tile_kernel(std::string name, std::string op) {
  Kernel kernel;
  kernel.name = "cpu." + std::move(name);
  kernel.op = std::move(op);
  kernel.refuse = refuse_tiles;
  kernel.propose = propose_tiles;
  kernel.prepare = prepare_tiles;
  return kernel;
}

}  // namespace tandem
