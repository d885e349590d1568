// Finds out which files of a folder are the data, which of them are held out, and what they
// contain.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "api/init/data/data_look.h"
#include "api/init/fields.h"
#include "engine/data/functions/field_function.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/formats/text_stream.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace looks {
#define LOOK(name) DataLook name();
#include "api/init/data/all_looks.inl"
#undef LOOK
}  // namespace looks

namespace {

namespace fs = std::filesystem;

/// Whether an export wrote this file next to its model, so that it is no data.
bool is_vocabulary(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  return name.find("vocabulary.") != std::string::npos && name.ends_with(".tsv") &&
         (name.starts_with("vocabulary.") || name.find(".vocabulary.") != std::string::npos);
}

const DataLook* look_of(const std::string& path) {
  for (const DataLook& look : all_data_looks()) {
    if (look.takes(path)) return &look;
  }
  return nullptr;
}

const DataLook* look_named(std::string_view kind) {
  for (const DataLook& look : all_data_looks()) {
    if (look.kind == kind) return &look;
  }
  return nullptr;
}

/// Forgets what a look found, and takes another one at the same files.
void look_again(const DataLook& look, DataFacts& facts) {
  SplitPaths paths;
  for (const ArrayFiles& files : facts.train)
    paths.train.insert(paths.train.end(), files.paths.begin(), files.paths.end());
  for (const ArrayFiles& files : facts.eval)
    paths.eval.insert(paths.eval.end(), files.paths.begin(), files.paths.end());
  facts.kind = look.kind;
  facts.arrays.clear();
  facts.keys.clear();
  facts.notes.resize(facts.file_notes);
  facts.rows_read = 0;
  look.look(paths, facts);
}

std::string known_files() {
  return "MNIST's IDX files, CIFAR's .bin, train.bin of token ids, .npz, .npy, .csv and .tsv "
         "with a header, or .jsonl (and .gz of these), .txt (data.kind = \"text\"), or a "
         "sub-folder of "
         ".jpg and .png for each class";
}

[[noreturn]] void refuse(const std::string& path, std::string message, std::string expected,
                         std::string fix = "") {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = path,
                                           .expected = std::move(expected),
                                           .fix = std::move(fix)});
}

/// Plain text next to data of another kind only describes it: "classes.txt".
void leave_remarks_out(const std::string& folder, std::vector<std::string>& files) {
  const auto is_remark = [](const std::string& file) { return file.ends_with(".txt"); };
  const auto is_data = [&](const std::string& file) {
    return !is_remark(file) && look_of(file) != nullptr;
  };
  const std::span<const DataLook> all = all_data_looks();
  const bool is_whole = std::any_of(all.begin(), all.end(), [&](const DataLook& look) {
    return look.takes_folder != nullptr && look.takes_folder(folder);
  });
  if (is_whole || std::any_of(files.begin(), files.end(), is_data)) std::erase_if(files, is_remark);
}

std::vector<std::string> files_of(const std::string& path) {
  std::error_code failed;
  if (!path_exists(path)) refuse(path, "no such file or folder", "the data");
  if (!is_directory(path)) {
    if (!fs::is_regular_file(path, failed)) refuse(path, "this is no regular file", "the data");
    return {path};
  }
  std::vector<std::string> files;
  for (const std::string& name : list_directory(path)) {
    const std::string file = path + "/" + name;
    if (!name.starts_with('.') && !is_vocabulary(name) && fs::is_regular_file(file, failed))
      files.push_back(file);
  }
  leave_remarks_out(path, files);
  return files;
}

/// Null where files of the folder are data, or the folder itself is of no kind.
const DataLook* look_of_folder(const std::string& path, const std::vector<std::string>& files) {
  if (!is_directory(path)) return nullptr;
  const bool any = std::any_of(files.begin(), files.end(),
                               [](const std::string& file) { return look_of(file) != nullptr; });
  for (const DataLook& look : all_data_looks()) {
    if (!any && look.takes_folder != nullptr && look.takes_folder(path)) return &look;
  }
  return nullptr;
}

/// The kind of the folder's files, which must be the only one.
const DataLook& choose_kind(const std::string& path, std::vector<std::string>& files,
                            DataFacts& facts) {
  const DataLook* chosen = nullptr;
  std::vector<std::string> taken;
  for (const std::string& file : files) {
    const DataLook* look = look_of(file);
    if (look == nullptr) continue;
    if (chosen != nullptr && look != chosen) {
      refuse(path,
             "files of two kinds: " + fs::path(taken.front()).filename().string() + " and " +
                 fs::path(file).filename().string(),
             "a folder with data of one kind", "name the file or the folder that is meant");
    }
    chosen = look;
    taken.push_back(file);
  }
  // Reading a file of another known format fails with an error that names the format.
  if (chosen == nullptr && files.size() == 1) {
    char first = 0;
    TextStream(files[0]).read(&first, 1);
  }
  if (chosen == nullptr)
    refuse(path, "no file of a known kind of data", known_files(),
           files.size() == 1 ? "text of another name is read where it is called .txt" : "");
  if (const std::size_t others = files.size() - taken.size(); others > 0) {
    facts.notes.push_back(
        std::to_string(others) +
        (others == 1 ? " other file of the folder is" : " other files of the folder are") +
        " not used");
  }
  files = std::move(taken);
  return *chosen;
}

/// Statistics of each column in rows of numbers, since columns may have different scales.
void add_parts(const HostTensor& tensor, ArrayFacts& array) {
  constexpr std::int64_t most_parts = 256, most_rows = 100'000;
  const Shape& shape = tensor.shape();
  if (shape.size() != 2 || shape[1] < 2 || shape[1] > most_parts || size_of(tensor.dtype()) == 1)
    return;
  array.by_part.resize(static_cast<std::size_t>(shape[1]));
  with_type(tensor.dtype(), [&](auto zero) {
    const auto* values = static_cast<const decltype(zero)*>(tensor.data());
    for (std::int64_t row = 0; row < std::min(shape[0], most_rows); ++row) {
      for (Numbers& part : array.by_part) part.add(number_at(*values++));
    }
  });
}

/// The value that at least a quarter of the rows end in at least twice; empty where there is none.
std::optional<std::int64_t> padding_of(const HostTensor& tensor) {
  constexpr std::int64_t most_rows = 10'000;
  const Shape& shape = tensor.shape();
  if (shape.size() != 2 || shape[1] < 3 || !is_integer(tensor.dtype())) return std::nullopt;
  const std::int64_t rows = std::min(shape[0], most_rows), length = shape[1];
  std::map<double, std::int64_t> ends;  // number of rows that end in this value at least twice
  for (std::int64_t row = 0; row < rows; ++row) {
    const double last = tensor.number((row + 1) * length - 1);
    if (last == tensor.number((row + 1) * length - 2)) ++ends[last];
  }
  const auto most = std::max_element(
      ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == ends.end() || 4 * most->second < rows) return std::nullopt;
  return static_cast<std::int64_t>(most->first);
}

std::string listed_names(const std::vector<std::string>& files) {
  return shown_names(files, [](const std::string& file) {
    return "\"" + fs::path(file).filename().string() + "\"";
  });
}

/// Splits files by their names. Where some are named as training data, files whose names show
/// nothing are left out, and a note lists them.
SplitPaths split(const std::vector<std::string>& files, DataFacts& facts) {
  SplitPaths paths;
  std::vector<std::string> unnamed;
  const auto is_for_training = [](const std::string& file) {
    return names_training(fs::path(file).filename().string());
  };
  const bool any_for_training = std::any_of(files.begin(), files.end(), is_for_training);
  for (const std::string& file : files) {
    const bool held_out = names_held_out(fs::path(file).filename().string());
    if (is_for_training(file))
      paths.train.push_back(file);
    else
      (held_out ? paths.eval : any_for_training ? unnamed : paths.train).push_back(file);
  }
  if (paths.train.empty()) std::swap(paths.train, paths.eval);
  if (!unnamed.empty())
    facts.notes.push_back(listed_names(unnamed) + " left out: " +
                          (unnamed.size() == 1 ? "its name says" : "their names say") +
                          " neither that it is for training, as " + listed_names(paths.train) +
                          " does, nor that it is held out; data.train.files may name more");
  return paths;
}

/// Splits off the files that a command line holds out; names of other files do not count then.
SplitPaths split_as_said(const DataLook& look, std::vector<std::string> files, DataFacts& facts) {
  std::vector<std::string> held = files_of(facts.said.held_out);
  if (&choose_kind(facts.said.held_out, held, facts) != &look)
    refuse(facts.said.held_out, "the held-out data is of another kind than the training data",
           std::string(look.kind));
  std::error_code failed;
  std::erase_if(files, [&](const std::string& file) {
    return std::any_of(held.begin(), held.end(), [&](const std::string& other) {
      return fs::equivalent(file, other, failed);
    });
  });
  if (files.empty()) refuse(facts.path, "all of the data is held out", "other files to train on");
  SplitPaths paths = split(files, facts);
  if (!paths.eval.empty())
    facts.notes.push_back(listed_names(paths.eval) +
                          " left out: named like held-out data, but --eval names others");
  paths.eval = std::move(held);
  return paths;
}

}  // namespace

std::span<const DataLook> all_data_looks() {
#define LOOK(name) looks::name(),
  static const DataLook all[] = {
#include "api/init/data/all_looks.inl"
  };
#undef LOOK
  return all;
}

void add_array(DataFacts& facts, const std::string& name, const HostTensor& tensor,
               const std::string& file) {
  if (tensor.shape().empty()) {
    throw Error(
        ErrorKind::data,
        Diagnostic{.message = "a single number has no samples", .file = file, .path = name});
  }
  const TensorType sample{tensor.dtype(), Shape(tensor.shape().begin() + 1, tensor.shape().end())};
  auto found = std::find_if(facts.arrays.begin(), facts.arrays.end(),
                            [&](const ArrayFacts& array) { return array.name == name; });
  if (found == facts.arrays.end()) {
    facts.arrays.emplace_back().name = name;
    found = facts.arrays.end() - 1;
    found->sample = sample;
  } else if (found->sample != sample) {
    throw Error(ErrorKind::data,
                Diagnostic{.message = "its samples have another type than those of other files",
                           .file = file,
                           .path = name,
                           .expected = to_string(found->sample),
                           .got = to_string(sample)});
  }
  if (found->rows == 0) found->padding = padding_of(tensor);
  found->rows += tensor.shape()[0];
  found->numbers.add(tensor);
  add_parts(tensor, *found);
}

const ArrayFacts* DataFacts::find(const std::string& name) const {
  const auto found = std::find_if(arrays.begin(), arrays.end(),
                                  [&](const ArrayFacts& array) { return array.name == name; });
  return found == arrays.end() ? nullptr : &*found;
}

void fit_data(const std::vector<InputFacts>& inputs, DataFacts& facts,
              const std::vector<std::string>& outputs) {
  const DataLook* look = look_named(facts.kind);
  if (look != nullptr && look->other_kind != nullptr) {
    const std::string_view kind = look->other_kind(inputs, facts);
    if (!kind.empty()) {
      look = look_named(kind);
      look_again(*look, facts);
    }
  }
  if (facts.holds_chat && facts.arrays.empty()) {
    facts.problem =
        "the lines are conversations, which data.kind = \"chat\" reads for models that write text "
        "on";
  }
  mark_labels(inputs, outputs, facts);
  if (look != nullptr && look->fit != nullptr) look->fit(inputs, facts);
}

bool SaidOfData::takes(const std::vector<InputFacts>& inputs, const std::string& column) const {
  return std::any_of(inputs.begin(), inputs.end(), [&](const InputFacts& input) {
    const auto found = fields.find(input.name);
    return found != fields.end() &&
           std::find(found->second.begin(), found->second.end(), column) != found->second.end();
  });
}

std::string kind_of_data(const std::string& path) {
  try {
    DataFacts facts;
    std::vector<std::string> files = files_of(path);
    const DataLook* const whole = look_of_folder(path, files);
    return std::string(whole != nullptr ? whole->kind : choose_kind(path, files, facts).kind);
  } catch (const Error&) {  // inspecting the data reports it
    return "";
  }
}

DataFacts look_into_data(const std::string& path, SaidOfData said) {
  DataFacts facts;
  facts.said = std::move(said);
  facts.path = normal_path(path);
  if (!facts.said.held_out.empty()) facts.said.held_out = normal_path(facts.said.held_out);
  if (facts.path.size() > 1 && facts.path.ends_with('/')) facts.path.pop_back();
  std::vector<std::string> files = files_of(facts.path);
  if (const DataLook* whole = look_of_folder(facts.path, files)) {
    facts.kind = whole->kind;
    SplitPaths paths{{facts.path}, {}};
    if (!facts.said.held_out.empty()) paths.eval = {facts.said.held_out};
    whole->look(paths, facts);
    return facts;
  }
  const DataLook& look = choose_kind(facts.path, files, facts);
  facts.kind = look.kind;
  const SplitPaths paths = facts.said.held_out.empty()
                               ? split(files, facts)
                               : split_as_said(look, std::move(files), facts);
  facts.file_notes = facts.notes.size();
  look.look(paths, facts);
  const bool any =
      facts.holds_chat || std::any_of(facts.arrays.begin(), facts.arrays.end(),
                                      [](const ArrayFacts& array) { return array.rows > 0; });
  if (!any && facts.problem.empty()) {
    const bool is_table = facts.kind == "csv" || facts.kind == "tsv";
    throw Error(ErrorKind::data,
                is_table
                    ? Diagnostic{.message = "there are no samples",
                                 .file = files.front(),
                                 .expected = "rows, below names of columns"}
                    : Diagnostic{.message = facts.arrays.empty() ? "there are no arrays in the data"
                                                                 : "there are no samples",
                                 .file = files.front(),
                                 .expected = "arrays whose axis 0 counts samples",
                                 .fix = joined(facts.notes, "; ")});
  }
  return facts;
}

}  // namespace tandem::api
