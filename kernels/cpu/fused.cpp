// A tile is a block of at most 1,024 elements: some indices of one axis (the cut) and all of the axes behind
// it. Tiles are addressed by a unit and, within a reduction, by a step: the steps of a unit are summed.
#include "kernels/cpu/fused.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/operators/operator.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided.h"
#include "kernels/cpu/tile_program.h"

namespace tandem {
namespace {

constexpr int max_axes = 8;
constexpr int max_places = 256;
constexpr std::int64_t rows_per_flush = 256;
constexpr std::size_t register_bytes = tile_elements * sizeof(float);

// Where an operand's tile comes from.
enum class Access : std::uint8_t {
  unused,
  direct,   // contiguous in memory: the address of the tile
  pattern,  // the same for all tiles: copied once
  staged,   // copied or converted for each tile
};

struct TileOperand {
  Access access = Access::unused;
  DType dtype = DType::float32;
  bool convert = false;       // bool: bytes to float32
  std::size_t bytes = 4;      // of an element
  int staging = -1;           // register
  std::int64_t strides[max_axes] = {};
};

// The axis that a digit of a unit's or step's number counts.
struct Digit {
  int axis = 0;
  std::int64_t count = 1;
  std::int64_t stride = 1;  // in indices of the axis
};

template <class T>
void copy_block(const T* from, const std::int64_t* from_strides, T* to, const std::int64_t* to_strides,
                const std::int64_t* extents, int axes) {
  const std::int64_t n = extents[axes - 1], in = from_strides[axes - 1], out = to_strides[axes - 1];
  std::int64_t index[max_axes] = {};
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
    copy_block(static_cast<const T*>(from), from_strides, static_cast<T*>(to), to_strides, extents, axes);
  };
  if (bytes == 4) run(float{});
  else if (bytes == 1) run(std::uint8_t{});
  else run(std::uint64_t{});
}

class TileKernel final : public PreparedKernel {
 public:
  explicit TileKernel(const KernelRequest& request) : functions_(vector_functions(request)) {
    [[maybe_unused]] const auto reason = compile_tiles(request, program_);
    assert(!reason);
    plan_axes(request);
    plan_tiles();
    plan_operands();
    plan_parts(request);
  }

  void run(const KernelArguments& arguments) noexcept override {
    if (elements_ == 0) {
      run_empty(arguments);
      return;
    }
    char* workspace = static_cast<char*>(arguments.workspace);
    if (!by_steps_) {
      parallel_parts(parts_, [&](int part) {
        Part p(*this, arguments, workspace + part * part_bytes_);
        const Range units = part_of(units_, part, parts_);
        for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
          p.run_unit(unit, 0, steps_);
          if (program_.reduction && !final_in_tile_) p.finish_unit();
        }
      });
      return;
    }
    double* partial = reinterpret_cast<double*>(workspace + parts_ * part_bytes_);
    const std::int64_t part_size = units_ * unit_width_;
    parallel_parts(parts_, [&](int part) {
      Part p(*this, arguments, workspace + part * part_bytes_);
      const Range steps = part_of(steps_, part, parts_);
      for (std::int64_t unit = 0; unit < units_; ++unit) {
        p.run_unit(unit, steps.begin, steps.end);
        p.take_totals(partial + part * part_size + unit * unit_width_);
      }
    });
    Part p(*this, arguments, workspace);
    for (std::int64_t unit = 0; unit < units_; ++unit) {
      p.combine(partial + unit * unit_width_, part_size, unit);
    }
  }

 private:
  bool maximum() const {
    return program_.reduction && program_.reduction->kind == TileReduction::Kind::maximum;
  }
  bool is_output(int place) const { return place >= program_.inputs; }

  // Groups: 0 = kept (or no reduction), 1 = reduced, 2 = kept and innermost.
  void plan_axes(const KernelRequest& request) {
    const Shape& space = program_.space;
    elements_ = element_count(space);
    const int count = program_.inputs + program_.outputs;
    operands_.resize(count);
    std::vector<std::vector<std::int64_t>> strides(count + 1, std::vector<std::int64_t>(space.size(), 0));
    int key = -1;
    for (int i = 0; i < count; ++i) {
      const bool output = i >= program_.inputs;
      const Operand& operand = output ? request.outputs[i - program_.inputs] : request.inputs[i];
      const bool used = output ? program_.output_direct[i - program_.inputs] : program_.input_used[i];
      operands_[i].dtype = operand.type.dtype;
      operands_[i].bytes = size_of(operand.type.dtype);
      if (!used) continue;
      operands_[i].access = Access::direct;
      strides[i] = strides_over(operand, space);
      const bool full = operand.type.shape == space && is_dense(operand.layout, space);
      if (full && (key < 0 || (output && !is_output(key)))) key = i;
    }
    if (program_.reduction) strides[count] = result_strides(request);
    if (key < 0) {
      for (int i = 0; i < count && key < 0; ++i) {
        if (operands_[i].access == Access::direct && strides[i].size() == space.size()) key = i;
      }
    }
    std::vector<int> order;
    if (key >= 0) {
      order = memory_order(Layout{0, strides[key]}, space);
    } else {
      for (std::size_t i = 0; i < space.size(); ++i) order.push_back(static_cast<int>(i));
    }
    std::erase_if(order, [&](int axis) { return space[axis] == 1; });
    const std::vector<int> groups = order_groups(order);
    std::vector<StridedAxis> axes;
    for (std::size_t i = 0; i < order.size(); ++i) {
      StridedAxis axis{space[order[i]], groups[i], {}};
      for (const auto& s : strides) axis.strides.push_back(s[order[i]]);
      axes.push_back(std::move(axis));
    }
    axes = collapse(axes);
    if (axes[0].strides.empty()) axes[0].strides.assign(count + 1, 0);
    assert(axes.size() <= max_axes);
    axes_ = static_cast<int>(axes.size());
    for (int a = 0; a < axes_; ++a) {
      extents_[a] = axes[a].extent;
      groups_[a] = axes[a].group;
      for (int i = 0; i < count; ++i) operands_[i].strides[a] = axes[a].strides[i];
      result_strides_[a] = axes[a].strides[count];
    }
  }

  // Of the reduced output over the whole space; 0 on the reduced axes.
  std::vector<std::int64_t> result_strides(const KernelRequest& request) const {
    const TileReduction& reduction = *program_.reduction;
    const Operand& y = request.outputs[reduction.output];
    std::vector<std::int64_t> strides(program_.space.size(), 0);
    const bool keepdims = y.type.rank() == program_.space.size();
    std::size_t own = 0;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      if (!reduction.axes[i]) strides[i] = y.layout.strides[own];
      if (keepdims || !reduction.axes[i]) ++own;
    }
    return strides;
  }

  // Brings the axes into the order kept, reduced, kept and innermost; returns their groups.
  std::vector<int> order_groups(std::vector<int>& order) const {
    if (!program_.reduction) return std::vector<int>(order.size(), 0);
    const std::vector<char>& reduced = program_.reduction->axes;
    std::vector<int> by_group[3];
    std::size_t tail = order.size();
    while (tail > 0 && !reduced[order[tail - 1]]) --tail;
    if (tail == 0) tail = order.size();  // nothing is reduced
    for (std::size_t i = 0; i < order.size(); ++i) {
      by_group[reduced[order[i]] ? 1 : i >= tail ? 2 : 0].push_back(order[i]);
    }
    std::vector<int> groups;
    order.clear();
    for (int g = 0; g < 3; ++g) {
      order.insert(order.end(), by_group[g].begin(), by_group[g].end());
      groups.insert(groups.end(), by_group[g].size(), g);
    }
    return groups;
  }

  void plan_tiles() {
    if (elements_ == 0) return;
    cut_ = axes_ - 1;
    inner_ = 1;
    while (cut_ > 0 && inner_ * extents_[cut_] <= tile_elements) inner_ *= extents_[cut_--];
    if (inner_ * extents_[cut_] <= tile_elements) {
      chunk_ = extents_[cut_];
    } else {
      chunk_ = std::min(extents_[cut_], tile_elements / inner_);
    }
    const std::int64_t chunks = (extents_[cut_] + chunk_ - 1) / chunk_;
    const Digit cut_digit{cut_, chunks, chunk_};
    std::int64_t kept_inner = 1, reduced = 1;
    for (int a = 0; a < axes_; ++a) {
      if (groups_[a] == 2) kept_inner *= extents_[a];
      if (groups_[a] == 1) reduced *= extents_[a];
    }
    reduced_ = reduced;
    const bool reduces = program_.reduction.has_value();
    final_in_tile_ = reduces && groups_[cut_] == 0;
    if (!reduces || final_in_tile_) {
      for (int a = 0; a < cut_; ++a) unit_digits_.push_back({a, extents_[a], 1});
      unit_digits_.push_back(cut_digit);
    } else if (groups_[cut_] == 1) {
      for (int a = 0; a < cut_; ++a) (groups_[a] == 1 ? step_digits_ : unit_digits_).push_back({a, extents_[a], 1});
      step_digits_.push_back(cut_digit);
    } else {
      for (int a = 0; a < cut_; ++a) (groups_[a] == 1 ? step_digits_ : unit_digits_).push_back({a, extents_[a], 1});
      unit_digits_.push_back(cut_digit);
    }
    for (const Digit& d : unit_digits_) units_ *= d.count;
    for (const Digit& d : step_digits_) steps_ *= d.count;
    // How a tile is reduced: `blocks` times `rows` rows of `row_width` results.
    if (reduces) {
      if (groups_[cut_] == 2) {
        unit_width_ = inner_ * chunk_;
        row_width_ = 0;  // the tile itself
      } else {
        unit_width_ = kept_inner;
        row_width_ = kept_inner;
      }
    }
  }

  void plan_operands() {
    staging_ = program_.registers;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      TileOperand& operand = operands_[i];
      if (operand.access == Access::unused || elements_ == 0) continue;
      const bool written = is_output(static_cast<int>(i));
      operand.convert = !written && operand.dtype == DType::boolean;
      std::int64_t expected = 1;
      bool contiguous = true;
      for (int a = axes_ - 1; a >= cut_; --a) {
        const std::int64_t extent = a == cut_ ? chunk_ : extents_[a];
        contiguous &= extent == 1 || operand.strides[a] == expected;
        expected *= extent;
      }
      bool constant = operand.strides[cut_] == 0 || chunk_ == extents_[cut_];
      for (int a = 0; a < cut_; ++a) constant &= operand.strides[a] == 0;
      if (contiguous && !operand.convert) continue;
      operand.access = constant && !written ? Access::pattern : Access::staged;
      operand.staging = staging_;
      staging_ += operand.bytes == 8 ? 2 : 1;
    }
    convert_staging_ = staging_++;  // bytes before they become floats
    part_bytes_ = static_cast<std::size_t>(staging_) * register_bytes;
  }

  void plan_parts(const KernelRequest& request) {
    double bytes = 0;
    for (const Operand& x : request.inputs) bytes += static_cast<double>(x.type.bytes());
    for (const Operand& y : request.outputs) bytes += static_cast<double>(y.type.bytes());
    const double tiles = static_cast<double>(units_) * static_cast<double>(steps_);
    const double work = bytes / 8 + program_.cost * static_cast<double>(elements_) / 1024 + 30 * tiles;
    parts_ = parts_for(request.facts->threads, static_cast<std::int64_t>(work), 8000);
    if (program_.reduction && !final_in_tile_ && units_ < 2 * parts_ && units_ % parts_ != 0 &&
        steps_ >= parts_) {
      by_steps_ = true;
    } else {
      parts_ = static_cast<int>(std::min<std::int64_t>(parts_, std::max<std::int64_t>(units_, 1)));
    }
    by_steps_ = by_steps_ && parts_ > 1;
    workspace_bytes = part_bytes_ * static_cast<std::size_t>(parts_);
    if (by_steps_) workspace_bytes += sizeof(double) * static_cast<std::size_t>(parts_ * units_ * unit_width_);
  }

  void run_empty(const KernelArguments& arguments) const {
    if (!program_.reduction) return;
    // A sum of nothing is 0, a mean NaN, a maximum -infinity; results exist where no kept axis is empty.
    float* y = static_cast<float*>(arguments.outputs[program_.reduction->output]);
    std::int64_t results = 1;
    for (std::size_t i = 0; i < program_.space.size(); ++i) {
      if (!program_.reduction->axes[i]) results *= program_.space[i];
    }
    float value = 0;
    if (program_.reduction->kind == TileReduction::Kind::mean) value = std::numeric_limits<float>::quiet_NaN();
    if (maximum()) value = -std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; y != nullptr && i < results; ++i) y[i] = value;
  }

  // One thread's state: addresses of all places and what it has summed up.
  struct Part {
    Part(const TileKernel& k, const KernelArguments& arguments, char* workspace)
        : kernel(k), program(k.program_), arguments(arguments) {
      const int operands = program.inputs + program.outputs;
      for (int i = 0; i < program.registers; ++i) {
        places[operands + i] = reinterpret_cast<float*>(workspace + i * register_bytes);
      }
      for (const auto& [index, value] : program.constants) {
        for (std::int64_t i = 0; i < tile_elements; ++i) places[operands + index][i] = value;
      }
      bytes_buffer = workspace + k.convert_staging_ * register_bytes;
      for (int i = 0; i < operands; ++i) {
        const TileOperand& operand = k.operands_[i];
        if (operand.staging >= 0) {
          places[i] = reinterpret_cast<float*>(workspace + operand.staging * register_bytes);
        }
        if (operand.access == Access::pattern) fetch(i, 0, k.chunk_);
      }
      clear();
    }

    const char* input(int i) const { return static_cast<const char*>(arguments.inputs[i]); }
    char* output(int i) const { return static_cast<char*>(arguments.outputs[i]); }

    // Strides of a contiguous tile of m indices of the cut axis.
    void block(std::int64_t m, std::int64_t* extents, std::int64_t* strides) const {
      std::int64_t stride = 1;
      for (int a = kernel.axes_ - 1; a >= kernel.cut_; --a) {
        extents[a - kernel.cut_] = a == kernel.cut_ ? m : kernel.extents_[a];
        strides[a - kernel.cut_] = stride;
        stride *= extents[a - kernel.cut_];
      }
    }

    void fetch(int i, std::int64_t offset, std::int64_t m) {
      const TileOperand& operand = kernel.operands_[i];
      std::int64_t extents[max_axes], strides[max_axes];
      block(m, extents, strides);
      void* to = operand.convert ? static_cast<void*>(bytes_buffer) : places[i];
      copy_block(operand.bytes, input(i) + offset * static_cast<std::int64_t>(operand.bytes),
                 operand.strides + kernel.cut_, to, strides, extents, kernel.axes_ - kernel.cut_);
      if (!operand.convert) return;
      call(TileOp::from_uint8, {reinterpret_cast<const float*>(bytes_buffer), nullptr, nullptr, places[i],
                                m * kernel.inner_, 0, 0});
    }

    void call(TileOp op, const TileCall& c) const { kernel.functions_.tile[static_cast<int>(op)](c); }

    void decode(const std::vector<Digit>& digits, std::int64_t number) {
      for (std::size_t d = digits.size(); d-- > 0;) {
        const Digit& digit = digits[d];
        index[digit.axis] = number % digit.count * digit.stride;
        number /= digit.count;
      }
    }

    std::int64_t offset_of(const std::int64_t* strides) const {
      std::int64_t offset = 0;
      for (int a = 0; a <= kernel.cut_; ++a) offset += index[a] * strides[a];
      return offset;
    }

    void run_unit(std::int64_t unit, std::int64_t first_step, std::int64_t last_step) {
      decode(kernel.unit_digits_, unit);
      for (std::int64_t step = first_step; step < last_step; ++step) {
        decode(kernel.step_digits_, step);
        run_tile();
      }
    }

    void run_tile() {
      const int operands = program.inputs + program.outputs;
      const std::int64_t m = std::min(kernel.chunk_, kernel.extents_[kernel.cut_] - index[kernel.cut_]);
      const std::int64_t n = m * kernel.inner_;
      for (int i = 0; i < operands; ++i) {
        const TileOperand& operand = kernel.operands_[i];
        if (operand.access == Access::direct) {
          char* base = i < program.inputs ? const_cast<char*>(input(i)) : output(i - program.inputs);
          places[i] = reinterpret_cast<float*>(
              base + offset_of(operand.strides) * static_cast<std::int64_t>(operand.bytes));
        } else if (operand.access == Access::staged && i < program.inputs) {
          fetch(i, offset_of(operand.strides), m);
        }
      }
      for (const TileStep& step : program.steps) {
        call(step.op, {places[step.a], places[step.b], places[step.c], places[step.y], n, step.s, step.t});
      }
      for (int o = 0; o < program.outputs; ++o) {
        const TileOperand& operand = kernel.operands_[program.inputs + o];
        if (operand.access != Access::staged) continue;
        std::int64_t extents[max_axes], strides[max_axes];
        block(m, extents, strides);
        copy_block(operand.bytes, places[program.inputs + o], strides,
                   output(o) + offset_of(operand.strides) * static_cast<std::int64_t>(operand.bytes),
                   operand.strides + kernel.cut_, extents, kernel.axes_ - kernel.cut_);
      }
      if (program.reduction && arguments.outputs[program.reduction->output] != nullptr) reduce_tile(m, n);
    }

    void reduce_tile(std::int64_t m, std::int64_t n) {
      const float* x = places[program.reduction->source];
      const VectorFunctions& f = kernel.functions_;
      const bool largest = kernel.maximum();
      if (kernel.final_in_tile_) {
        reduce_whole(x, m, n);
      } else if (kernel.row_width_ == 1) {
        if (largest) {
          const float here = f.maximum(x, n);
          f.max_rows(&here, 1, 1, 1, sum);  // NaN wins
        } else {
          total[0] += f.sum(x, n);
        }
      } else {
        const std::int64_t width = kernel.row_width_ == 0 ? n : kernel.row_width_;
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
      const VectorFunctions& f = kernel.functions_;
      const std::int64_t width = kernel.row_width_, size = kernel.reduced_ * width;
      const bool largest = kernel.maximum();
      for (std::int64_t block_index = 0; block_index < n / size; ++block_index) {
        const float* from = x + block_index * size;
        float* to = sum + block_index * width;
        if (width == 1) {
          *to = finished(largest ? static_cast<double>(f.maximum(from, size)) : f.sum(from, size));
          continue;
        }
        for (std::int64_t i = 0; i < width; ++i) to[i] = largest ? -std::numeric_limits<float>::infinity() : 0;
        (largest ? f.max_rows : f.add_rows)(from, kernel.reduced_, width, width, to);
        for (std::int64_t i = 0; i < width; ++i) to[i] = finished(to[i]);
      }
      write_results(m);
    }

    float finished(double value) const {
      if (program.reduction->kind == TileReduction::Kind::mean) value /= static_cast<double>(kernel.reduced_);
      return static_cast<float>(value);
    }

    // From `sum` to the reduced output: kept axes behind the cut, m indices of the cut where it is kept.
    void write_results(std::int64_t m) {
      std::int64_t extents[max_axes], from[max_axes], to[max_axes];
      int axes = 0;
      for (int a = kernel.cut_; a < kernel.axes_; ++a) {
        if (kernel.groups_[a] == 1) continue;
        extents[axes] = a == kernel.cut_ ? m : kernel.extents_[a];
        to[axes++] = kernel.result_strides_[a];
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
      for (int a = 0; a <= kernel.cut_; ++a) {
        if (kernel.groups_[a] != 1) offset += index[a] * kernel.result_strides_[a];
      }
      copy_block(sum, from, y + offset, to, extents, axes);
    }

    void clear() {
      rows_summed = 0;
      const float start = kernel.maximum() ? -std::numeric_limits<float>::infinity() : 0;
      for (std::int64_t i = 0; i < kernel.unit_width_; ++i) {
        sum[i] = start;
        total[i] = 0;
      }
    }

    void flush(std::int64_t width) {
      kernel.functions_.flush(sum, total, width);
      rows_summed = 0;
    }

    void take_totals(double* to) {
      if (kernel.maximum()) {
        for (std::int64_t i = 0; i < kernel.unit_width_; ++i) to[i] = static_cast<double>(sum[i]);
      } else {
        flush(kernel.unit_width_);
        for (std::int64_t i = 0; i < kernel.unit_width_; ++i) to[i] = total[i];
      }
      clear();
    }

    void write_unit() {
      if (arguments.outputs[program.reduction->output] == nullptr) return;
      const bool cut_kept = kernel.groups_[kernel.cut_] == 2;
      const std::int64_t m =
          cut_kept ? std::min(kernel.chunk_, kernel.extents_[kernel.cut_] - index[kernel.cut_]) : 1;
      write_results(m);
    }

    void finish_unit() {
      if (!kernel.maximum()) {
        flush(kernel.unit_width_);
        for (std::int64_t i = 0; i < kernel.unit_width_; ++i) sum[i] = finished(total[i]);
      }
      write_unit();
      clear();
    }

    void combine(const double* partial, std::int64_t part_size, std::int64_t unit) {
      decode(kernel.unit_digits_, unit);
      for (std::int64_t i = 0; i < kernel.unit_width_; ++i) {
        double value = partial[i];
        for (int part = 1; part < kernel.parts_; ++part) {
          const double other = partial[part * part_size + i];
          if (kernel.maximum()) value = other > value || other != other ? other : value;
          else value += other;
        }
        sum[i] = finished(value);
      }
      write_unit();
      clear();
    }

    const TileKernel& kernel;
    const TileProgram& program;
    const KernelArguments& arguments;
    char* bytes_buffer = nullptr;
    std::int64_t rows_summed = 0;
    std::int64_t index[max_axes] = {};
    float* places[max_places];
    alignas(64) float sum[tile_elements];
    alignas(64) double total[tile_elements];
  };

  const VectorFunctions& functions_;
  TileProgram program_;
  std::vector<TileOperand> operands_;
  std::int64_t elements_ = 0;
  int axes_ = 0;
  std::int64_t extents_[max_axes] = {};
  int groups_[max_axes] = {};
  std::int64_t result_strides_[max_axes] = {};
  int cut_ = 0;
  std::int64_t inner_ = 1, chunk_ = 1;
  std::vector<Digit> unit_digits_, step_digits_;
  std::int64_t units_ = 1, steps_ = 1;
  std::int64_t reduced_ = 1;        // elements that go into one result
  std::int64_t unit_width_ = 0;     // results of one unit
  std::int64_t row_width_ = 0;      // results in a row of a tile; 0 = all of it
  bool final_in_tile_ = false;      // a tile holds all that goes into its results
  bool by_steps_ = false;           // threads share each unit
  int staging_ = 0, convert_staging_ = 0;
  std::size_t part_bytes_ = 0;
  int parts_ = 1;
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
  if (axes > max_axes) return "more than 8 axes";
  return std::nullopt;
}

// Dense operands of the full shape share the order that the first of them has; all others may come as they
// are. The result of a reduction is row-major.
std::vector<Proposal> propose_tiles(const KernelRequest& request) {
  TileProgram program;
  [[maybe_unused]] const auto reason = compile_tiles(request, program);
  assert(!reason);
  Proposal proposal;
  const Layout* order = nullptr;
  for (const Operand& x : request.inputs) {
    LayoutWish wish;
    if (x.type.shape == program.space && is_dense(x.layout, x.type.shape)) {
      if (order == nullptr) order = &x.layout;
      if (same_order(*order, x.layout, x.type.shape)) wish.kind = LayoutWish::Kind::dense;
    }
    proposal.inputs.push_back(wish);
  }
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const bool reduced = program.reduction && program.reduction->output == static_cast<int>(i);
    proposal.outputs.push_back({reduced ? LayoutWish::Kind::row_major : LayoutWish::Kind::dense, {}});
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
