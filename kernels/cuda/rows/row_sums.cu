// What sums gradients by row and updates nothing: RowsSumOfSquares, and the dense gradients of
// lookups, GatherGrad and EmbeddingBagGrad.
#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/cuda/rows/group_ids.h"
#include "kernels/cuda/rows/row_lists.h"
#include "kernels/cuda/rows/row_walk.h"
#include "kernels/cuda/updates/norms.h"

namespace tandem::cuda {
namespace {

struct NoStep {
  static constexpr bool skipped = false;
};

/// sums[k] = the squares of what the k-th block has summed.
struct AddSquares {
  static constexpr bool whole_row = false, adds = true;
  double* sums;

  template <class Block>
  TANDEM_HOST_DEVICE NoStep begin(const Block&) const {
    return {};
  }
  template <int n>
  TANDEM_HOST_DEVICE float apply(const NoStep&, std::int64_t, std::int64_t,
                                 const Values<n>& grad) const {
    float squares = 0;
    for (int k = 0; k < n; ++k) squares += grad.at[k] * grad.at[k];
    return squares;
  }
  template <class Block, class Added>
  TANDEM_HOST_DEVICE void finish(const Block& block, const Added& added, std::int64_t k) const {
    const double all = block.sum(added);
    block.one([&] { sums[k] = all; });
  }
};

/// Row `row` of a dense gradient.
struct StoreRow {
  static constexpr bool whole_row = false, adds = false;
  void* dx;
  Floats type;
  std::int64_t columns;

  template <class Block>
  TANDEM_HOST_DEVICE NoStep begin(const Block&) const {
    return {};
  }
  template <int n>
  TANDEM_HOST_DEVICE float apply(const NoStep&, std::int64_t row, std::int64_t c,
                                 const Values<n>& grad) const {
    store<n>(dx, type, row * columns + c, grad);
    return 0;
  }
  template <class Block, class Added>
  TANDEM_HOST_DEVICE void finish(const Block&, const Added&, std::int64_t) const {}
};

std::unique_ptr<PreparedKernel> prepare_sum_of_squares(const KernelRequest& r, const Gpu& gpu) {
  const std::int64_t columns = r.attributes().integer("columns");
  const GradientOperands gradients(r, 3, columns);
  const WalkPlan plan{gradients.positions(), columns, false};
  const std::int64_t most = r.inputs[1].type.elements() - 1;  // entries of `offsets`, less one
  const std::int64_t blocks =
      std::max(plan.row_blocks(*gpu, most, 1), plan.row_blocks(*gpu, most, 4)) + plan.chunks();
  const std::size_t sums_bytes = padded(static_cast<std::size_t>(blocks) * sizeof(double));
  return prepared(
      [=](const KernelArguments& a) {
        auto* const y = static_cast<float*>(a.outputs[0]);
        if (most == 0) return zero_bytes(*gpu, y, sizeof(float), a.queue);
        const AddSquares sink{static_cast<double*>(a.workspace)};
        const PositionGradients now = gradients.of(a, 0);
        const RowGroups groups{nullptr, static_cast<const std::int32_t*>(a.inputs[1]),
                               static_cast<const std::int32_t*>(a.inputs[2]), most};
        void* const chunks = static_cast<char*>(a.workspace) + sums_bytes;
        const auto sum = takes_four(now) ? sum_rows<4, AddSquares> : sum_rows<1, AddSquares>;
        const std::int64_t count = sum(*gpu, plan, sink, now, groups, chunks, a.queue);
        launch_total(*gpu, {sink.sums, count, y}, a.queue);
      },
      sums_bytes + plan.workspace_bytes());
}

/// dx[row] = the sum of weights[p] dy[p / bag] over the positions p whose id names the row.
class DenseGradient final : public PreparedKernel {
 public:
  /// Inputs dy, ids and perhaps weights.
  DenseGradient(Gpu gpu, const KernelRequest& r, std::int64_t bag)
      : gpu_(std::move(gpu)),
        node_(r.node_index),
        weighted_(r.is_present(2)),
        bytes_(r.outputs[0].type.bytes()),
        groups_({{r.inputs[1].type.elements(), r.inputs[1].type.dtype == DType::int64}},
                rows_of(r)) {
    const std::int64_t columns =
        r.outputs[0].type.elements() / std::max<std::int64_t>(rows_of(r), 1);
    gradients_.count = 1;
    gradients_.type = *floats_of(r.inputs[0].type.dtype);
    gradients_.columns = columns;
    gradients_.lookups[0].bag = static_cast<std::int32_t>(bag);
    if (weighted_) gradients_.lookups[0].weight_type = *floats_of(r.inputs[2].type.dtype);
    plan_ = {groups_.ids(), columns, false};
    const auto ids = static_cast<std::size_t>(groups_.ids());
    const auto capacity = static_cast<std::size_t>(groups_.capacity());
    for (std::size_t part : {capacity * 8, ids * 4, (capacity + 1) * 4, std::size_t{4},
                             groups_.workspace_bytes(), plan_.workspace_bytes()}) {
      starts_.push_back(workspace_bytes);
      workspace_bytes += padded(part);
    }
  }

  void run(const KernelArguments& a) noexcept override {
    zero_bytes(*gpu_, a.outputs[0], bytes_, a.queue);
    if (groups_.ids() == 0 || bytes_ == 0) return;
    const auto part = [&](std::size_t k) { return static_cast<char*>(a.workspace) + starts_[k]; };
    GroupOutputs to;
    to.unique = reinterpret_cast<std::int64_t*>(part(0));
    to.order = reinterpret_cast<std::int32_t*>(part(1));
    to.offsets = reinterpret_cast<std::int32_t*>(part(2));
    to.count = reinterpret_cast<std::int32_t*>(part(3));
    groups_.run(*gpu_, a.inputs + 1, to, part(4), IdReport(a, node_), a.queue);
    PositionGradients now = gradients_;
    now.lookups[0].dy = a.inputs[0];
    now.lookups[0].weights = weighted_ ? a.inputs[2] : nullptr;
    now.order = to.order;
    const StoreRow sink{a.outputs[0], gradients_.type, gradients_.columns};
    const RowGroups groups{to.unique, to.offsets, to.count, groups_.capacity()};
    const bool four = takes_four(now) && is_aligned(a.outputs[0], 4 * size_of(sink.type));
    (four ? sum_rows<4, StoreRow> : sum_rows<1, StoreRow>)(*gpu_, plan_, sink, now, groups, part(5),
                                                           a.queue);
  }

 private:
  static std::int64_t rows_of(const KernelRequest& r) { return r.outputs[0].type.shape[0]; }

  Gpu gpu_;
  std::int32_t node_;
  bool weighted_;
  std::size_t bytes_;
  IdGroups groups_;
  PositionGradients gradients_{};
  WalkPlan plan_;
  std::vector<std::size_t> starts_;  // where the parts of the workspace start
};

std::optional<std::string> refuse_dense(const KernelRequest& r) {
  if (r.outputs[0].type.shape[0] == 0) return "a table without rows";
  constexpr std::int64_t most = INT32_MAX;
  if (r.inputs[1].type.elements() > most) return "more than 2^31 - 1 ids";
  return refuse_but_floats(r, {0, 2});
}

}  // namespace

void add_row_sums(KernelList& list, const Gpu& gpu) {
  add_row_major(
      list, "cuda.rows_sum_of_squares", "RowsSumOfSquares",
      [](const KernelRequest& r) { return refuse_gradients(r, 3); },
      on(gpu, prepare_sum_of_squares));
  add_row_major(
      list, "cuda.gather_grad_rows", "GatherGrad",
      [](const KernelRequest& r) -> std::optional<std::string> {
        if (r.attributes().integer("axis") != 0) return "not along the first axis";
        return refuse_dense(r);
      },
      [gpu](const KernelRequest& r) -> std::unique_ptr<PreparedKernel> {
        return std::make_unique<DenseGradient>(gpu, r, 1);
      });
  add_row_major(list, "cuda.embedding_bag_grad", "EmbeddingBagGrad", refuse_dense,
                [gpu](const KernelRequest& r) -> std::unique_ptr<PreparedKernel> {
                  return std::make_unique<DenseGradient>(gpu, r, r.inputs[1].type.shape.back());
                });
}

}  // namespace tandem::cuda
