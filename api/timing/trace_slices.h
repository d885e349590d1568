// Chrome trace events of steps: a slice for each instruction, on the track of its queue.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/timing/launch_times.h"

namespace tandem::api {

constexpr int measured_process = 1, predicted_process = 2;  // `pid` of events
constexpr int marks_track = 0;                              // `tid` of the marks of steps
constexpr double trace_microseconds = 1e6;                  // microseconds in a second

/// The track of a queue. It is equal in all programs of a run, measured or predicted, and tracks
/// are shown in its order: device by device, computing first.
int track_of(const Queue& queue);

/// The name of a track.
nlohmann::ordered_json track_event(int process, int track, const std::string& name);

/// The slice of one instruction while it runs.
nlohmann::ordered_json slice_event(int process, const Lowered& lowered, const tandem::Plan& plan,
                                   const Launch& launch, const LaunchTime& time);

/// Names of tracks, and a slice for each time that is known.
nlohmann::ordered_json trace_slices(const TracedSteps& traced, const LaunchTimes& times,
                                    int process);

}  // namespace tandem::api
