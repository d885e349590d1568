#include "engine/data/chat/chat_samples.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/data/tokens/token_samples.h"

namespace tandem {
namespace {

constexpr std::uint32_t answer_bit = 1u << 31;  // ids are below 2^22

template <class T>
class ChatArray final : public RowMaker {
 public:
  using Part = void (ChatSamples::*)(std::int64_t, T*) const;
  ChatArray(std::shared_ptr<const ChatSamples> samples, Part part)
      : samples_(std::move(samples)), part_(part) {}

  std::int64_t rows() const override { return samples_->samples(); }
  void make(std::int64_t index, void* to) const override {
    ((*samples_).*part_)(index, static_cast<T*>(to));
  }
  const void* make_whole(std::int64_t, TensorType&) const override { return nullptr; }
  std::string file(std::int64_t index) const override { return samples_->file(index); }
  std::int64_t row_in_file(std::int64_t index) const override { return samples_->line(index); }

 private:
  std::shared_ptr<const ChatSamples> samples_;
  Part part_;
};

/// Groups of talks that fit into `room` places: first those of most tokens, each into the group
/// with the least room for it.
std::vector<std::vector<std::uint32_t>> packed(const std::vector<std::int64_t>& lengths,
                                               std::uint32_t first, std::int64_t room) {
  std::vector<std::uint32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<std::uint32_t>> groups;
  std::multimap<std::int64_t, std::size_t> open;  // groups by the room that is left
  for (const std::uint32_t talk : order) {
    std::size_t group = groups.size();
    std::int64_t left = room;
    if (const auto found = open.lower_bound(lengths[talk]); found != open.end()) {
      left = found->first;
      group = found->second;
      open.erase(found);
    } else {
      groups.emplace_back();
    }
    groups[group].push_back(first + talk);
    if (left > lengths[talk]) open.emplace(left - lengths[talk], group);
  }
  for (std::vector<std::uint32_t>& group : groups) std::sort(group.begin(), group.end());
  std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace

void ChatSamples::add(std::int64_t line, const ChatTokens& tokens) {
  const auto all = static_cast<std::int64_t>(tokens.ids.size());
  const std::int64_t kept = std::min(all, windows_.length);
  const std::size_t begin = ids_.size();
  ids_.insert(ids_.end(), tokens.ids.begin(), tokens.ids.begin() + kept);
  for (const std::uint32_t id : std::span(ids_).subspan(begin))
    greatest_ = std::max<std::int64_t>(greatest_, id);
  for (const TextRange& answer : tokens.answers) {
    for (std::size_t i = answer.begin; i < std::min<std::size_t>(answer.end, ids_.size() - begin);
         ++i) {
      ids_[begin + i] |= answer_bit;
      if (i > 0) ++counts_.learned;
    }
  }
  talks_.push_back({begin, ids_.size(), static_cast<std::uint32_t>(files_.size() - 1),
                    static_cast<std::uint32_t>(line)});
  ++counts_.texts;
  counts_.tokens += all;
  counts_.cut_tokens += all - kept;
  counts_.cut_texts += all > kept ? 1 : 0;
  counts_.add_long(files_.back() + ":" + std::to_string(line), all);
}

void ChatSamples::arrange() {
  for (std::size_t begin = 0, end = 0; begin < talks_.size(); begin = end) {
    std::vector<std::int64_t> lengths;  // conversations of the file
    for (; end < talks_.size() && talks_[end].file == talks_[begin].file; ++end)
      lengths.push_back(static_cast<std::int64_t>(talks_[end].end - talks_[end].begin));
    const auto first = static_cast<std::uint32_t>(begin);
    if (windows_.packs) {
      for (const std::vector<std::uint32_t>& group : packed(lengths, first, windows_.length)) {
        order_.insert(order_.end(), group.begin(), group.end());
        firsts_.push_back(order_.size());
      }
      continue;
    }
    for (std::uint32_t talk = first; talk < end; ++talk) {
      order_.push_back(talk);
      firsts_.push_back(order_.size());
    }
  }
  counts_.samples = samples();
  counts_.places = samples() * windows_.length;
}

std::size_t ChatSamples::bytes() const {
  return ids_.capacity() * sizeof ids_[0] + talks_.capacity() * sizeof talks_[0];
}

std::span<const std::uint32_t> ChatSamples::talks_of(std::int64_t sample) const {
  const auto at = static_cast<std::size_t>(sample);
  return std::span(order_).subspan(firsts_[at], firsts_[at + 1] - firsts_[at]);
}

/// Calls f(ids, place) for the conversations of a sample; returns the place after the last one.
template <class F>
std::int64_t ChatSamples::for_talks(std::int64_t sample, F f) const {
  std::int64_t place = 0;
  for (const std::uint32_t talk : talks_of(sample)) {
    const auto ids =
        std::span(ids_).subspan(talks_[talk].begin, talks_[talk].end - talks_[talk].begin);
    f(ids, place);
    place += static_cast<std::int64_t>(ids.size());
  }
  return place;
}

void ChatSamples::tokens(std::int64_t sample, std::int64_t* to) const {
  const std::int64_t end =
      for_talks(sample, [&](std::span<const std::uint32_t> ids, std::int64_t place) {
        for (const std::uint32_t id : ids) to[place++] = id & ~answer_bit;
      });
  std::fill(to + end, to + windows_.length, windows_.pad);
}

void ChatSamples::targets(std::int64_t sample, std::int64_t* to) const {
  std::fill(to, to + windows_.length, ignored_target);
  for_talks(sample, [&](std::span<const std::uint32_t> ids, std::int64_t place) {
    for (std::size_t i = 1; i < ids.size(); ++i, ++place) {
      if ((ids[i] & answer_bit) != 0) to[place] = ids[i] & ~answer_bit;
    }
  });
}

void ChatSamples::mask(std::int64_t sample, std::int64_t* to) const {
  const std::int64_t end = for_talks(sample, [](std::span<const std::uint32_t>, std::int64_t) {});
  std::fill(to, to + end, 1);
  std::fill(to + end, to + windows_.length, 0);
}

void ChatSamples::positions(std::int64_t sample, std::int64_t* to) const {
  for_talks(sample, [&](std::span<const std::uint32_t>, std::int64_t place) {
    std::iota(to + place, to + windows_.length, 0);
  });
}

void ChatSamples::attention(std::int64_t sample, bool* to) const {
  const std::int64_t length = windows_.length;
  std::fill(to, to + length * length, false);
  const std::int64_t end =
      for_talks(sample, [&](std::span<const std::uint32_t> ids, std::int64_t place) {
        for (std::int64_t i = place; i < place + static_cast<std::int64_t>(ids.size()); ++i)
          std::fill(to + i * length + place, to + i * length + i + 1, true);
      });
  for (std::int64_t i = end; i < length; ++i) to[i * length + i] = true;
}

const std::string& ChatSamples::file(std::int64_t sample) const {
  return files_[first_of(sample).file];
}

std::int64_t ChatSamples::line(std::int64_t sample) const { return first_of(sample).line; }

std::shared_ptr<const ArraySet> chat_arrays(std::shared_ptr<const ChatSamples> samples,
                                            const ArrayNames& names) {
  auto set = std::make_shared<ArraySet>();
  const std::int64_t length = samples->windows().length;
  const auto add = [&]<class T>(const char* name, const TensorType& type,
                                void (ChatSamples::*part)(std::int64_t, T*) const, double least,
                                double greatest) {
    if (names && !names->contains(name)) {
      set->leave_out(name);
      return;
    }
    set->add(ArrayRows(name, type, std::make_shared<ChatArray<T>>(samples, part))).range = {
        least, greatest};
  };
  const TensorType row{DType::int64, {length}};
  const auto greatest = static_cast<double>(samples->greatest());
  const auto last = static_cast<double>(length - 1);
  add("tokens", row, &ChatSamples::tokens, 0,
      std::max(greatest, static_cast<double>(samples->windows().pad)));
  add("targets", row, &ChatSamples::targets, static_cast<double>(ignored_target), greatest);
  add("mask", row, &ChatSamples::mask, 0, 1);
  add("positions", row, &ChatSamples::positions, 0, last);
  add("attention", {DType::boolean, {length, length}}, &ChatSamples::attention, 0, 1);
  std::vector<Diagnostic> none;  // arrays of one length, with samples
  set->finish(none);
  return set;
}

}  // namespace tandem
