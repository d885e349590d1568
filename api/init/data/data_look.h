// The interface by which files of each kind of data are inspected.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/init/facts.h"

namespace tandem::api {

struct InputFacts;  // api/init/fields.h

/// The files of a data set, with held-out ones separate. Absolute and sorted.
struct SplitPaths {
  std::vector<std::string> train, eval;
};

struct DataLook {
  std::string_view kind;  // data.kind
  /// Whether a file is of this kind, judging only by its name and size.
  bool (*takes)(const std::string& path);
  /// Fills `train`, `eval`, `arrays`, `notes` and `problem`.
  void (*look)(const SplitPaths& paths, DataFacts& facts);
  /// Whether a folder that has no files of any kind is itself of this kind; it is then the only
  /// path.
  bool (*takes_folder)(const std::string& path) = nullptr;
  /// The kind as which such files are read for these inputs; "": this one. That kind looks at them
  /// again.
  std::string_view (*other_kind)(const std::vector<InputFacts>& inputs,
                                 const DataFacts& facts) = nullptr;
  /// Completes what depends on the inputs that the data is for: keys, and types of samples.
  void (*fit)(const std::vector<InputFacts>& inputs, DataFacts& facts) = nullptr;
};

/// All kinds; the first one that takes a file is used.
std::span<const DataLook> all_data_looks();

/// The name without folders, ".gz" and the ending, in lower case.
std::string stem_of(const std::string& path);
/// Whether the name has one of these endings; "x.csv.gz" ends in ".csv".
bool has_ending(const std::string& path, std::initializer_list<std::string_view> endings);
/// Whether a word of a name ("t10k-images", "x_test") marks it as held out, or as training data.
bool names_held_out(const std::string& name);
bool names_training(const std::string& name);
/// A name without its words for the split and the format: "train-images-idx3-ubyte" is "images".
std::string without_split(const std::string& name);

/// Whether train.toml can hold a name: it has to be UTF-8 without bytes of 0.
bool is_text(const std::string& name);
/// Whether a name is one that labels have: "label", "y", "target".
bool names_label(const std::string& name);
/// Marks arrays with such a name as labels; where there are none, those named like an output of the
/// model, or else the only column with a name that is common for targets: "price".
void mark_labels(const std::vector<InputFacts>& inputs, const std::vector<std::string>& outputs,
                 DataFacts& facts);

/// Adds an array of one file to the data set's array of that name, as further rows.
void add_array(DataFacts& facts, const std::string& name, const HostTensor& tensor,
               const std::string& file);

}  // namespace tandem::api
