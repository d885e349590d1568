#include "engine/ranks/rank_group.h"

#include <utility>

#include "engine/ranks/message_communicator.h"

namespace tandem {

RankGroup::RankGroup(std::shared_ptr<Rendezvous> rendezvous, std::shared_ptr<RankMessages> messages,
                     const RankGroupOptions& options)
    : rendezvous_(std::move(rendezvous)), messages_(std::move(messages)), options_(options) {}

std::shared_ptr<Communicator> RankGroup::make_communicator() {
  if (messages_ == nullptr) return nullptr;
  MessageCommunicatorOptions options;
  options.number = made_++;
  options.operation_limit = options_.operation_limit;
  options.sizes = options_.sizes;
  return std::make_shared<MessageCommunicator>(messages_, rendezvous_, options);
}

}  // namespace tandem
