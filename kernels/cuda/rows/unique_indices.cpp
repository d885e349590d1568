// UniqueIndices: ids grouped by row (group_ids.h).
#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/launching.h"
#include "kernels/cuda/rows/group_ids.h"
#include "kernels/cuda/rows/row_lists.h"

namespace tandem::cuda {
namespace {

std::unique_ptr<PreparedKernel> prepare_unique_indices(const KernelRequest& r, const Gpu& gpu) {
  std::vector<IdGroups::Ids> arrays;
  for (const Operand& ids : r.inputs) {
    arrays.push_back({ids.type.elements(), ids.type.dtype == DType::int64});
  }
  IdGroups groups(std::move(arrays), r.attributes().integer("rows"));
  const std::size_t bytes = groups.workspace_bytes();
  return prepared(
      [gpu, groups = std::move(groups), node = r.node_index](const KernelArguments& a) {
        const GroupOutputs to{static_cast<std::int64_t*>(a.outputs[UniqueOutputs::unique]),
                              static_cast<std::int32_t*>(a.outputs[UniqueOutputs::order]),
                              static_cast<std::int32_t*>(a.outputs[UniqueOutputs::offsets]),
                              static_cast<std::int32_t*>(a.outputs[UniqueOutputs::count]),
                              static_cast<std::int32_t*>(a.outputs[UniqueOutputs::inverse])};
        groups.run(*gpu, a.inputs, to, a.workspace, IdReport(a, node), a.queue);
      },
      bytes);
}

}  // namespace

void add_unique_indices(KernelList& list, const Gpu& gpu) {
  add_row_major(
      list, "cuda.unique_indices", "UniqueIndices",
      [](const KernelRequest& r) -> std::optional<std::string> {
        if (r.inputs.size() <= IdGroups::most_arrays) return std::nullopt;
        return "more than " + std::to_string(IdGroups::most_arrays) + " lookups of one table";
      },
      on(gpu, prepare_unique_indices));
}

}  // namespace tandem::cuda
