// What has to be the same on all ranks of a run before it starts.
#pragma once

#include <string>
#include <vector>

#include "engine/ranks/rendezvous.h"

namespace tandem {

struct RankFact {
  std::string name;   // "the policy", for people
  std::string value;  // a text of several lines is compared line by line
  std::string fix;
};

/// All ranks give the same facts in the same order. Throws on all of them where values are not
/// those of rank 0; the error says what differs on which rank.
void refuse_differences(Rendezvous& ranks, const std::vector<RankFact>& facts);

}  // namespace tandem
