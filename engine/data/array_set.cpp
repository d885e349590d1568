#include "engine/data/array_set.h"

#include <algorithm>
#include <cassert>

#include "engine/config/keys/config_value.h"
#include "engine/data/arrays/array_file.h"
#include "engine/formats/files.h"

namespace tandem {

void ArrayRows::append(HostTensor rows, std::string file, HostTensor lines) {
  const auto* start = static_cast<const std::uint8_t*>(rows.data());
  const std::int64_t end = rows_ + rows.shape()[0];
  segments_.push_back({std::move(rows), start, std::move(lines), std::move(file), rows_, end});
  rows_ = end;
}

const ArrayRows::Segment& ArrayRows::segment(std::int64_t index) const {
  if (segments_.size() == 1) return segments_[0];
  return *std::upper_bound(segments_.begin(), segments_.end(), index,
                           [](std::int64_t i, const Segment& s) { return i < s.end; });
}

const std::uint8_t* ArrayRows::row(std::int64_t index) const {
  if (maker_) {
    thread_local std::vector<std::uint64_t> made;  // words, so that every element type is aligned
    if (made.size() < (row_bytes_ + 7) / 8) made.resize((row_bytes_ + 7) / 8);
    maker_->make(index, made.data());
    return reinterpret_cast<const std::uint8_t*>(made.data());
  }
  const Segment& in = segment(index);
  return in.start + static_cast<std::size_t>(index - in.first) * row_bytes_;
}

std::pair<std::string, std::int64_t> ArrayRows::place(std::int64_t index) const {
  if (maker_) return {maker_->file(index), maker_->row_in_file(index)};
  const Segment& in = segment(index);
  const auto row = static_cast<std::size_t>(index - in.first);
  if (in.lines.data() != nullptr) return {in.file, in.lines.as<std::uint32_t>()[row]};
  return {in.file, index - in.first + 1};
}

void ArraySet::add(const std::string& name, const HostTensor& tensor, const std::string& file,
                   std::vector<Diagnostic>& errors) {
  if (tensor.shape().empty()) {
    errors.push_back({.message = "a single number has no samples", .file = file, .path = name});
    return;
  }
  const TensorType sample{tensor.dtype(), Shape(tensor.shape().begin() + 1, tensor.shape().end())};
  const auto found = std::find_if(arrays_.begin(), arrays_.end(),
                                  [&](const ArrayRows& array) { return array.name() == name; });
  if (found == arrays_.end()) {
    arrays_.emplace_back(name, sample).append(tensor, file);
  } else if (found->sample() != sample) {
    errors.push_back(
        {.message = "its samples have another type than those of " + found->place(0).first,
         .file = file,
         .path = name,
         .expected = to_string(found->sample()),
         .got = to_string(sample)});
  } else if (tensor.shape()[0] > 0) {
    found->append(tensor, file);
  }
}

void ArraySet::finish(std::vector<Diagnostic>& errors) {
  if (arrays_.empty()) return;
  rows_ = arrays_[0].rows();
  for (const ArrayRows& array : arrays_) {
    if (array.rows() != rows_) {
      errors.push_back({.message = "`" + array.name() + "` has another number of samples than `" +
                                   arrays_[0].name() + "`",
                        .file = array.place(0).first,
                        .expected = std::to_string(rows_),
                        .got = std::to_string(array.rows())});
    }
  }
  if (rows_ == 0) {
    errors.push_back({.message = "there are no samples", .file = arrays_[0].place(0).first});
  }
}

const ArrayRows* ArraySet::find(std::string_view name) const {
  for (const ArrayRows& array : arrays_) {
    if (array.name() == name) return &array;
  }
  return nullptr;
}

std::vector<std::string> ArraySet::names() const {
  std::vector<std::string> names;
  for (const ArrayRows& array : arrays_) names.push_back(array.name());
  for (const std::string& name : left_out_) {
    if (find(name) == nullptr) names.push_back(name);
  }
  return names;
}

std::string fix_of_missing(const std::string& path) {
  const bool is_pattern = path.find_first_of("*?") != std::string::npos;
  return is_pattern ? "several files are listed, or written as part_{0..9}.tsv: * and ? stand for "
                      "themselves"
                    : "";
}

bool ArrayFile::wants(std::string_view array) const {
  if (!wanted || wanted->contains(std::string(array))) return true;
  to.leave_out(std::string(array));
  return false;
}

namespace {

/// Tables are prepared before; rows of the other kinds are made when they are read.
template <class Kind>
void read_file(const Kind&, const ArrayFile&) {
  assert(false && "no files of arrays");
}

[[noreturn]] void refuse_size(std::vector<Diagnostic> problems) {
  for (Diagnostic& d : problems) {
    d.fix += (d.fix.empty() ? "" : ", ") +
             std::string(
                 "let data.fields name fewer arrays, or make text tables of them (csv, "
                 "tsv), which are encoded once and take no memory");
  }
  throw Error(ErrorKind::does_not_fit, std::move(problems));
}

}  // namespace

std::shared_ptr<const ArraySet> read_arrays(const DataKind& kind, const SplitConfig& split,
                                            const ArrayNames& names,
                                            std::vector<Diagnostic>& errors) {
  const std::size_t before = errors.size();
  auto set = std::make_shared<ArraySet>();
  for (const ArrayFiles& array : split.files) {
    for (const std::string& path : array.paths) {
      if (!path_exists(path)) {
        errors.push_back(at(array.where, array.name, "no such file: " + path));
        errors.back().fix = fix_of_missing(path);
        continue;
      }
      try {
        if (!array.name.empty() && names && !names->contains(array.name)) {
          set->leave_out(array.name);
          continue;
        }
        const ArrayFile file{array.name, path, names, *set, errors};
        std::visit([&](const auto& of_kind) { read_file(of_kind, file); }, kind);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::does_not_fit) refuse_size(error.diagnostics());
        const auto& found = error.diagnostics();
        errors.insert(errors.end(), found.begin(), found.end());
      }
    }
  }
  if (errors.size() == before) set->finish(errors);
  return errors.size() == before ? set : nullptr;
}

}  // namespace tandem
