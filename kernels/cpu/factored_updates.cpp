// Updates of kinds with factored statistics (engine/optimizers/adafactor.h) and many of them as one
// GroupedUpdate, in three walks over chunks that are cut within each parameter: statistics of rows
// and columns, the sums of squares of directions, the step. Sums of chunks are added in order, so
// that a result depends neither on threads nor on what is grouped.
#include <algorithm>
#include <cstring>

#include "engine/device/kernel_forms.h"
#include "engine/device/update_proposal.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/rule_loops.h"
#include "kernels/cpu/updates.h"

namespace tandem {
namespace {

// In elements: small enough that all that a walk reads fits in the second cache.
constexpr std::int64_t chunk_elements = 16 << 10;
// Sums over the columns of a matrix are kept for each of its chunks.
constexpr std::int64_t most_cuts = 128;

/// A part of a parameter: whole matrices, rows of one matrix, or elements of a vector.
struct Chunk {
  std::size_t group = 0;
  std::int64_t first_matrix = 0, matrices = 1;
  std::int64_t first_row = 0, rows = 1;        // rows of each of these matrices
  std::int64_t first_column = 0, columns = 0;  // columns of each row
  std::int64_t cut_sums = -1;  // where its sums of columns begin, if the matrix has more chunks
};

/// A matrix that several chunks share.
struct CutMatrix {
  std::size_t group;
  std::int64_t matrix, sums, chunks;  // sums: where the first chunk's begin; the others' follow
};

class FactoredUpdate final : public DenseUpdate {
 public:
  explicit FactoredUpdate(const KernelRequest& r)
      : DenseUpdate(r),
        loops_(rule_loops(rule_.rule(), isa_)),
        states_(factored_states(update_kind(*r.node))) {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < update_count(r); ++i) {
      const std::size_t first = static_cast<std::size_t>(i) * sizes_.inputs;
      groups_.push_back({matrices_of(r.inputs[first].type.shape), means_, chunks_.size()});
      cut(groups_.size() - 1);
      means_ += groups_.back().axes.count;
      total += groups_.back().axes.elements();
    }
    parts_ = parts_for(r.facts->threads, total * 24, grain_bytes);
    own_floats_ = chunk_elements + (half_grad_ ? widest_ : 0);
    const std::size_t doubles = 2 * chunks_.size() + groups_.size();
    const std::int64_t floats = means_ + cut_sums_ + parts_ * own_floats_;
    workspace_bytes = doubles * sizeof(double) + static_cast<std::size_t>(floats) * sizeof(float);
  }

  void run(const KernelArguments& a) noexcept override {
    const std::optional<RowStep> step = rule_.step(a.inputs + scalars_);
    for (std::size_t group = 0; group < groups_.size(); ++group) keep_states(a, group);
    if (!step) {
      each_chunk(a, [&](const Chunk& chunk, std::size_t, float*) {
        keep_master(a, chunk);
        write_weight(a, chunk);
      });
      return;
    }
    Work work{static_cast<double*>(a.workspace), nullptr, nullptr, nullptr};
    work.factors = work.sums + 2 * chunks_.size();
    work.means = reinterpret_cast<float*>(work.factors + groups_.size());
    work.cut_sums = work.means + means_;
    each_chunk(a, [&](const Chunk& chunk, std::size_t number, float* own) {
      keep_master(a, chunk);
      work.sums[2 * number] = work.sums[2 * number + 1] = 0;
      statistics(a, *step, work, chunk, work.sums + 2 * number, own);
    });
    const auto cut_matrices = static_cast<std::int64_t>(cut_matrices_.size());
    const int parts = static_cast<int>(std::min<std::int64_t>(parts_, cut_matrices));
    parallel_parts(parts, [&](int part) {
      const Range range = part_of(cut_matrices, part, parts);
      for (std::int64_t i = range.begin; i < range.end; ++i)
        finish(a, *step, work, cut_matrices_[static_cast<std::size_t>(i)]);
    });
    each_chunk(a, [&](const Chunk& chunk, std::size_t number, float* own) {
      each_block(a, work, chunk, own, [&](const FactoredBlock& block) {
        loops_.square_directions(step->factors, block, work.sums + 2 * number);
      });
    });
    for (std::size_t k = 0; k < groups_.size(); ++k) work.factors[k] = factor(a, work, k);
    each_chunk(a, [&](const Chunk& chunk, std::size_t, float* own) {
      const auto factor = static_cast<float>(work.factors[chunk.group]);
      each_block(a, work, chunk, own, [&](const FactoredBlock& block) {
        loops_.step_directions(step->factors, factor, block);
      });
      write_weight(a, chunk);
    });
  }

 private:
  struct Group {
    Matrices axes;
    std::int64_t first_mean;
    std::size_t first_chunk;
  };
  /// The workspace; the floats of the parts follow.
  struct Work {
    double *sums, *factors;   // [chunks][2]: of squares of masters and directions; [groups]
    float *means, *cut_sums;  // means of each matrix's states of rows; sums of columns
  };

  void cut(std::size_t group) {
    const Matrices& m = groups_[group].axes;
    if (m.elements() == 0) return;
    widest_ = std::max(widest_, std::max(chunk_elements, m.columns));
    if (m.is_vector) {
      for (std::int64_t i = 0; i < m.columns; i += chunk_elements)
        chunks_.push_back({.group = group,
                           .first_column = i,
                           .columns = std::min(chunk_elements, m.columns - i)});
      return;
    }
    const std::int64_t size = m.rows * m.columns;
    if (size <= chunk_elements) {
      const std::int64_t each = chunk_elements / size;
      for (std::int64_t i = 0; i < m.count; i += each)
        chunks_.push_back({.group = group,
                           .first_matrix = i,
                           .matrices = std::min(each, m.count - i),
                           .rows = m.rows,
                           .columns = m.columns});
      return;
    }
    const std::int64_t rows = std::max((chunk_elements + m.columns - 1) / m.columns,
                                       (m.rows + most_cuts - 1) / most_cuts);
    for (std::int64_t matrix = 0; matrix < m.count; ++matrix) {
      cut_matrices_.push_back({group, matrix, cut_sums_, 0});
      for (std::int64_t row = 0; row < m.rows; row += rows) {
        chunks_.push_back({.group = group,
                           .first_matrix = matrix,
                           .first_row = row,
                           .rows = std::min(rows, m.rows - row),
                           .columns = m.columns,
                           .cut_sums = cut_sums_});
        cut_sums_ += m.columns;
        ++cut_matrices_.back().chunks;
      }
    }
  }

  /// f(chunk, its number, own_floats_ floats).
  template <class F>
  void each_chunk(const KernelArguments& a, F f) const {
    float* const floats = reinterpret_cast<float*>(static_cast<double*>(a.workspace) +
                                                   2 * chunks_.size() + groups_.size()) +
                          means_ + cut_sums_;
    parallel_parts(parts_, [&](int part) {
      const Range range = part_of(static_cast<std::int64_t>(chunks_.size()), part, parts_);
      for (std::int64_t number = range.begin; number < range.end; ++number) {
        const auto k = static_cast<std::size_t>(number);
        f(chunks_[k], k, floats + part * own_floats_);
      }
    });
  }

  /// f(block) for the rows of a chunk in one of its matrices; those of gradients of 16 bits in
  /// turn.
  template <class F>
  void each_block(const KernelArguments& a, const Work& work, const Chunk& chunk,
                  std::int64_t matrix, float* own, F f) const {
    const Group& group = groups_[chunk.group];
    const std::int64_t rows =
        half_grad_ ? std::max<std::int64_t>(1, widest_ / chunk.columns) : chunk.rows;
    for (std::int64_t done = 0; done < chunk.rows; done += rows) {
      FactoredBlock block{};
      const std::int64_t row = matrix * group.axes.rows + chunk.first_row + done;
      const std::int64_t first = row * group.axes.columns + chunk.first_column;
      block.rows = std::min(rows, chunk.rows - done);
      block.columns = chunk.columns;
      block.w = output(a, chunk.group, 0) + first;
      block.g = gradient(a, chunk.group, first, block.rows * block.columns, own + chunk_elements);
      if (group.axes.is_vector) {
        block.column_states = state(a, chunk.group, states_.vector) + chunk.first_column;
      } else {
        block.row_states = state(a, chunk.group, states_.row) + row;
        block.column_states = state(a, chunk.group, states_.column) + matrix * group.axes.columns;
        block.mean_of_rows = work.means[group.first_mean + matrix];
      }
      f(block);
    }
  }
  template <class F>
  void each_block(const KernelArguments& a, const Work& work, const Chunk& chunk, float* own,
                  F f) const {
    for (std::int64_t m = chunk.first_matrix; m < chunk.first_matrix + chunk.matrices; ++m)
      each_block(a, work, chunk, m, own, f);
  }

  void statistics(const KernelArguments& a, const RowStep& step, const Work& work,
                  const Chunk& chunk, double* sums, float* own) const {
    const bool is_vector = groups_[chunk.group].axes.is_vector;
    float* const columns = is_vector             ? nullptr
                           : chunk.cut_sums >= 0 ? work.cut_sums + chunk.cut_sums
                                                 : own;
    for (std::int64_t m = chunk.first_matrix; m < chunk.first_matrix + chunk.matrices; ++m) {
      if (columns != nullptr) std::fill_n(columns, chunk.columns, 0.0f);
      each_block(a, work, chunk, m, own, [&](FactoredBlock& block) {
        block.column_sums = columns;
        loops_.statistics(step.factors, block, sums);
      });
      if (!is_vector && chunk.cut_sums < 0) finish(a, step, work, chunk.group, m, columns);
    }
  }

  /// The states of columns and the mean of those of rows, which are new.
  void finish(const KernelArguments& a, const RowStep& step, const Work& work, std::size_t group,
              std::int64_t matrix, const float* sums) const {
    const Matrices& m = groups_[group].axes;
    loops_.move_columns(step.factors, state(a, group, states_.column) + matrix * m.columns, sums,
                        static_cast<float>(m.rows), m.columns);
    const float* const rows = state(a, group, states_.row) + matrix * m.rows;
    double sum = 0;
    for (std::int64_t i = 0; i < m.rows; ++i) sum += static_cast<double>(rows[i]);
    work.means[groups_[group].first_mean + matrix] =
        static_cast<float>(sum / static_cast<double>(m.rows));
  }
  void finish(const KernelArguments& a, const RowStep& step, const Work& work,
              const CutMatrix& cut) const {
    float* const sums = work.cut_sums + cut.sums;
    const std::int64_t columns = groups_[cut.group].axes.columns;
    for (std::int64_t k = 1; k < cut.chunks; ++k) {
      for (std::int64_t i = 0; i < columns; ++i) sums[i] += sums[k * columns + i];
    }
    finish(a, step, work, cut.group, cut.matrix, sums);
  }

  double factor(const KernelArguments& a, const Work& work, std::size_t group) const {
    const std::size_t end =
        group + 1 < groups_.size() ? groups_[group + 1].first_chunk : chunks_.size();
    double all[2] = {};
    for (std::size_t chunk = groups_[group].first_chunk; chunk < end; ++chunk) {
      for (std::size_t term = 0; term < 2; ++term) all[term] += work.sums[2 * chunk + term];
    }
    return rule_.factor(static_cast<double>(*static_cast<const float*>(a.inputs[scalars_])),
                        {all, groups_[group].axes.elements(),
                         *static_cast<const std::int64_t*>(a.inputs[scalars_ + 1])});
  }

  void keep_states(const KernelArguments& a, std::size_t group) const {
    const Matrices& m = groups_[group].axes;
    if (m.is_vector) return keep_state(a, group, states_.vector, 0, m.columns);
    keep_state(a, group, states_.row, 0, m.count * m.rows);
    keep_state(a, group, states_.column, 0, m.count * m.columns);
  }
  Range elements_of(const Chunk& chunk) const {
    const Matrices& m = groups_[chunk.group].axes;
    const std::int64_t first =
        (chunk.first_matrix * m.rows + chunk.first_row) * m.columns + chunk.first_column;
    return {first, first + chunk.matrices * chunk.rows * chunk.columns};
  }
  void keep_master(const KernelArguments& a, const Chunk& chunk) const {
    const Range range = elements_of(chunk);
    DenseUpdate::keep_master(a, chunk.group, range.begin, range.size());
  }
  void write_weight(const KernelArguments& a, const Chunk& chunk) const {
    const Range range = elements_of(chunk);
    DenseUpdate::write_weight(a, chunk.group, range.begin, range.size());
  }

  const RuleLoops& loops_;
  FactoredStates states_;
  std::vector<Group> groups_;
  std::vector<Chunk> chunks_;
  std::vector<CutMatrix> cut_matrices_;
  std::int64_t means_ = 0, cut_sums_ = 0, own_floats_ = 0;  // floats of the workspace
  std::int64_t widest_ = 0;  // elements in the largest block of 16 bits
};

}  // namespace

void add_factored_update_kernels(KernelList& list) {
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.is_factored()) continue;
    add_kernels_of_kind(list, kind, propose_row_major, makes<FactoredUpdate>());
  }
}

}  // namespace tandem
