// A configuration that follows from a model and its data. Standard types only.
#pragma once

#include <string>
#include <vector>

#include "tandem/tandem.h"

namespace tandem::api {

struct InitOptions {
  std::string data;  // a file or a folder; "": keys of the data stay open
  std::string eval;  // held-out data, a file or a folder; "": what names of files say is held out
  std::string to;    // the folder to write into; "": that of the model
};
struct InitReport : Report {
  std::vector<std::string> files;  // the two files that were written
  /// JSON Schemas of both, which their first lines name for editors. They are in the folder
  /// `.tandem` next to them, and replace those of an earlier version.
  std::vector<std::string> schemas;
  /// What could not be guessed: `path` is the key, `message` what is missing. The train.toml has it
  /// marked "# TODO", and trains once it is filled in.
  std::vector<Diagnostic> open;
};
/// Writes a train.toml and a policy.toml for a model and its data, with the reason for each value
/// as a comment, and the schemas of both for editors. Throws Error{usage}, and writes nothing,
/// where one of them is there already or the model cannot train; Error{data} where the data is
/// broken or empty.
///
/// A Trainer whose `config_path` is an ONNX file ("….onnx") guesses the same in memory. The data is
/// then the override "data=PATH". What could not be guessed, and no other override says, is
/// Error{usage}; run directories are made next to the model.
InitReport init(const std::string& model_path, const InitOptions& options = {});

}  // namespace tandem::api
