// The contents of TensorBoard's event files: messages `Event` of tensorflow/core/util/event.proto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/formats/events/histogram.h"

namespace tandem {

/// When something happened: seconds since 1970, and after which step.
struct EventTime {
  double wall = 0;
  std::int64_t step = 0;
};

/// The first event of each file.
std::string version_event(double wall);
/// A program begins to write: events of this step or later ones in earlier files do not count.
std::string start_event(const EventTime& time);
/// Numbers by their tags; float32 in the file.
std::string scalars_event(const EventTime& time,
                          const std::vector<std::pair<std::string, double>>& scalars);
std::string histogram_event(const EventTime& time, std::string_view tag,
                            const Histogram& histogram);
/// `graph`: a message GraphDef.
std::string graph_event(double wall, std::string_view graph);

/// What is read back from an event.
struct EventFacts {
  std::int64_t step = 0;
  std::string tag;        // its first value's; "" where it has none
  bool is_start = false;  // made by start_event
  bool is_graph = false;  // made by graph_event
};
EventFacts facts_of_event(std::string_view event);

}  // namespace tandem
