// SplitIds: each id either to the table or to the cache of some of its rows; GatherAdd: the sum of
// what both give.
#include <algorithm>

#include "engine/operators/tables/split_ids.h"
#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

template <class Id>
std::unique_ptr<PreparedKernel> split_ids(const KernelRequest& r, Id) {
  return prepared([rows = r.attributes().integer("rows"), count = r.inputs[0].type.elements(),
                   ids = Places(r.inputs[0]), cold = Places(r.outputs[0]),
                   hot = Places(r.outputs[1])](const KernelArguments& a) {
    const Id* from = static_cast<const Id*>(a.inputs[0]);
    Id* to_table = static_cast<Id*>(a.outputs[0]);
    auto* to_cache = static_cast<std::int32_t*>(a.outputs[1]);
    for (std::int64_t i = 0; i < count; ++i) {
      const SplitId<Id> split(from[ids(i)], rows, static_cast<const std::int64_t*>(a.inputs[1]),
                              static_cast<const std::int32_t*>(a.inputs[2]));
      if (to_table != nullptr) to_table[cold(i)] = split.cold;
      if (to_cache != nullptr) to_cache[hot(i)] = split.hot;
    }
  });
}

constexpr auto gather_add = []<class T>(const KernelRequest& r, T) {
  const std::int64_t rows = r.inputs[1].type.shape[0];
  const std::int64_t columns = r.inputs[1].type.elements() / rows;
  return prepared([=, indices = Reader(r.inputs[2]), count = r.inputs[2].type.elements(),
                   absent = absent_id_of(r.inputs[2].type.dtype), base = Places(r.inputs[0]),
                   x = Places(r.inputs[1]), y = Places(r.outputs[0]),
                   node = r.node_index](const KernelArguments& a) {
    const auto element = [&](std::size_t input, const Places& places, std::int64_t i) {
      return static_cast<double>(static_cast<const T*>(a.inputs[input])[places(i)]);
    };
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t given = indices.integer(a.inputs[2], i);
      std::int64_t row = given < 0 ? given + rows : given;
      if (given != absent && (row < 0 || row >= rows)) {
        report(a, ErrorWord::index_out_of_range, node, given);
        row = row < 0 ? 0 : rows - 1;
      }
      for (std::int64_t c = 0; c < columns; ++c) {
        const double more = given == absent ? 0 : element(1, x, row * columns + c);
        static_cast<T*>(a.outputs[0])[y(i * columns + c)] =
            rounded<T>(element(0, base, i * columns + c) + more);
      }
    }
  });
};

}  // namespace

void add_cached_rows(KernelList& list) {
  list.push_back(kernel_for<std::int32_t, std::int64_t>(
      "reference.split_ids", "SplitIds",
      [](const KernelRequest& r, auto tag) { return split_ids(r, tag); }));
  list.back().propose = [](const KernelRequest&) {  // marks and ranks are read as plain arrays
    Proposal proposal;
    proposal.inputs.resize(1);
    proposal.outputs.resize(2);
    return std::vector<Proposal>{proposal};
  };
  list.push_back(any_float_kernel("reference.gather_add", "GatherAdd", gather_add));
}

}  // namespace tandem::reference
