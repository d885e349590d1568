// Numbers by texts: hash tables of 64-bit keys, and a trie of bytes over one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tandem {

/// 64-bit keys to 32-bit numbers, by open addressing; the last number of a key stays.
class NumberTable {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  void set(std::uint64_t key, std::uint32_t number) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place(key)];
    count_ += slot.number == none;
    slot = {key, number};
  }
  std::uint32_t find(std::uint64_t key) const {
    return slots_.empty() ? none : slots_[place(key)].number;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t number = none;
  };
  std::size_t place(std::uint64_t key) const {
    std::uint64_t hash = key * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    std::size_t at = static_cast<std::size_t>(hash) & (slots_.size() - 1);
    while (slots_[at].number != none && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 64 : slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.number != none) slots_[place(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::size_t count_ = 0;
};

/// Texts with a number each; all that a text begins with are found on one way.
class ByteTrie {
 public:
  /// Bytes of all texts together: each takes up to 70 of memory.
  static constexpr std::size_t most_bytes = std::size_t{1} << 24;
  bool has_room(std::string_view text) const {
    return text.size() <= most_bytes && numbers_.size() <= most_bytes - text.size();
  }
  void add(std::string_view text, std::uint32_t number) {
    std::uint32_t node = 0;
    for (const char c : text) {
      std::uint32_t next = step(node, c);
      if (next == NumberTable::none) {
        next = static_cast<std::uint32_t>(numbers_.size());
        steps_.set(key(node, c), next);
        numbers_.push_back(NumberTable::none);
      }
      node = next;
    }
    if (!text.empty()) numbers_[node] = number;
    if (!text.empty()) starts_[static_cast<unsigned char>(text[0])] = true;
  }
  bool may_start(char c) const { return starts_[static_cast<unsigned char>(c)]; }
  /// Calls f(bytes, number) for each text that this one begins with, the shortest first.
  template <class F>
  void for_beginnings(std::string_view text, F f) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = step(node, text[i]);
      if (node == NumberTable::none) return;
      if (numbers_[node] != NumberTable::none) f(i + 1, numbers_[node]);
    }
  }

 private:
  static std::uint64_t key(std::uint32_t node, char c) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(c);
  }
  std::uint32_t step(std::uint32_t node, char c) const { return steps_.find(key(node, c)); }

  NumberTable steps_;
  std::vector<std::uint32_t> numbers_{NumberTable::none};
  bool starts_[256] = {};
};

}  // namespace tandem
