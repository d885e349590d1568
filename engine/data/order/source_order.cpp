#include "engine/data/order/source_order.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/data/random.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr double most_places = 1LL << 31;

/// The source of each place.
class Turns {
 public:
  explicit Turns(const std::vector<SourceShare>& sources) : taken_(sources.size()) {
    double sum = 0;
    for (const SourceShare& source : sources) sum += source.weight;
    for (const SourceShare& source : sources) shares_.push_back(source.weight / sum);
  }

  /// The source of the next place.
  std::size_t next() const {
    std::size_t chosen = 0;
    double most = 0;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      const double owed =
          shares_[i] * static_cast<double>(places_ + 1) - static_cast<double>(taken_[i]);
      if (i == 0 || owed > most) chosen = i, most = owed;
    }
    return chosen;
  }
  void take(std::size_t source) {
    ++taken_[source];
    ++places_;
  }
  std::int64_t places() const { return places_; }
  std::int64_t taken(std::size_t source) const { return taken_[source]; }
  double share(std::size_t source) const { return shares_[source]; }

 private:
  std::vector<double> shares_;  // with the sum 1
  std::vector<std::int64_t> taken_;
  std::int64_t places_ = 0;
};

class SourceOrder final : public SampleOrder {
 public:
  SourceOrder(std::vector<SourceShare> sources, EpochEnd end, const ShuffleConfig& shuffle)
      : sources_(std::move(sources)), shuffle_(shuffle) {
    Turns turns(sources_);
    refuse_long_epochs(turns, end);
    const auto has_more = [&](std::size_t i) { return turns.taken(i) < sources_[i].count; };
    std::size_t left = sources_.size();  // sources that have not given all of their samples
    for (;;) {
      const std::size_t source = turns.next();
      if (end == EpochEnd::first && !has_more(source)) break;
      turns.take(source);
      if (turns.taken(source) == sources_[source].count && --left == 0) break;
    }
    count_ = turns.places();
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      an_epoch_.push_back(turns.taken(i));
      samples_ = std::max(samples_, sources_[i].first + sources_[i].count);
    }
  }

  std::int64_t count() const override { return count_; }

  EpochSamples epoch(std::uint64_t seed, std::int64_t epoch) const override {
    struct Pass {  // a source's pass through its samples
      std::int64_t number = -1;
      std::vector<std::int64_t> order;
    };
    std::vector<Pass> passes(sources_.size());
    Turns turns(sources_);
    EpochSamples result;
    result.samples.reserve(static_cast<std::size_t>(count_));
    for (std::int64_t place = 0; place < count_; ++place) {
      const std::size_t i = turns.next();
      const SourceShare& source = sources_[i];
      const std::int64_t read = epoch * an_epoch_[i] + turns.taken(i);  // since the first epoch
      turns.take(i);
      Pass& pass = passes[i];
      if (const std::int64_t number = read / source.count; pass.number != number) {
        pass.number = number;
        pass.order = epoch_order(source.count, shuffle_, mix(seed, source_key + i), number);
      }
      result.samples.push_back(source.first +
                               pass.order[static_cast<std::size_t>(read % source.count)]);
    }
    result.repeats = repeats_in(result.samples, samples_);
    return result;
  }

 private:
  static constexpr std::uint64_t source_key = 0x736f75726365;

  void refuse_long_epochs(const Turns& turns, EpochEnd end) const {
    double longest = 0;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const double places = static_cast<double>(sources_[i].count) / turns.share(i);
      longest = i == 0                  ? places
                : end == EpochEnd::last ? std::max(longest, places)
                                        : std::min(longest, places);
    }
    if (longest <= most_places) return;
    Diagnostic d;
    d.path = "data.train.sources";
    d.message = "by these weights an epoch reads too many samples until a source has given all";
    d.expected = "at most " + std::to_string(static_cast<std::int64_t>(most_places));
    d.got = std::to_string(std::llround(std::min(longest, 9e18)));
    d.fix = "raise the least weight, or set data.train.epoch_end = \"first\"";
    throw Error(ErrorKind::usage, std::move(d));
  }

  std::vector<SourceShare> sources_;
  ShuffleConfig shuffle_;
  std::int64_t count_ = 0, samples_ = 0;
  std::vector<std::int64_t> an_epoch_;  // places of each source
};

}  // namespace

std::vector<std::int64_t> places_of_sources(const std::vector<SourceShare>& sources,
                                            std::int64_t places) {
  Turns turns(sources);
  while (turns.places() < places) turns.take(turns.next());
  std::vector<std::int64_t> taken;
  for (std::size_t i = 0; i < sources.size(); ++i) taken.push_back(turns.taken(i));
  return taken;
}

std::shared_ptr<const SampleOrder> source_order(std::vector<SourceShare> sources, EpochEnd end,
                                                const ShuffleConfig& shuffle) {
  return std::make_shared<SourceOrder>(std::move(sources), end, shuffle);
}

}  // namespace tandem
