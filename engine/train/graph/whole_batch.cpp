#include "engine/train/graph/whole_batch.h"

#include "engine/data/loader.h"
#include "engine/train/group/sample_exchange.h"

namespace tandem {
namespace {

/// The rows of all ranks without the padding that follows those of ranks with fewer samples.
ValueId without_padding(GraphBuilder& g, ValueId gathered, std::int64_t samples, int ranks) {
  const Shape shape = g.shape(gathered);
  const std::int64_t most = shape[0] / ranks;
  if (most * ranks == samples) return gathered;
  const Ints steps(shape.size(), 1);
  std::vector<ValueId> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    Ints starts(shape.size(), 0), sizes(shape.begin(), shape.end());
    starts[0] = rank * most;
    sizes[0] = share_of(samples, {rank, ranks}).count;
    parts.push_back(
        g.add_node("Slice", {gathered}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}));
  }
  return g.add_node("Concat", std::move(parts), {{"axis", std::int64_t{0}}});
}

}  // namespace

WholeBatch whole_batch(GraphBuilder& g, const TrainingRequest& request) {
  WholeBatch batch;
  batch.is_complete = request.kind == MicroBatchKind::whole;
  const RankShares ranks = request.ranks;
  if (!ranks.several() || !batch.is_complete) return batch;
  const std::int64_t samples = request.samples.step;
  batch.first = share_of(samples, {ranks.rank, ranks.ranks}).first;
  batch.gather = [&g, ranks, samples](ValueId own) {
    return without_padding(g, SampleExchange(g, ranks).gathered(own), samples, ranks.ranks);
  };
  return batch;
}

}  // namespace tandem
