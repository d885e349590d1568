// Samples mixed with others, in training: mixup and cutmix.
#pragma once

#include <memory>

#include "engine/data/data_source.h"

namespace tandem {

/// How one sample is mixed.
struct Mixture {
  std::int64_t partner = 0;
  double share = 1;  // weight of the sample itself, 0 to 1
  // For cutmix: the rows and columns that are the partner's; for mixup all of the sample is mixed.
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;
  bool is_cut = false;
};

/// A pure function of seed, epoch and sample, whatever batch it is in. `height`, `width`: those of
/// the pictures; 0 where there are none.
Mixture draw_mixture(const MixConfig& config, const Augmentation& augmentation, std::int64_t sample,
                     std::int64_t samples, std::int64_t height, std::int64_t width);

/// With augmentation, each sample of the configuration's fields becomes
/// mixup (Zhang et al. 2017, arXiv:1710.09412): share · sample + (1 − share) · partner, or
/// cutmix (Yun et al. 2019, arXiv:1905.04899): the sample with a rectangle of the partner's, and in
/// fields without rows and columns (labels) the same sum with the share of the area that is left.
/// The partner is any sample of the source, under its own augmentation, and the same one for all
/// fields. Throws Error{usage} where a field is not there or is not of float32.
std::shared_ptr<const DataSource> make_mixed_source(std::shared_ptr<const DataSource> source,
                                                    const MixConfig& config, const Where& where);

}  // namespace tandem
