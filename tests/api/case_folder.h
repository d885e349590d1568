// The folder of a case of tests/expected/commands.
#pragma once

#include <string>
#include <vector>

#include "tests/harness/expected_output.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {

/// Runs commands in a folder that begins with the files of a case, and with what the commands in
/// its text "_before" (lines as "train | steps=2") made of them. Lines that follow a command are
/// its options: "--NAME [VALUE]", "/POINTER" for a value of its JSON in place of its text, and keys
/// of train.toml. "FOLDER/" is the folder, "SOURCE/" the source tree.
///   init MODEL [DATA [EVAL]]   the report, after files of an earlier one are removed: --to FOLDER
///   train [FILE]               messages, steps and metrics of the run in "run" or --run NAME:
///                              --resume, --accept, --stop STEP, --place RULE, --device DEVICE,
///                              --in FOLDER as the current one; --dry-run gives the summary
///   eval RUN [DATA]            warnings and metrics: --config FILE, --checkpoint NAME, --strict,
///                              --messages, --values for three digits of each, --text for the
///                              report
///   predict RUN DATA [TO]      warnings; --show shows TO (p.csv). The options of eval, --as FORM,
///                              --names, --numbers, --ids COLUMN. "RUN,MODEL" does it with both,
///                              which have to say and predict the same
///   export RUN TO              the report: --checkpoint NAME
///   report RUN TO              writes the page
///   json FILE                  values of a JSON file
///   inspect MODEL              the report: --parameters, --bind NAME=NUMBER
///   data check                 the report
///   field NAME TYPE EXTENT     what init makes of the folder "data" for an input of floats, or of
///                              int64 that look up a table of EXTENT rows
///   policy COMMAND WORD...     the report; the lines that follow: "policy=FILE", "model=FILE",
///                              "device=...", "place=..." or overrides
///   tandem WORD...             what the program prints, or the lines of it with the text that
///                              follows, and its exit code
///   show FILE [TEXT]           its lines, or those with this text
///   write FILE                 the lines that follow become the file
///   remove FILE
///   move FILE => OTHER, copy FILE => OTHER, link NEW => FILE
///   set FILE /POINTER VALUE    in a JSON file
///   same FILE OTHER            whether they have the same bytes
///   replace TEXT => OTHER      at the beginning of a line of train.toml; OTHER has escapes
class CaseFolder {
 public:
  explicit CaseFolder(const ExpectedCase& of);

  /// What a command says, without the path of the folder; or its error.
  std::string output_of(const std::string& input) const;

 private:
  using Words = std::vector<std::string>;

  std::string done(const std::string& command, const std::string& rest, const Words& lines) const;
  std::string shown(const std::string& name, const std::string& rest) const;
  std::string written(const std::string& name, const Words& lines) const;
  std::string replaced(const std::string& argument) const;

  TemporaryFolder folder_;
};

}  // namespace tandem::testing
