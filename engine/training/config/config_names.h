// The names of the configuration's choices, one table per enum: the keys offer them, the reader
// reads them, the writer writes them.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <span>
#include <string_view>

#include "engine/training/config/run_config.h"

namespace tandem {

template <class Enum>
struct NamedChoice {
  Enum value;
  std::string_view name;
};

inline constexpr NamedChoice<InitKind> init_kinds[] = {
    {InitKind::zeros, "zeros"},
    {InitKind::ones, "ones"},
    {InitKind::constant, "constant"},
    {InitKind::normal, "normal"},
    {InitKind::uniform, "uniform"},
    {InitKind::kaiming_uniform, "kaiming_uniform"},
    {InitKind::kaiming_normal, "kaiming_normal"},
    {InitKind::xavier_uniform, "xavier_uniform"},
    {InitKind::xavier_normal, "xavier_normal"},
};
inline constexpr NamedChoice<StorageKind> storage_kinds[] = {
    {StorageKind::float32, "float32"},
    {StorageKind::split_bfloat16, "split_bfloat16"},
};
inline constexpr NamedChoice<Reduction> reductions[] = {
    {Reduction::mean, "mean"},
    {Reduction::sum, "sum"},
    {Reduction::batchmean, "batchmean"},
};
inline constexpr NamedChoice<ScheduleKind> schedule_kinds[] = {
    {ScheduleKind::constant, "constant"},
    {ScheduleKind::cosine, "cosine"},
    {ScheduleKind::step, "step"},
    {ScheduleKind::linear, "linear"},
};
inline constexpr NamedChoice<DataKind> data_kinds[] = {
    {DataKind::idx, "idx"}, {DataKind::cifar, "cifar"}, {DataKind::npz, "npz"},
    {DataKind::csv, "csv"}, {DataKind::tsv, "tsv"},
};
inline constexpr NamedChoice<OnBad> bad_row_choices[] = {
    {OnBad::error, "error"},
    {OnBad::skip, "skip"},
};
inline constexpr NamedChoice<OutOfRange> out_of_range_choices[] = {
    {OutOfRange::error, "error"},
    {OutOfRange::zero, "zero"},
};

/// The table of an enum, found by the type of the value given.
constexpr std::span<const NamedChoice<InitKind>> choices_of(InitKind) { return init_kinds; }
constexpr std::span<const NamedChoice<StorageKind>> choices_of(StorageKind) {
  return storage_kinds;
}
constexpr std::span<const NamedChoice<Reduction>> choices_of(Reduction) { return reductions; }
constexpr std::span<const NamedChoice<ScheduleKind>> choices_of(ScheduleKind) {
  return schedule_kinds;
}
constexpr std::span<const NamedChoice<DataKind>> choices_of(DataKind) { return data_kinds; }
constexpr std::span<const NamedChoice<OnBad>> choices_of(OnBad) { return bad_row_choices; }
constexpr std::span<const NamedChoice<OutOfRange>> choices_of(OutOfRange) {
  return out_of_range_choices;
}

/// Asserts that the table has the value.
template <class Enum>
constexpr std::string_view choice_name(Enum value) {
  for (const NamedChoice<Enum>& choice : choices_of(value)) {
    if (choice.value == value) return choice.name;
  }
  assert(false && "an enumerator without a name");
  return "";
}

/// Characters of "a|b|c", what KeyInfo::allowed takes.
template <const auto& table>
constexpr std::size_t joined_length() {
  std::size_t length = std::size(table) - 1;
  for (const auto& choice : table) length += choice.name.size();
  return length;
}
template <const auto& table>
inline constexpr auto joined_characters = [] {
  std::array<char, joined_length<table>()> characters{};
  std::size_t at = 0;
  for (const auto& choice : table) {
    if (at > 0) characters[at++] = '|';
    for (const char character : choice.name) characters[at++] = character;
  }
  return characters;
}();
template <const auto& table>
inline constexpr std::string_view joined_names{joined_characters<table>.data(),
                                               joined_characters<table>.size()};

}  // namespace tandem
