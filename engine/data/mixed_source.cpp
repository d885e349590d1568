#include "engine/data/mixed_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "engine/config/keys/config_value.h"
#include "engine/data/forwarding_source.h"
#include "engine/data/random.h"
#include "engine/formats/stage_clock.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

double draw_normal(RandomStream& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

/// Marsaglia and Tsang 2000, "A simple method for generating gamma variables", with the factor for
/// shapes below 1.
double draw_gamma(double shape, RandomStream& random) {
  if (shape < 1) {
    const double factor = std::pow(1 - random.uniform(), 1 / shape);
    return draw_gamma(shape + 1, random) * factor;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw_normal(random), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

/// Draws from Beta(alpha, alpha).
double draw_share(double alpha, RandomStream& random) {
  const double a = draw_gamma(alpha, random), b = draw_gamma(alpha, random);
  if (a + b > 0) return a / (a + b);
  return static_cast<double>(random.below(2));  // alpha is so small that both vanish
}

bool has_rows(const TensorType& type) { return type.shape.size() >= 2; }

class MixedSource final : public ForwardingSource {
 public:
  MixedSource(std::shared_ptr<const DataSource> source, const MixConfig& config, const Where& where)
      : ForwardingSource(std::move(source)), config_(config), mixes_(source_->fields().size()) {
    std::vector<Diagnostic> errors;
    for (const std::string& name : config_.fields) {
      const int field = source_->find_field(name);
      if (field >= 0) {
        mixes_[static_cast<std::size_t>(field)] = true;
        continue;
      }
      errors.push_back(at(where, "data.mix.fields", "there is no data field \"" + name + "\""));
      errors.back().expected = joined(source_->fields(), ", ", &DataField::name);
    }
    if (config_.fields.empty()) mixes_.assign(mixes_.size(), true);
    for (std::size_t i = 0; i < mixes_.size(); ++i) {
      if (mixes_[i]) check(source_->fields()[i], where, errors);
    }
    if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
  }

  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    source_->fill(field, samples, augmentation, to);
    if (augmentation == nullptr || !mixes_[static_cast<std::size_t>(field)]) return;
    thread_local std::vector<float> partner;
    const TensorType& type = fields()[static_cast<std::size_t>(field)].sample;
    const auto each = static_cast<std::size_t>(type.elements());
    if (partner.size() < each) partner.resize(each);
    auto* own = static_cast<float*>(to);
    for (std::size_t s = 0; s < samples.size(); ++s) {
      const Augmentation of_sample = augmentation->of(s);
      const Mixture mixture =
          draw_mixture(config_, of_sample, samples[s], source_->samples(), height_, width_);
      source_->fill(field, {&mixture.partner, 1}, &of_sample, partner.data());
      const InStage transform(LoadStage::transform);
      if (mixture.is_cut && has_rows(type)) {
        paste(mixture, type.elements() / std::max<std::int64_t>(height_ * width_, 1),
              partner.data(), own);
      } else {
        const auto share = static_cast<float>(mixture.share);
        for (std::size_t i = 0; i < each; ++i) own[i] = share * own[i] + (1 - share) * partner[i];
      }
      own += each;
    }
  }

 private:
  void check(const DataField& field, const Where& where, std::vector<Diagnostic>& errors) {
    const auto report = [&](std::string message, std::string fix) {
      Diagnostic& d = errors.emplace_back(at(where, "data.mix.fields", std::move(message)));
      d.got = field.name + " " + to_string(field.sample);
      d.fix = std::move(fix);
    };
    if (field.sample.dtype != DType::float32) {
      report("only fields of float32 can be mixed",
             "classes become numbers by as = [ \"one_hot(N)\" ], bytes by \"scale(1/255)\"");
    }
    if (!has_rows(field.sample)) return;
    const std::int64_t height = field.sample.shape[field.sample.shape.size() - 2];
    const std::int64_t width = field.sample.shape.back();
    if (height_ == 0) height_ = height, width_ = width;
    if (height != height_ || width != width_)
      report("fields that are mixed have different rows and columns", "mix one of them");
  }

  void paste(const Mixture& mixture, std::int64_t planes, const float* from, float* to) const {
    const auto bytes = sizeof(float) * static_cast<std::size_t>(mixture.right - mixture.left);
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      for (std::int64_t y = mixture.top; y < mixture.bottom; ++y) {
        const std::int64_t start = (plane * height_ + y) * width_ + mixture.left;
        std::memcpy(to + start, from + start, bytes);
      }
    }
  }

  MixConfig config_;
  std::vector<bool> mixes_;              // by field
  std::int64_t height_ = 0, width_ = 0;  // size of fields that have rows and columns
};

}  // namespace

Mixture draw_mixture(const MixConfig& config, const Augmentation& augmentation, std::int64_t sample,
                     std::int64_t samples, std::int64_t height, std::int64_t width) {
  constexpr std::uint64_t mixture_key = 0x6d697875;
  RandomStream random(
      mix(mix(mix(augmentation.seed, static_cast<std::uint64_t>(augmentation.epoch)),
              static_cast<std::uint64_t>(sample)),
          mixture_key));
  Mixture mixture;
  mixture.partner = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(samples)));
  const bool may_cut = config.cutmix > 0 && height > 0 && width > 0;
  mixture.is_cut = may_cut && (config.mixup <= 0 || random.below(2) == 1);
  const double alpha = mixture.is_cut ? config.cutmix : config.mixup;
  if (alpha <= 0) return {.partner = sample};
  mixture.share = draw_share(alpha, random);
  if (!mixture.is_cut) return mixture;
  // torchvision's CutMix: half of the rectangle's sides around a pixel, without what lies outside.
  const double half = 0.5 * std::sqrt(1 - mixture.share);
  const auto span = [&](std::int64_t extent, std::int64_t& first, std::int64_t& last) {
    const auto middle = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent)));
    const auto reach = static_cast<std::int64_t>(half * static_cast<double>(extent));
    first = std::max<std::int64_t>(middle - reach, 0);
    last = std::min(middle + reach, extent);
  };
  span(width, mixture.left, mixture.right);
  span(height, mixture.top, mixture.bottom);
  const auto cut =
      static_cast<double>((mixture.right - mixture.left) * (mixture.bottom - mixture.top));
  mixture.share = 1 - cut / static_cast<double>(height * width);
  return mixture;
}

std::shared_ptr<const DataSource> make_mixed_source(std::shared_ptr<const DataSource> source,
                                                    const MixConfig& config, const Where& where) {
  if (config.mixup <= 0 && config.cutmix <= 0) return source;
  return std::make_shared<MixedSource>(std::move(source), config, where);
}

}  // namespace tandem
