// The fake CUDA runtime: streams, events, captures and graphs.
#include <algorithm>
#include <cstring>
#include <exception>

#include "tests/cuda/support/fake_streams_and_graphs.h"
#include "tests/cuda/support/fake_waiting.h"

namespace tandem::testing {

WorkInTurn& work_in_turn() {
  thread_local WorkInTurn turn;
  return turn;
}

namespace {

/// Repeats f until it returns true; between tries other threads may end what hangs. False after 20
/// s.
template <class F>
bool try_in_turns(std::recursive_mutex& mutex, const F& f) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!f()) {
    if (std::chrono::steady_clock::now() > until) return false;
    mutex.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    mutex.lock();
  }
  return true;
}

}  // namespace

void FakeRuntime::Work::keep() {
  if (kind != Kind::launch) return;
  body.resize((launch.body_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
  std::memcpy(body.data(), launch.body, launch.body_bytes);
  launch.body = nullptr;  // copies of this work have their body elsewhere
}

void FakeRuntime::Capture::join(std::shared_ptr<FakeStream> stream,
                                const std::shared_ptr<Capture>& self) {
  stream->capture = self;
  stream->branch = branches.size();
  branches.push_back({std::move(stream), {}});
  for (Branch& branch : branches) branch.clock.resize(branches.size(), 0);
}

cudaError_t FakeRuntime::find(cudaStream_t handle, std::string_view call,
                              std::shared_ptr<FakeStream>& to, bool on_own_gpu) {
  const auto found = streams_.find(handle);
  if (found == streams_.end()) {
    return broken(cudaErrorInvalidResourceHandle,
                  std::string(call) + (handle == nullptr ? " on the default stream"
                                                         : " on a stream that does not exist"));
  }
  to = found->second;
  if (on_own_gpu && to->gpu != thread().gpu) {
    return broken(cudaErrorInvalidResourceHandle, std::string(call) + " on a stream of GPU " +
                                                      std::to_string(to->gpu) + " while GPU " +
                                                      std::to_string(thread().gpu) + " is chosen");
  }
  return cudaSuccess;
}

cudaError_t FakeRuntime::find(cudaEvent_t handle, std::string_view call, FakeEvent*& to) {
  const auto found = events_.find(handle);
  if (found == events_.end())
    return broken(cudaErrorInvalidResourceHandle,
                  std::string(call) + " of an event that does not exist");
  to = found->second.get();
  return cudaSuccess;
}

cudaError_t FakeRuntime::add(const std::shared_ptr<FakeStream>& stream, std::string_view name,
                             Work& work, std::span<const ByteAccess> accesses) {
  OfThread& own = thread();
  if (stream->capture) {
    Capture& capture = *stream->capture;
    capture.step(*stream);
    capture.accesses.insert(capture.accesses.end(), accesses.begin(), accesses.end());
    work.keep();
    capture.nodes.push_back(std::move(work));
    return cudaSuccess;
  }
  own.is_fresh = false;
  if (order_ && work.kind != Work::Kind::wait) {
    order_->join(stream->lane, LaneMonitor::host_lane);
    order_->operation(stream->lane, {name, 0, accesses}, 0);
  }
  ++stream->added;
  if (!options_.late && stream->pending.empty()) {
    work_in_turn() = {};
    execute(*stream, work);
    work.token = work_in_turn().token;
    if (!work_in_turn().again) {
      ++stream->done;
      return cudaSuccess;
    }
  }
  work.keep();
  stream->pending.push_back(std::move(work));
  return cudaSuccess;
}

void FakeRuntime::execute(FakeStream& stream, const Work& work) {
  WorkInTurn& turn = work_in_turn();
  const auto run_kernel = [&](std::string_view name, const auto& f) {
    GpuMemory& memory = *gpus_[stream.gpu];
    if (sticky_ != cudaSuccess) return;  // a broken GPU runs nothing
    memory.set_open(true);
    try {
      f();
    } catch (const std::exception& error) {  // where a GPU would fault
      add_problem("kernel " + std::string(name) + ": " + error.what());
    }
    memory.set_open(false);
    if (const auto failing = failing_kernels_.find(name); failing != failing_kernels_.end()) {
      sticky_ = failing->second;
      failing_kernels_.erase(failing);
    }
  };
  switch (work.kind) {
    case Work::Kind::copy:
      if (work.bytes > 0) std::memmove(host_view(work.to), host_view(work.from), work.bytes);
      break;
    case Work::Kind::fill:
      std::memset(host_view(work.to), work.byte, work.bytes);
      break;
    case Work::Kind::launch:
      run_kernel(work.launch.name, [&] {
        work.launch.emulate(work.launch.shape,
                            work.body.empty() ? work.launch.body : work.body.data());
      });
      break;
    case Work::Kind::function:
      run_kernel(work.name, work.function);
      break;
    case Work::Kind::wait:
      run_until(*work.other, work.number);
      turn = {0, work.other->done < work.number};
      break;
    case Work::Kind::graph:
      for (; work.next < work.graph->nodes.size(); ++work.next) {
        execute(stream, work.graph->nodes[work.next]);
        if (turn.again) break;
        turn.token = 0;
      }
      break;
  }
}

void FakeRuntime::run_until(FakeStream& stream, std::uint64_t number) {
  while (stream.done < number && !stream.pending.empty()) {
    const Work& work = stream.pending.front();
    work_in_turn() = {work.token, false};
    execute(stream, work);
    work.token = work_in_turn().token;
    if (work_in_turn().again) return;
    stream.pending.pop_front();
    ++stream.done;
  }
}

void FakeRuntime::run_all() {
  std::vector<std::shared_ptr<FakeStream>> all;
  for (const auto& [handle, stream] : streams_) all.push_back(stream);
  const bool ended = try_in_turns(mutex_, [&] {
    bool all_ended = true;
    for (const auto& stream : all) {
      run_until(*stream, stream->added);
      all_ended = all_ended && stream->pending.empty();
    }
    return all_ended;
  });
  if (!ended) (void)broken(cudaErrorLaunchTimeout, "the host waits for a stream that hangs");
}

void FakeRuntime::host_waits_for(FakeStream& stream) {
  const bool ended = try_in_turns(mutex_, [&] {
    run_until(stream, stream.added);
    return stream.pending.empty();
  });
  if (!ended)
    (void)broken(cudaErrorLaunchTimeout, "the host waits for " + stream.name() + ", which hangs");
  if (order_) order_->join(LaneMonitor::host_lane, stream.lane);
}

cudaError_t FakeRuntime::make_stream(cudaStream_t& to) {
  const std::lock_guard lock(mutex_);
  to = nullptr;
  if (const cudaError_t error =
          enter("make_stream", [&] { return "make_stream " + std::to_string(streams_made_ + 1); }))
    return error;
  auto stream = std::make_shared<FakeStream>();
  stream->number = ++streams_made_;
  stream->gpu = thread().gpu;
  if (order_) stream->lane = order_->add_lane(stream->name());
  to = reinterpret_cast<cudaStream_t>(stream.get());
  streams_[to] = std::move(stream);
  return cudaSuccess;
}

cudaError_t FakeRuntime::destroy_stream(cudaStream_t handle) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<FakeStream> stream;
  const cudaError_t wrong = find(handle, "destroy_stream", stream, false);
  if (const cudaError_t error = enter("destroy_stream", [&] {
        return "destroy_stream" + (stream ? " " + std::to_string(stream->number) : "");
      }))
    return error;
  if (wrong != cudaSuccess) return wrong;
  if (stream->capture)
    return broken(cudaErrorStreamCaptureUnsupported, "a stream is destroyed while it captures");
  host_waits_for(*stream);
  if (order_) order_->remove_lane(stream->lane);
  streams_.erase(handle);
  return cudaSuccess;
}

cudaError_t FakeRuntime::synchronize(cudaStream_t handle) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<FakeStream> stream;
  const cudaError_t wrong = find(handle, "synchronize", stream, false);
  if (const cudaError_t error = enter(
          "synchronize", [&] { return "synchronize" + (stream ? " " + stream->name() : ""); }))
    return error;
  if (wrong != cudaSuccess) return wrong;
  if (stream->capture) {
    stream->capture->broken = "the host waits for a stream that captures";
    return broken(cudaErrorStreamCaptureUnsupported, stream->capture->broken);
  }
  if (const cudaError_t error = refuse_in_capture("the host waits")) return error;
  host_waits_for(*stream);
  return sticky_;
}

cudaError_t FakeRuntime::synchronize_gpu() {
  const std::lock_guard lock(mutex_);
  if (const cudaError_t error = enter("synchronize_card", [] { return "synchronize_card"; }))
    return error;
  if (const cudaError_t error = refuse_in_capture("the host waits")) return error;
  std::vector<std::shared_ptr<FakeStream>> all;
  for (const auto& [handle, stream] : streams_) {
    if (stream->gpu == thread().gpu) all.push_back(stream);
  }
  for (const auto& stream : all) host_waits_for(*stream);
  return sticky_;
}

cudaError_t FakeRuntime::make_event(cudaEvent_t& to) {
  const std::lock_guard lock(mutex_);
  to = nullptr;
  if (const cudaError_t error =
          enter("make_event", [&] { return "make_event " + std::to_string(events_made_ + 1); }))
    return error;
  auto event = std::make_unique<FakeEvent>();
  event->number = ++events_made_;
  event->gpu = thread().gpu;
  if (order_) event->id = order_->add_event();
  to = reinterpret_cast<cudaEvent_t>(event.get());
  events_[to] = std::move(event);
  return cudaSuccess;
}

cudaError_t FakeRuntime::destroy_event(cudaEvent_t handle) {
  const std::lock_guard lock(mutex_);
  FakeEvent* event = nullptr;
  const cudaError_t wrong = find(handle, "destroy_event", event);
  if (const cudaError_t error = enter("destroy_event", [&] {
        return "destroy_event" + (event ? " " + std::to_string(event->number) : "");
      }))
    return error;
  if (wrong != cudaSuccess) return wrong;
  if (order_) order_->remove_event(event->id);
  events_.erase(handle);
  return cudaSuccess;
}

cudaError_t FakeRuntime::record(cudaEvent_t handle, cudaStream_t on) {
  const std::lock_guard lock(mutex_);
  FakeEvent* event = nullptr;
  std::shared_ptr<FakeStream> stream;
  const cudaError_t wrong_event = find(handle, "record", event);
  const cudaError_t wrong_stream = find(on, "record", stream, true);
  if (const cudaError_t error = enter("record", [&] {
        return "record" + (event ? " " + event->name() : "") + (stream ? " " + stream->name() : "");
      }))
    return error;
  if (wrong_event != cudaSuccess) return wrong_event;
  if (wrong_stream != cudaSuccess) return wrong_stream;
  if (event->gpu != stream->gpu)
    return broken(cudaErrorInvalidResourceHandle, "an event is recorded by another GPU's stream");
  if (stream->capture) {
    event->capture = stream->capture;
    event->clock = stream->capture->branches[stream->branch].clock;
    return cudaSuccess;
  }
  event->capture.reset();
  event->stream = stream;
  event->position = stream->added;
  ++event->count;
  event->time = std::chrono::steady_clock::now();
  if (order_) {
    order_->join(stream->lane, LaneMonitor::host_lane);
    order_->record(stream->lane, event->id, event->count);
  }
  return cudaSuccess;
}

cudaError_t FakeRuntime::wait(cudaStream_t on, cudaEvent_t handle) {
  const std::lock_guard lock(mutex_);
  FakeEvent* event = nullptr;
  std::shared_ptr<FakeStream> stream;
  const cudaError_t wrong_event = find(handle, "wait", event);
  const cudaError_t wrong_stream = find(on, "wait", stream, false);
  if (const cudaError_t error = enter("wait", [&] {
        return "wait" + (event ? " " + event->name() : "") + (stream ? " " + stream->name() : "");
      }))
    return error;
  if (wrong_event != cudaSuccess) return wrong_event;
  if (wrong_stream != cudaSuccess) return wrong_stream;
  if (event->capture) {
    if (event->capture->ended)
      return broken(cudaErrorCapturedEvent,
                    "a stream waits for an event of a capture that has ended");
    if (!stream->capture) {
      if (stream->added > stream->done && !options_.late)
        return broken(cudaErrorIllegalState, "a stream with pending work joins a capture");
      event->capture->join(stream, event->capture);
    }
    if (stream->capture != event->capture)
      return broken(cudaErrorStreamCaptureMerge, "a wait would merge two captures");
    join_clocks(stream->capture->branches[stream->branch].clock, event->clock);
    stream->capture->step(*stream);
    return cudaSuccess;
  }
  if (stream->capture) {
    stream->capture->broken =
        "a stream waits in a capture for an event that was recorded outside of it";
    return broken(cudaErrorStreamCaptureIsolation, stream->capture->broken);
  }
  if (event->count == 0) return cudaSuccess;  // never recorded: CUDA does not wait
  if (order_) order_->wait(stream->lane, event->id, event->count);
  Work work;
  work.kind = Work::Kind::wait;
  work.other = event->stream;
  work.number = event->position;
  return add(stream, "wait", work, {});
}

bool FakeRuntime::has_happened(FakeEvent& event) {
  if (event.count == 0) return true;
  if (event.stream->done < event.position) return false;
  if (order_) order_->wait(LaneMonitor::host_lane, event.id, event.count);
  return true;
}

cudaError_t FakeRuntime::synchronize(cudaEvent_t handle) {
  const std::lock_guard lock(mutex_);
  FakeEvent* event = nullptr;
  const cudaError_t wrong = find(handle, "synchronize", event);
  if (const cudaError_t error = enter(
          "synchronize_event", [&] { return "synchronize" + (event ? " " + event->name() : ""); }))
    return error;
  if (wrong != cudaSuccess) return wrong;
  if (event->capture)
    return broken(cudaErrorCapturedEvent, "the host waits for an event of a capture");
  if (const cudaError_t error = refuse_in_capture("the host waits")) return error;
  const std::uint64_t position = event->count > 0 ? event->position : 0;
  const bool ended = position == 0 || try_in_turns(mutex_, [&] {
                       run_until(*event->stream, position);
                       return event->stream->done >= position;
                     });
  if (!ended)
    return broken(cudaErrorLaunchTimeout, "the host waits for " + event->name() + ", which hangs");
  has_happened(*event);
  return sticky_;
}

cudaError_t FakeRuntime::query(cudaEvent_t handle) {
  const std::lock_guard lock(mutex_);
  FakeEvent* event = nullptr;
  const cudaError_t wrong = find(handle, "query", event);
  if (const cudaError_t error =
          enter("query", [&] { return "query" + (event ? " " + event->name() : ""); }))
    return error;
  if (wrong != cudaSuccess) return wrong;
  if (event->capture)
    return broken(cudaErrorCapturedEvent, "the host asks for an event of a capture");
  if (const cudaError_t error = refuse_in_capture("the host asks for an event")) return error;
  if (has_happened(*event)) return sticky_;
  run_until(*event->stream, event->stream->done + 1);  // so that polling makes progress
  return sticky_ != cudaSuccess ? sticky_ : cudaErrorNotReady;
}

cudaError_t FakeRuntime::make_timer(cudaEvent_t& to) {
  const std::lock_guard lock(mutex_);
  const cudaError_t error = make_event(to);
  if (error == cudaSuccess) events_.at(to)->is_timer = true;
  return error;
}

cudaError_t FakeRuntime::milliseconds(float& to, cudaEvent_t from, cudaEvent_t until) {
  const std::lock_guard lock(mutex_);
  to = 0;
  FakeEvent* events[2] = {};
  for (int i = 0; i < 2; ++i) {
    const cudaError_t error = find(i == 0 ? from : until, "milliseconds", events[i]);
    if (error != cudaSuccess) return error;
  }
  if (const cudaError_t error = enter("milliseconds", [] { return "milliseconds"; })) return error;
  for (FakeEvent* event : events) {
    if (!event->is_timer || event->count == 0 || event->capture)
      return broken(cudaErrorInvalidResourceHandle, "the time of an event that has none");
    if (!has_happened(*event)) return cudaErrorNotReady;
  }
  to = std::chrono::duration<float, std::milli>(events[1]->time - events[0]->time).count();
  return cudaSuccess;
}

cudaError_t FakeRuntime::begin_capture(cudaStream_t handle) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<FakeStream> stream;
  const cudaError_t wrong = find(handle, "begin_capture", stream, false);
  if (const cudaError_t error = enter(
          "begin_capture", [&] { return "begin_capture" + (stream ? " " + stream->name() : ""); }))
    return error;
  if (wrong != cudaSuccess) return wrong;
  if (stream->capture)
    return broken(cudaErrorIllegalState, "a capture begins on a stream that captures");
  const auto capture = std::make_shared<Capture>();
  capture->thread = std::this_thread::get_id();
  capture->join(stream, capture);
  thread().capture = capture;
  return cudaSuccess;
}

cudaError_t FakeRuntime::end_capture(cudaStream_t handle, cudaGraphExec_t& to) {
  const std::lock_guard lock(mutex_);
  to = nullptr;
  std::shared_ptr<FakeStream> stream;
  const cudaError_t wrong = find(handle, "end_capture", stream, false);
  if (const cudaError_t error = enter(
          "end_capture", [&] { return "end_capture" + (stream ? " " + stream->name() : ""); }))
    return error;
  if (wrong != cudaSuccess) return wrong;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return broken(cudaErrorIllegalState, "a capture ends that never began");
  if (capture->branches[0].stream != stream)
    return broken(cudaErrorStreamCaptureUnmatched,
                  "a capture ends on another stream than that on which it began");
  if (capture->thread != std::this_thread::get_id())
    return broken(cudaErrorStreamCaptureWrongThread, "a capture ends on another thread");
  capture->ended = true;
  thread().capture.reset();
  for (Capture::Branch& branch : capture->branches) branch.stream->capture.reset();
  if (!capture->broken.empty()) return cudaErrorStreamCaptureInvalidated;
  for (std::size_t b = 1; b < capture->branches.size(); ++b) {
    if (capture->branches[0].clock[b] < capture->branches[b].clock[b])
      return broken(
          cudaErrorStreamCaptureUnjoined,
          "a capture ends before " + capture->branches[b].stream->name() + " is joined to it");
  }
  auto graph = std::make_shared<FakeGraph>();
  graph->number = ++graphs_made_;
  graph->gpu = stream->gpu;
  graph->nodes = std::move(capture->nodes);
  graph->accesses = std::move(capture->accesses);
  to = reinterpret_cast<cudaGraphExec_t>(graph.get());
  graphs_[to] = std::move(graph);
  return cudaSuccess;
}

cudaError_t FakeRuntime::launch_graph(cudaGraphExec_t handle, cudaStream_t on) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<FakeStream> stream;
  const cudaError_t wrong = find(on, "launch_graph", stream, true);
  const auto found = graphs_.find(handle);
  if (const cudaError_t error = enter("launch_graph", [&] {
        return "launch_graph" +
               (found != graphs_.end() ? " " + std::to_string(found->second->number) : "") +
               (stream ? " " + stream->name() : "");
      }))
    return error;
  if (wrong != cudaSuccess) return wrong;
  if (found == graphs_.end())
    return broken(cudaErrorInvalidResourceHandle, "a graph is launched that does not exist");
  if (stream->capture)
    return broken(cudaErrorStreamCaptureUnsupported, "a graph is launched while capturing");
  for (const Work& node : found->second->nodes) {  // addresses must still be valid
    if (node.kind != Work::Kind::copy && node.kind != Work::Kind::fill) continue;
    Place place;
    if (const cudaError_t error = find(node.to, node.bytes, "copy in a graph", place)) return error;
    if (node.from == nullptr) continue;
    if (const cudaError_t error = find(node.from, node.bytes, "copy in a graph", place))
      return error;
  }
  Work work;
  work.kind = Work::Kind::graph;
  work.graph = found->second;
  std::vector<ByteAccess> accesses;
  if (order_) {
    accesses = found->second->accesses;
    const OfThread& own = thread();
    if (own.is_fresh) accesses.insert(accesses.end(), own.since.begin(), own.since.end());
  }
  return add(stream, found->second->name(), work, accesses);
}

cudaError_t FakeRuntime::destroy_graph(cudaGraphExec_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = graphs_.find(handle);
  if (const cudaError_t error = enter("destroy_graph", [&] {
        return "destroy_graph" +
               (found != graphs_.end() ? " " + std::to_string(found->second->number) : "");
      }))
    return error;
  if (found == graphs_.end())
    return broken(cudaErrorInvalidResourceHandle, "a graph is destroyed that does not exist");
  graphs_.erase(found);
  return cudaSuccess;
}

}  // namespace tandem::testing
