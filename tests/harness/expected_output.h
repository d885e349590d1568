// Cases of tests/expected: inputs with the texts that are expected for them.
//
//     -- NAME                a text for all cases of the file: the lines below it
//     == title               a case
//     -- NAME                a text for this case only; "-- NAME escaped" has \n, \t, \r, \\, \xNN,
//                            and a \ at the end of a line joins it with the next
//     > input                an input, which ". more" continues
//     the output             every line of it, or some of its words:
//     has: words             a part of the output
//     lacks: words           not a part of the output
//     ## a comment
//
// UPDATE_EXPECTED=1 in the environment rewrites the outputs, except lines of has and lacks.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace tandem::testing {

struct Exchange {
  std::string input;
  std::vector<std::string> output;
  std::size_t line = 0;  // index of the line below the input
  std::size_t end = 0;   // index of the line below the output
};

struct ExpectedCase {
  std::string path, name;
  std::map<std::string, std::string> texts;  // by name
  std::vector<Exchange> exchanges;

  /// The text of this name, or "".
  std::string text(const std::string& of) const;
  /// Asks for the output to each input, in order, and compares them.
  void check(const std::function<std::string(const std::string& input)>& output_of) const;
};
void PrintTo(const ExpectedCase& expected, std::ostream* to);

/// The cases of the file tests/expected/NAME.txt, or of all such files in the folder
/// tests/expected/NAME. If there are none, one case that fails.
std::vector<ExpectedCase> expected_cases(const std::string& name);

/// The name of the test of a case.
std::string name_of_case(const ::testing::TestParamInfo<ExpectedCase>& info);

/// What stands between the separators; one part more than there are separators.
std::vector<std::string> parts_of(const std::string& text, char separator);

/// The text with its escapes (see above) replaced.
std::string unescaped(std::string_view text);

/// The text with "repeat COUNT: LINE" replaced by that line for each i from 0 on, in which <a|b|c>
/// takes turns, and <20+i%9*2> is a sum of terms that are computed from the left.
std::string repeated(const std::string& text);

/// `text` with each occurrence of `part` replaced, for what differs between machines and runs.
std::string with_all(std::string text, std::string_view part, std::string_view replacement);

}  // namespace tandem::testing
