// Which streams take part in a capture that forks and joins by events, and which precedes which.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// For devices whose streams have `capture_`, the capture in which they take part, and a `name()`.
template <class Stream>
class CaptureOrder {
 public:
  explicit CaptureOrder(Stream& origin) { add_branch(origin); }

  /// The stream takes part from now on.
  int add_branch(Stream& stream) {
    branches_.push_back({&stream, {}});
    for (Branch& branch : branches_) branch.clock.resize(branches_.size(), 0);
    return static_cast<int>(branches_.size()) - 1;
  }
  Stream& origin() const { return *branches_[0].stream; }
  bool ended() const { return ended_; }
  /// Frees all streams; returns the rule that the capture broke as text, or nothing.
  std::string end(const Stream& stream) {
    ended_ = true;
    for (Branch& branch : branches_) branch.stream->capture_.reset();
    if (!broken.empty()) return "the capture is broken: " + broken;
    if (&stream != branches_[0].stream) return "a capture ends on the stream on which it began";
    for (std::size_t b = 1; b < branches_.size(); ++b) {
      if (branches_[0].clock[b] < branches_[b].clock[b])
        return "the capture ends before " + branches_[b].stream->name() + " is joined to it";
    }
    return "";
  }

  std::string broken;  // the first broken rule

 protected:
  using Clock = std::vector<std::uint64_t>;  // operations of each branch that precede
  struct Branch {
    Stream* stream = nullptr;
    Clock clock;
  };

  void step(int branch) { ++branches_[branch].clock[branch]; }
  int record(int branch) {
    records_.push_back(branches_[branch].clock);
    return static_cast<int>(records_.size()) - 1;
  }
  void wait(int branch, int record) {
    Clock& clock = branches_[branch].clock;
    const Clock& earlier = records_[record];
    for (std::size_t i = 0; i < earlier.size(); ++i) clock[i] = std::max(clock[i], earlier[i]);
    step(branch);
  }

  std::vector<Branch> branches_;
  std::vector<Clock> records_;

 private:
  bool ended_ = false;
};

}  // namespace tandem
