// The functions that turn columns of words into what an input takes: ids of a table, or one-hot
// rows.
#pragma once

#include "api/init/fields.h"

namespace tandem::api {

/// Whether each text of a column gets an element of its own.
bool is_one_hot(const InputFacts& input, const ArrayFacts& array);

/// For a column of words that fits the input. Features leave room for words that training lacks;
/// labels that are an input have exactly their classes.
Functions functions_of_words(const InputFacts& input, const ArrayFacts& array);

/// "classes('no', 'yes')" of the column's words in lower case; "" where no list can hold them.
std::string lower_classes(const ArrayFacts& array);

/// Puts `trim` in front of a column's functions where some of its texts need it; and says so, and
/// which functions would make texts one that differ only in case: "; …", or "".
std::string add_spelling(const ArrayFacts& array, std::vector<std::string>& as);

}  // namespace tandem::api
