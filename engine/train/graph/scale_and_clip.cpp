// How much of each gradient an update gets: the loss scale is undone, gradients are clipped.
#include "engine/train/graph/loss_scale.h"
#include "engine/train/graph/training_build.h"

namespace tandem {
namespace {

// clip_norm over all parameters together, in one node with the loss scale.
void scale_plainly(TrainingBuild& build) {
  GraphBuilder& g = build.g;
  const RunConfig& config = build.config();
  UpdateScalars& scalars = build.scales.all;
  const std::optional<double>& most = config.optimizer.clip_norm;
  if (build.loss_scale) {
    scalars = add_scaled_step(g, build.loss_scale, most, config.precision, scalars.step,
                              build.sums_of_squares());
  } else if (most) {
    const std::vector<ValueId> clip =
        g.node("ClipScale", build.sums_of_squares(), {{"max_norm", *most}});
    scalars.scale = clip[0];
    g.output("gradient_norm", clip[1]);
  }
}

void scale_each(TrainingBuild& build) {
  GraphBuilder& g = build.g;
  UpdateScales& scales = build.scales;
  // Whether a step is skipped depends on the gradients before clipping.
  std::vector<ValueId> before;
  if (build.loss_scale) before = build.sums_of_squares();
  for (UpdateRequest& update : build.requests)
    build.clipping.clip_elements(update, build.loss_scale);
  g.set_scope({"optimizer.scale", Phase::update, {}});
  if (build.clipping.has_norms()) {
    scales.own =
        build.clipping.norm_scales(build.requests, build.sums_of_squares(), build.loss_scale);
  }
  if (!build.loss_scale) return;
  scales.all = add_scaled_step(g, build.loss_scale, std::nullopt, build.config().precision,
                               scales.all.step, before);
  for (ValueId& scale : scales.own) {
    if (scale) scale = g.mul(scale, scales.all.scale);
  }
}

}  // namespace

std::vector<ValueId> TrainingBuild::sums_of_squares() {
  std::vector<ValueId> squares;
  for (const UpdateRequest& update : requests) {
    const ValueId square = updates.sum_of_squares(update);
    squares.push_back(update.parameter.shard ? ranks.sum_of_parts(square) : square);
  }
  return squares;
}

void scale_and_clip(TrainingBuild& build) {
  build.scales.own.resize(build.requests.size());
  build.g.set_scope({"optimizer.scale", Phase::update, {}});
  if (build.clipping.is_plain())
    scale_plainly(build);
  else
    scale_each(build);
}

}  // namespace tandem
