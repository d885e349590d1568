// The launches of row updates. Included by row_updates_*.cu, each for a part of the rules.

#include <type_traits>

#include "kernels/cuda/rows/row_updates.h"

namespace tandem::cuda {
namespace {

bool takes_four(const RowUpdateCall& call) {
  const RowTable& table = call.table;
  bool states = true;
  for (const float* state : table.states) states = states && is_aligned(state, 16);
  return takes_four(call.gradients) && is_aligned(table.master, 16) && is_aligned(table.tops, 8) &&
         is_aligned(table.tails, 8) && states;
}

template <int n, class Sink>
void launch_update(GpuContext& gpu, const Sink& sink, const RowUpdateCall& call, void* queue) {
  if (call.groups.most > 0) {
    sum_rows<n>(gpu, call.plan, sink, call.gradients, call.groups, call.workspace, queue);
  }
  if (call.lazy) return;
  const int lanes = call.plan.lanes(n);
  const StepOtherRows<Sink, n> body{sink, call.groups, call.rows, call.plan.columns, lanes};
  const LaunchShape shape{.blocks = blocks_for(gpu, call.rows, walk_threads / lanes),
                          .threads = walk_threads,
                          .shared_bytes = body.shared_bytes};
  gpu.launch(launch_of("step other rows", shape, body), queue);
}

template <class Rule>
void update_rows(GpuContext& gpu, const Rule& rule, const RowUpdateCall& call, void* queue) {
  static_assert(sizeof(StepFactors<Rule>) <= walk_scratch_at);
  using Sink = std::conditional_t<Rule::whole_row, RowUpdate<Rule>, ElementUpdate<Rule>>;
  const Sink sink{rule, call.scalars, call.table};
  (takes_four(call) ? launch_update<4, Sink> : launch_update<1, Sink>)(gpu, sink, call, queue);
}

}  // namespace

template <int part>
RowUpdater row_updater_of_part(std::string_view op, const Attributes& settings) {
  return with_rule<float>(op, settings, [](const auto& rule) -> RowUpdater {
    using R = std::decay_t<decltype(rule)>;
    if constexpr (!R::whole_tensor && is_of_part<R, part>) {
      return [rule](GpuContext& gpu, const RowUpdateCall& call, void* queue) {
        update_rows(gpu, rule, call, queue);
      };
    } else {
      return {};
    }
  });
}

}  // namespace tandem::cuda
