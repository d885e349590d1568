// The kernels for updates of single elements, by the list of update kinds.
#include "kernels/cuda/updates/element_updates.h"

#include <utility>

#include "engine/device/update_proposal.h"
#include "engine/operators/grouped_update.h"
#include "kernels/cuda/updates/update_lists.h"
#include "kernels/cuda/updates/update_tensors.h"

namespace tandem::cuda {
namespace {

using Parts = std::make_integer_sequence<int, rule_parts>;
template <int... parts>
std::unique_ptr<PreparedKernel> make(const Gpu& gpu, const KernelRequest& r,
                                     std::integer_sequence<int, parts...>) {
  std::unique_ptr<PreparedKernel> kernel;
  ((kernel = kernel ? std::move(kernel) : make_element_update<parts>(gpu, r)), ...);
  return kernel;
}

Kernel update_kernel(const Gpu& gpu, std::string name, std::string op) {
  return {.name = std::move(name),
          .op = std::move(op),
          .refuse = [](const KernelRequest& r) -> std::optional<std::string> {
            const UpdateKind& kind = update_kind(*r.node);
            if (kind.whole_tensor) return "updates of kind " + kind.op;
            return refuse_update(r);
          },
          .propose = propose_update,
          .prepare = [gpu](const KernelRequest& r) { return make(gpu, r, Parts{}); }};
}

}  // namespace

void add_element_updates(KernelList& list, const Gpu& gpu) {
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.elementwise()) continue;
    list.push_back(update_kernel(gpu, "cuda." + kind.op, kind.op));
  }
  list.push_back(update_kernel(gpu, "cuda.grouped_update", "GroupedUpdate"));
}

}  // namespace tandem::cuda
